/** A bucket: an object store of NATS. */
import { HarmovelaError } from "@harmovela/failure";
import { jetstream, StorageType } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { type ObjectStore, Objm } from "@nats-io/obj";
import { API_ERROR, apiCodeOf } from "../api-error.ts";
import type { BlobInfo, BlobPage, Blobs, BlobsOptions } from "../port.ts";
import { BLOB_BUCKET, BLOB_NOTES_MAX } from "../streams.ts";
import { askApi, askStreams, toJetStreamFailure } from "./api.ts";
import { readBlob } from "./blob-read.ts";
import { BlobWalk } from "./blob-walk.ts";

/** Of each chunk that is written, and of each question. */
const TIMEOUT_MS = 5_000;
/** A blob that takes longer than this to come is given up. */
const READ_MS_MAX = 120_000;
/** Blobs that are listed at once. */
const PAGE = 256;
/** Incomplete blobs that are removed at once; the next call goes on. */
const INCOMPLETE_MAX = 256;

/** Asks a question while the connection is up, and ends it when the connection is lost. */
export type Ask = <T>(question: () => Promise<T>) => Promise<T>;

export class BlobBucket implements Blobs {
  readonly #nats: NatsConnection;
  readonly #options: BlobsOptions;
  readonly #name: string;
  readonly #walk: BlobWalk;
  readonly #ask: Ask;
  #opened: Promise<ObjectStore> | undefined;

  constructor(nats: NatsConnection, options: BlobsOptions, ask: Ask) {
    this.#nats = nats;
    this.#options = options;
    this.#name = options.bucket ?? BLOB_BUCKET;
    this.#walk = new BlobWalk(nats, this.#name);
    this.#ask = (question) => ask(() => typed(question));
  }

  async put(name: string, data: Uint8Array, notes: Record<string, string> = {}): Promise<void> {
    assertNotes(notes);
    const bucket = await this.#bucket();
    try {
      await this.#ask(() =>
        bucket.put({ name, metadata: notes }, streamOf(data), { timeout: TIMEOUT_MS }),
      );
    } catch (error) {
      if (apiCodeOf(error) !== API_ERROR.storeFailed) throw error;
      throw new HarmovelaError("store_full", "there is no room in the bucket", {
        cause: error,
        details: { bucket: this.#name, bytes: data.length },
      });
    }
  }

  async get(name: string): Promise<Uint8Array | undefined> {
    const bucket = await this.#bucket();
    return this.#ask(() => within(READ_MS_MAX, readBlob(this.#nats, bucket, this.#name, name)));
  }

  /** Not the client's own list: that waits for what it was told of, for ever when somebody removes it meanwhile. */
  async list(): Promise<BlobInfo[]> {
    const found: BlobInfo[] = [];
    for (let from: number | undefined = 1; from !== undefined; ) {
      const page: BlobPage = await this.page(from, PAGE);
      for (const { at: _storedAt, ...blob } of page.blobs) found.push(blob);
      from = page.next;
    }
    return found.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  async page(from: number, limit: number): Promise<BlobPage> {
    await this.#bucket();
    return this.#ask(() => this.#walk.page(from, limit));
  }

  async remove(name: string): Promise<void> {
    const bucket = await this.#bucket();
    const info = await this.#ask(() => bucket.info(name));
    // Its content first: what is left of it when this process dies in between is found by its name.
    if (info) await this.#ask(() => this.#walk.purge(info.nuid, name));
  }

  async removeIncomplete(olderThanMs: number): Promise<number> {
    await this.#bucket();
    return this.#ask(() => this.#walk.removeIncomplete(olderThanMs, INCOMPLETE_MAX));
  }

  /** Made at its first use: who only reads what is not there needs none. */
  async #bucket(): Promise<ObjectStore> {
    this.#opened ??= this.#open();
    try {
      return await this.#opened;
    } catch (error) {
      this.#opened = undefined;
      throw error;
    }
  }

  #open(): Promise<ObjectStore> {
    const objects = new Objm(jetstream(this.#nats, { checkAPI: false, timeout: TIMEOUT_MS }));
    const { replicas, maxBytes, mayCreate = true } = this.#options;
    if (!mayCreate) return this.#ask(() => this.#openExisting(objects));
    return this.#ask(async () => {
      const bucket = await objects.create(this.#name, {
        storage: StorageType.File,
        replicas,
        ...(maxBytes === undefined ? {} : { max_bytes: maxBytes }),
      });
      if (maxBytes !== undefined) await this.#setRoom(bucket, maxBytes);
      return bucket;
    });
  }

  async #openExisting(objects: Objm): Promise<ObjectStore> {
    await askStreams(this.#nats, (streams) => streams.info(`OBJ_${this.#name}`));
    return objects.open(this.#name, false);
  }

  async #setRoom(bucket: ObjectStore, maxBytes: number): Promise<void> {
    const { streamInfo } = await bucket.status();
    if (streamInfo.config.max_bytes === maxBytes) return;
    await askStreams(this.#nats, (streams) =>
      streams.update(streamInfo.config.name, { max_bytes: maxBytes }),
    );
  }
}

/** Removes every message below a sequence; those above keep theirs. */
export async function trimStream(
  nats: NatsConnection,
  stream: string,
  firstSeq: number,
): Promise<void> {
  if (firstSeq < 1) throw new HarmovelaError("invalid_argument", "sequences begin with 1");
  // Nothing lies below; and an old server takes a purge up to 1 for one of everything.
  if (firstSeq === 1) return;
  await askApi(nats, `STREAM.PURGE.${stream}`, { seq: firstSeq });
}

function streamOf(data: Uint8Array): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      controller.enqueue(data);
      controller.close();
    },
  });
}

async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, fail) => {
    timer = setTimeout(() => fail(new HarmovelaError("timeout", "no answer in time")), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

async function typed<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (caught) {
    throw toJetStreamFailure(caught);
  }
}

function assertNotes(notes: Record<string, string>): void {
  if (JSON.stringify(notes).length <= BLOB_NOTES_MAX) return;
  throw new HarmovelaError("invalid_argument", "the notes of a blob are too long");
}
