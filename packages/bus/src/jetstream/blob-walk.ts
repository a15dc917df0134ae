/** An object store seen as the stream that it is: for what the client's own calls cannot do in bounded memory. */
import type { Instant } from "@harmovela/envelope";
import type { NatsConnection } from "@nats-io/nats-core";
import { API_ERROR, apiCodeOf } from "../api-error.ts";
import type { BlobPage, StoredBlob } from "../port.ts";
import { blobInfo } from "../streams.ts";
import { askApi } from "./api.ts";

/** What the object store notes about a blob. */
interface Meta {
  name: string;
  nuid: string;
  size: number;
  deleted?: boolean;
  metadata?: Record<string, string>;
}

interface RawMessage {
  message: { subject: string; seq: number; data?: string; time: string };
}

export class BlobWalk {
  readonly #nats: NatsConnection;
  readonly #stream: string;
  readonly #chunks: string;
  readonly #metas: string;

  constructor(nats: NatsConnection, bucket: string) {
    this.#nats = nats;
    this.#stream = `OBJ_${bucket}`;
    this.#chunks = `$O.${bucket}.C.`;
    this.#metas = `$O.${bucket}.M.`;
  }

  async page(from: number, limit: number): Promise<BlobPage> {
    const blobs: StoredBlob[] = [];
    for (let at = from; ; ) {
      const found = await this.#nextMeta(at);
      if (found === undefined) return { blobs };
      if (blobs.length === limit) return { blobs, next: found.seq };
      at = found.seq + 1;
      const { name, size, metadata, deleted } = found.meta;
      if (!deleted) blobs.push({ ...blobInfo(name, size, metadata), at: found.at });
    }
  }

  async purge(nuid: string, name: string): Promise<void> {
    await this.#purge(`${this.#chunks}${nuid}`);
    await this.#purge(`${this.#metas}${toSubjectToken(name)}`);
  }

  /** Chunks that no blob names and that are so old; of `max` blobs at most. The result: of how many. */
  async removeIncomplete(olderThanMs: number, max: number): Promise<number> {
    const { state } = await askApi<{ state: { subjects?: Record<string, number> } }>(
      this.#nats,
      `STREAM.INFO.${this.#stream}`,
      { subjects_filter: `${this.#chunks}>` },
    );
    const loose = new Set(Object.keys(state.subjects ?? {}));
    if (loose.size === 0) return 0;
    for (let at = 0; ; ) {
      const found = await this.#nextMeta(at);
      if (found === undefined) break;
      at = found.seq + 1;
      loose.delete(`${this.#chunks}${found.meta.nuid}`);
    }
    let removed = 0;
    for (const subject of loose) {
      if (removed >= max) break;
      const last = await this.#get({ last_by_subj: subject });
      if (last === undefined || Date.now() - Date.parse(last.time) < olderThanMs) continue;
      await this.#purge(subject);
      removed += 1;
    }
    return removed;
  }

  async #nextMeta(seq: number): Promise<{ meta: Meta; seq: number; at: Instant } | undefined> {
    const found = await this.#get({ seq: Math.max(1, seq), next_by_subj: `${this.#metas}>` });
    if (found === undefined) return undefined;
    const meta = JSON.parse(Buffer.from(found.data ?? "", "base64").toString()) as Meta;
    return { meta, seq: found.seq, at: Date.parse(found.time) as Instant };
  }

  async #get(which: object): Promise<RawMessage["message"] | undefined> {
    try {
      const { message } = await askApi<RawMessage>(
        this.#nats,
        `STREAM.MSG.GET.${this.#stream}`,
        which,
      );
      return message;
    } catch (error) {
      if (apiCodeOf(error) === API_ERROR.noMessageFound) return undefined;
      throw error;
    }
  }

  async #purge(filter: string): Promise<void> {
    await askApi(this.#nats, `STREAM.PURGE.${this.#stream}`, { filter });
  }
}

/** As the object store writes names: base64url, with padding. */
function toSubjectToken(name: string): string {
  const text = Buffer.from(name).toString("base64url");
  return text.padEnd(4 * Math.ceil(text.length / 4), "=");
}
