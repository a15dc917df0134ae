/** Where the bytes of checkpoints are, for who may read and write the bucket itself. */
import { type Blobs, checkpointName, checkpointPrefix, decodeToken } from "@harmovela/bus";

export interface CheckpointName {
  taskId: string;
  checkpointId: string;
}

/** What is noted beside the bytes. */
export interface KeptCheckpoint extends CheckpointName {
  /** When it was made, RFC 3339. */
  at: string;
  bytes: number;
  /** `sha-256:<hex>`. */
  digest: string;
}

export interface CheckpointShelf {
  /** Resolves when it is stored. Throws `store_full` when there is no room, `no_service` when there is no store. */
  put(checkpoint: KeptCheckpoint, bytes: Uint8Array): Promise<void>;
  /** Undefined when it is not there. */
  get(checkpoint: CheckpointName): Promise<Uint8Array | undefined>;
  /** The one of a task that was stored last. */
  newest(taskId: string): Promise<KeptCheckpoint | undefined>;
  /** Nothing happens when it is not there. */
  remove(checkpoint: CheckpointName): Promise<void>;
}

/** Checkpoints looked at in one question. */
const PAGE = 256;

export class BucketShelf implements CheckpointShelf {
  readonly #blobs: Blobs;
  readonly #tenant: string;

  constructor(blobs: Blobs, tenant: string) {
    this.#blobs = blobs;
    this.#tenant = tenant;
  }

  put({ taskId, checkpointId, at, digest }: KeptCheckpoint, bytes: Uint8Array): Promise<void> {
    const notes = { task_id: taskId, at, digest };
    return this.#blobs.put(this.#nameOf({ taskId, checkpointId }), bytes, notes);
  }

  get(checkpoint: CheckpointName): Promise<Uint8Array | undefined> {
    return this.#blobs.get(this.#nameOf(checkpoint));
  }

  /** Walks through the whole bucket. */
  async newest(taskId: string): Promise<KeptCheckpoint | undefined> {
    const prefix = checkpointPrefix(this.#tenant, taskId);
    let newest: KeptCheckpoint | undefined;
    for (let from: number | undefined = 0; from !== undefined; ) {
      const { blobs, next } = await this.#blobs.page(from, PAGE);
      for (const { name, bytes, notes } of blobs) {
        const checkpointId = name.startsWith(prefix) ? decodeToken(name.slice(prefix.length)) : "";
        if (!checkpointId) continue;
        const { at = "", digest = "" } = notes;
        newest = { checkpointId, taskId, at, bytes, digest };
      }
      from = next;
    }
    return newest;
  }

  remove(checkpoint: CheckpointName): Promise<void> {
    return this.#blobs.remove(this.#nameOf(checkpoint));
  }

  #nameOf({ taskId, checkpointId }: CheckpointName): string {
    return checkpointName(this.#tenant, taskId, checkpointId);
  }
}
