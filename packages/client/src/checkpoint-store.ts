/**
 * Where agents keep what they go on from: the bucket of checkpoints, which the interruption manager makes.
 *
 * C1 A checkpoint exists when `put` has resolved: its bytes are stored, and nobody is told of it before.
 * C2 Of what is read the digest is checked. What others registered under another name is never opened.
 */
import { createHash } from "node:crypto";
import { CHECKPOINT_BYTES_MAX, checkpointName } from "@harmovela/bus";
import { newId } from "@harmovela/envelope";
import { HarmovelaError, type JsonValue, toHarmovelaError } from "@harmovela/failure";
import type { CheckpointName, CheckpointShelf } from "./checkpoint-shelf.ts";

/** A state of a task that work can go on from. */
export interface Checkpoint {
  checkpointId: string;
  taskId: string;
  /** When it was made, RFC 3339. */
  at: string;
  bytes?: number;
  /** Absent: kept by the agent itself. `hv-checkpoint:…`: in the bucket. Anything else only a name. */
  location?: string;
  /** `sha-256:<hex>` of its bytes. */
  digest?: string;
}

/** What of a checkpoint is made elsewhere, in a store of the agent's own. */
export interface ExternalCheckpoint {
  /** As in `s3://bucket/key`: told to whoever goes on, and never opened here. */
  location: string;
  bytes?: number;
  /** `sha-256:<hex>`. */
  digest?: string;
}

const SCHEME = "hv-checkpoint:";
export class CheckpointStore {
  readonly #shelf: CheckpointShelf;
  readonly #tenant: string;

  constructor(shelf: CheckpointShelf, tenant: string) {
    this.#shelf = shelf;
    this.#tenant = tenant;
  }

  /** Throws `checkpoint_too_large`, `quota_exceeded`, `store_full`, and what kept it from being stored (C1). */
  async put(taskId: string, data: Uint8Array | JsonValue): Promise<Checkpoint> {
    const bytes = data instanceof Uint8Array ? data : toBytes(data);
    if (bytes.length > CHECKPOINT_BYTES_MAX) {
      throw new HarmovelaError("checkpoint_too_large", "that is too much for one checkpoint", {
        details: { bytes: bytes.length, bytes_max: CHECKPOINT_BYTES_MAX },
      });
    }
    const made = { ...described(taskId, bytes), location: "" };
    made.location = this.#locationOf(made);
    await this.#shelf.put(made, bytes);
    return made;
  }

  /** Its bytes. Throws `checkpoint_missing` when they are not there, not here, or not those that were registered (C2). */
  async open(checkpoint: Checkpoint): Promise<Uint8Array> {
    const { location, digest, bytes: size } = checkpoint;
    if (location === undefined && size === 0) return new Uint8Array(0);
    if (location !== this.#locationOf(checkpoint)) {
      const why = location === undefined ? "kept by the agent itself" : "kept elsewhere";
      throw missing(checkpoint, `its bytes are ${why}`);
    }
    const bytes = await this.#read(checkpoint);
    if (bytes === undefined) throw missing(checkpoint, "its bytes are not there any more");
    if (digest !== undefined && digest !== digestOf(bytes))
      throw missing(checkpoint, "its bytes are not those that were saved");
    return bytes;
  }

  /** The newest that was stored for a task, whoever stored it. Walks through the whole bucket. */
  async newest(taskId: string): Promise<Checkpoint | undefined> {
    const kept = await this.#shelf.newest(taskId);
    return kept && { ...kept, location: this.#locationOf(kept) };
  }

  /** Nothing happens when it is not there, or not in this store. */
  async remove(checkpoint: Checkpoint): Promise<void> {
    if (checkpoint.location === this.#locationOf(checkpoint)) await this.#shelf.remove(checkpoint);
  }

  async #read(checkpoint: Checkpoint): Promise<Uint8Array | undefined> {
    try {
      return await this.#shelf.get(checkpoint);
    } catch (error) {
      if (toHarmovelaError(error).code !== "no_service") throw error;
      throw missing(checkpoint, "there is no store of checkpoints");
    }
  }

  #locationOf({ taskId, checkpointId }: CheckpointName): string {
    return `${SCHEME}${checkpointName(this.#tenant, taskId, checkpointId)}`;
  }
}

/** A checkpoint that says "from the start": there is nothing to store. */
export function fromTheStart(taskId: string): Checkpoint {
  return described(taskId, new Uint8Array(0));
}

/** One that the agent keeps in a store of its own. */
export function external(taskId: string, at: ExternalCheckpoint): Checkpoint {
  const { location, bytes, digest } = at;
  if (location === "" || location.startsWith(SCHEME))
    throw new HarmovelaError("invalid_argument", "that is no location outside the store");
  return {
    checkpointId: newId("ckpt"),
    taskId,
    at: new Date().toISOString(),
    location,
    ...(bytes === undefined ? {} : { bytes }),
    ...(digest === undefined ? {} : { digest }),
  };
}

function described(
  taskId: string,
  bytes: Uint8Array,
): Checkpoint & { bytes: number; digest: string } {
  return {
    checkpointId: newId("ckpt"),
    taskId,
    at: new Date().toISOString(),
    bytes: bytes.length,
    digest: digestOf(bytes),
  };
}

function digestOf(bytes: Uint8Array): string {
  return `sha-256:${createHash("sha256").update(bytes).digest("hex")}`;
}

function toBytes(value: JsonValue): Uint8Array {
  const text: string | undefined = JSON.stringify(value);
  if (text === undefined)
    throw new HarmovelaError("invalid_argument", "a checkpoint is bytes or a JSON value");
  return new TextEncoder().encode(text);
}

function missing({ taskId, checkpointId, location }: Checkpoint, why: string): HarmovelaError {
  return new HarmovelaError("checkpoint_missing", why, {
    details: {
      task_id: taskId,
      checkpoint_id: checkpointId,
      ...(location === undefined ? {} : { location }),
    },
  });
}
