/**
 * Where the bytes of checkpoints are, for who has a key and no right to the bucket: the interruption manager
 * stores and reads them for whoever has the task.
 *
 * S1 The bytes travel in parts, each with all that is known of the whole: whichever process leads takes them.
 *    One that knows nothing of the parts before says so, and the whole is sent anew.
 */
import type { Clock } from "@harmovela/bus";
import { HarmovelaError, toHarmovelaError } from "@harmovela/failure";
import {
  type AskManager,
  type CheckpointName,
  type CheckpointShelf,
  type KeptCheckpoint,
  nameParams,
  quotaRefusal,
} from "./checkpoint-shelf.ts";
import { isObject } from "./rejected-error.ts";

export interface ShelfDesk {
  clock: Clock;
  ask: AskManager;
}

/** In base64 with the rest still less than what a service takes. */
const PART_BYTES = 256 * 1024;
/** So soon it is tried again where whoever led has been killed. */
const TIMEOUT_MS = 3_000;
/** What takes longer: the last part is answered when the whole is stored, and a bucket is walked through. */
const LONG_TIMEOUT_MS = 10_000;
/** As long as a take-over of the service may take, and some. */
const GIVE_UP_MS = 60_000;
const RETRY_MS = 250;

export class ServiceShelf implements CheckpointShelf {
  readonly #desk: ShelfDesk;

  constructor(desk: ShelfDesk) {
    this.#desk = desk;
  }

  async put(checkpoint: KeptCheckpoint, bytes: Uint8Array): Promise<void> {
    const { at: made_at, digest } = checkpoint;
    const whole = { ...nameParams(checkpoint), made_at, digest, bytes: bytes.length };
    let at = 0;
    await this.#patiently(async () => {
      for (;;) {
        const part = bytes.subarray(at, at + PART_BYTES);
        const isLast = at + part.length === bytes.length;
        const asked = { ...whole, at, data: base64Of(part) };
        const timeoutMs = isLast ? LONG_TIMEOUT_MS : TIMEOUT_MS;
        const result = await this.#desk.ask("checkpoint_put", asked, timeoutMs);
        if (!isObject(result)) throw notUnderstood();
        if (result.stored === true) return;
        const isAhead = Number(result.received) > at;
        at = Math.min(Number(result.received) || 0, bytes.length);
        if (!isAhead) throw begunAnew();
      }
    });
  }

  async get(checkpoint: CheckpointName): Promise<Uint8Array | undefined> {
    const parts: Uint8Array[] = [];
    let at = 0;
    for (;;) {
      const asked = { ...nameParams(checkpoint), at };
      const part = await this.#patiently(() => this.#desk.ask("checkpoint_get", asked, TIMEOUT_MS));
      if (part === null) return undefined;
      if (!isObject(part) || typeof part.data !== "string") throw notUnderstood();
      const bytes = Buffer.from(part.data, "base64");
      parts.push(bytes);
      at += bytes.length;
      if (at >= Number(part.bytes)) return Buffer.concat(parts);
      if (bytes.length === 0) throw notUnderstood();
    }
  }

  async newest(taskId: string): Promise<KeptCheckpoint | undefined> {
    const found = await this.#patiently(() =>
      this.#desk.ask("checkpoint_newest", { task_id: taskId }, LONG_TIMEOUT_MS),
    );
    if (!isObject(found)) return undefined;
    const { checkpoint_id, made_at, bytes, digest } = found;
    return {
      taskId,
      checkpointId: String(checkpoint_id),
      at: String(made_at),
      bytes: Number(bytes),
      digest: String(digest),
    };
  }

  async remove(checkpoint: CheckpointName): Promise<void> {
    const asked = nameParams(checkpoint);
    await this.#patiently(() => this.#desk.ask("checkpoint_remove", asked, TIMEOUT_MS));
  }

  /** Tries again while the service is not there or has too much to do. */
  async #patiently<T>(work: () => Promise<T>): Promise<T> {
    const { clock } = this.#desk;
    const until = clock.monotonic() + GIVE_UP_MS;
    for (;;) {
      try {
        return await work();
      } catch (caught) {
        const error = toHarmovelaError(caught);
        if (error.details?.is_full === true)
          throw new HarmovelaError("store_full", "there is no room for it", { cause: caught });
        const refusal = quotaRefusal(error);
        if (refusal !== undefined) throw refusal;
        if (error.retry === "never" || clock.monotonic() >= until) throw error;
      }
      await new Promise<void>((resolve) => clock.after(RETRY_MS, resolve));
    }
  }
}

function base64Of(data: Uint8Array): string {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64");
}

function begunAnew(): HarmovelaError {
  const message = "another process leads, and knows nothing of what was sent";
  return new HarmovelaError("internal_error", message, { category: "dependency" });
}

function notUnderstood(): HarmovelaError {
  return new HarmovelaError("internal_error", "the answer is none", { retry: "never" });
}
