/** The bucket `HV_SNAPSHOTS`: an object store of NATS. */
import { HarmovelaError } from "@harmovela/failure";
import { jetstream, StorageType } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { type ObjectStore, Objm } from "@nats-io/obj";
import { API_ERROR, apiCodeOf } from "../api-error.ts";
import type { BlobInfo, Blobs } from "../port.ts";
import { BLOB_BUCKET, BLOB_NOTES_MAX, blobInfo } from "../streams.ts";
import { askApi, toJetStreamFailure } from "./api.ts";

/** Of each chunk that is written, and of each question. */
const TIMEOUT_MS = 5_000;
/** A blob that takes longer than this to come is given up. */
const READ_MS_MAX = 120_000;

/** Asks a question while the connection is up, and ends it when the connection is lost. */
export type Ask = <T>(question: () => Promise<T>) => Promise<T>;

export class BlobBucket implements Blobs {
  readonly #nats: NatsConnection;
  readonly #replicas: number;
  readonly #ask: Ask;
  #opened: Promise<ObjectStore> | undefined;

  constructor(nats: NatsConnection, replicas: number, ask: Ask) {
    this.#nats = nats;
    this.#replicas = replicas;
    this.#ask = (question) => ask(() => typed(question));
  }

  async put(name: string, data: Uint8Array, notes: Record<string, string> = {}): Promise<void> {
    assertNotes(notes);
    const bucket = await this.#bucket();
    await this.#ask(() =>
      bucket.put({ name, metadata: notes }, streamOf(data), { timeout: TIMEOUT_MS }),
    );
  }

  async get(name: string): Promise<Uint8Array | undefined> {
    const bucket = await this.#bucket();
    // The client checks the digest of what it has read.
    const data = await this.#ask(() => within(READ_MS_MAX, bucket.getBlob(name)));
    return data ?? undefined;
  }

  async list(): Promise<BlobInfo[]> {
    const bucket = await this.#bucket();
    const found = await this.#ask(() => bucket.list());
    return found
      .filter(({ deleted }) => !deleted)
      .map(({ name, size, metadata }) => blobInfo(name, size, metadata))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  async remove(name: string): Promise<void> {
    const bucket = await this.#bucket();
    await this.#ask(() => bucket.delete(name)).catch((error: unknown) => {
      if (apiCodeOf(error) !== API_ERROR.noMessageFound) throw error;
    });
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
    return this.#ask(() =>
      objects.create(BLOB_BUCKET, { storage: StorageType.File, replicas: this.#replicas }),
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
