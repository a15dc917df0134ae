/**
 * Where the bytes of checkpoints are, for who may read and write the bucket itself.
 *
 * S2 The interruption manager is asked for room first, and a refusal for the tenant's quota is heeded. Where it does
 *    not answer, or knows nothing of the task, it is stored nevertheless: the manager finds it when it counts next.
 */
import { type Blobs, checkpointName, checkpointPrefix, decodeToken } from "@harmovela/bus";
import {
  HarmovelaError,
  type JsonObject,
  type JsonValue,
  toHarmovelaError,
} from "@harmovela/failure";

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
  /**
   * Resolves when it is stored. Throws `quota_exceeded` when the tenant has used up its room, `store_full` when there
   * is none for anybody, `no_service` when there is no store.
   */
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
/** Nobody waits longer for the manager before it stores, milliseconds. */
const CLAIM_MS = 1_000;

/** Asks the interruption manager. */
export type AskManager = (
  verb: string,
  params: JsonObject,
  timeoutMs: number,
) => Promise<JsonValue>;

export class BucketShelf implements CheckpointShelf {
  readonly #blobs: Blobs;
  readonly #tenant: string;
  readonly #ask: AskManager | undefined;

  /** Without a manager to ask nothing keeps to a quota. */
  constructor(blobs: Blobs, tenant: string, ask?: AskManager) {
    this.#blobs = blobs;
    this.#tenant = tenant;
    this.#ask = ask;
  }

  async put(checkpoint: KeptCheckpoint, bytes: Uint8Array): Promise<void> {
    const { taskId, at, digest } = checkpoint;
    await this.#claim(checkpoint, bytes.length);
    await this.#blobs.put(this.#nameOf(checkpoint), bytes, { task_id: taskId, at, digest });
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

  async remove(checkpoint: CheckpointName): Promise<void> {
    await this.#blobs.remove(this.#nameOf(checkpoint));
    // So that the room is known to be free; where this is not heard the next count finds it.
    this.#ask?.("checkpoint_remove", nameParams(checkpoint), CLAIM_MS).catch(() => undefined);
  }

  /** S2. */
  async #claim(checkpoint: CheckpointName, bytes: number): Promise<void> {
    try {
      await this.#ask?.("checkpoint_room", { ...nameParams(checkpoint), bytes }, CLAIM_MS);
    } catch (error) {
      const refusal = quotaRefusal(error);
      if (refusal !== undefined) throw refusal;
    }
  }

  #nameOf({ taskId, checkpointId }: CheckpointName): string {
    return checkpointName(this.#tenant, taskId, checkpointId);
  }
}

/** What the manager calls a checkpoint. */
export function nameParams({ taskId, checkpointId }: CheckpointName): JsonObject {
  return { task_id: taskId, checkpoint_id: checkpointId };
}

/** Undefined when it is anything else than a refusal for the tenant's quota. */
export function quotaRefusal(caught: unknown): HarmovelaError | undefined {
  const { message, details = {} } = toHarmovelaError(caught);
  if (details.reason !== "checkpoint_quota") return undefined;
  return new HarmovelaError("quota_exceeded", message, { details, cause: caught });
}
