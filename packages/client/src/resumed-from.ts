/** What a job that goes on is given to go on from. */
import { HarmovelaError, type JsonValue } from "@harmovela/failure";
import type { Checkpoint, CheckpointStore } from "./checkpoint-store.ts";

export interface ResumedFrom {
  readonly checkpointId: string;
  /** Where its bytes are; `s3://…` and the like are for the job itself to open. */
  readonly location: string | undefined;
  /**
   * What was saved; nothing when the job had not saved anything before it was stopped. Throws
   * `checkpoint_missing` when it cannot be had, or is not what was registered: a job that lets this pass
   * fails with it.
   */
  bytes(): Promise<Uint8Array>;
  /** The same as JSON; undefined where there is nothing. */
  json(): Promise<JsonValue | undefined>;
}

export function toResumedFrom(store: CheckpointStore, checkpoint: Checkpoint): ResumedFrom {
  const { checkpointId, location } = checkpoint;
  const bytes = (): Promise<Uint8Array> => store.open(checkpoint);
  return { checkpointId, location, bytes, json: async () => parsed(await bytes(), checkpointId) };
}

function parsed(bytes: Uint8Array, checkpointId: string): JsonValue | undefined {
  if (bytes.length === 0) return undefined;
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)) as JsonValue;
  } catch (cause) {
    const details = { checkpoint_id: checkpointId };
    throw new HarmovelaError("invalid_argument", "the checkpoint is no JSON", { cause, details });
  }
}
