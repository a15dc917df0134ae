/** The registry of what was saved (spec 5.7): of each task the newest ones. Called by folds alone. */
import { CHECKPOINTS_MAX } from "./settings.ts";
import type { Checkpoint, TaskRecord } from "./state.ts";

/** The newest one from now on; the oldest gives way. What an open interruption saved is the newest. */
export function register(task: TaskRecord, checkpoint: Checkpoint): void {
  const checkpoints = task.checkpoints ?? new Map<string, Checkpoint>();
  task.checkpoints = checkpoints;
  checkpoints.delete(checkpoint.id);
  checkpoints.set(checkpoint.id, checkpoint);
  const [oldest] = checkpoints.keys();
  if (checkpoints.size > CHECKPOINTS_MAX && oldest !== undefined) checkpoints.delete(oldest);
}

/** Nothing of it may change under the same id. */
export function isSameCheckpoint(
  known: Checkpoint,
  { bytes, location, digest }: Pick<Checkpoint, "bytes" | "location" | "digest">,
): boolean {
  return known.bytes === bytes && known.location === location && known.digest === digest;
}

/** Ids of what is registered, the newest first. */
export function checkpointIds({ checkpoints }: TaskRecord): string[] {
  return [...(checkpoints?.keys() ?? [])].reverse();
}
