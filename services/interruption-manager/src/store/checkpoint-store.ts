/**
 * The store of checkpoints: made by this service, and kept to what somebody may still go on from.
 *
 * K1 What the registry names stays, and so does what was stored for a task that lives after what it names last:
 *    its agent may be about to register it. There is no age at which a checkpoint goes by itself.
 * K2 What belongs to no task that is known goes only after an hour: this fold may not know of the task yet.
 * K3 A sweep looks at a bounded part of the store; the next one goes on behind it.
 * K4 Before a tenant is refused for its quota, what was stored for its tasks that have ended goes too: nobody can
 *    resume them. What a live task's registry names never does.
 */
import {
  type Blobs,
  CHECKPOINT_BUCKET,
  CHECKPOINT_STORE_BYTES,
  decodeToken,
  type StoredBlob,
} from "@harmovela/bus";
import type { Instant } from "@harmovela/envelope";
import { toHarmovelaError } from "@harmovela/failure";
import type { Companion, CompanionContext } from "@harmovela/host";
import { findTask, type ManagerState, type TaskRecord } from "../state.ts";

export interface CheckpointStoreOptions {
  /** Room for all checkpoints together. */
  maxBytes: number;
  /** Room for those of one tenant; default `tenantBytesOf` the room of all. */
  tenantBytes?: number;
  /** Between two sweeps, milliseconds. */
  sweepMs: number;
  /** From when on what nothing is known of may go, milliseconds. */
  unknownMs: number;
}

export const DEFAULT_CHECKPOINT_STORE: CheckpointStoreOptions = {
  maxBytes: CHECKPOINT_STORE_BYTES,
  sweepMs: 600_000,
  unknownMs: 3_600_000,
};

/** So much each tenant may store at least, unless told otherwise: a few of the largest checkpoints. */
const TENANT_BYTES_MIN = 32 * 1024 * 1024;

/** A quarter of the room: one tenant that fills its quota, or three of them, leave room for others. */
export function tenantBytesOf(maxBytes: number): number {
  return Math.max(TENANT_BYTES_MIN, Math.floor(maxBytes / 4));
}

/** Before another try when the store cannot be made or looked at. */
const RETRY_MS = 5_000;
/** Checkpoints looked at in one sweep. */
const SWEPT_MAX = 4_096;
const PAGE = 256;

/** Makes the store, then sweeps it for as long as this process leads. */
export function openCheckpointStore(
  context: CompanionContext<ManagerState>,
  options: CheckpointStoreOptions,
): Companion {
  const { bus, clock, logger, replicas, leading } = context;
  const { maxBytes, sweepMs } = options;
  const blobs = bus.openBlobs({ bucket: CHECKPOINT_BUCKET, replicas, maxBytes });
  let isClosed = false;
  let cancel: () => void = () => {};
  let work: Promise<void> = Promise.resolve();
  let from = 0;
  const turn = async (): Promise<void> => {
    let isDone = false;
    try {
      // Looking at it makes it.
      if (leading() === undefined) await blobs.page(0, 1);
      else from = await sweepCheckpoints(blobs, from, leading, options);
      isDone = true;
    } catch (error) {
      if (isClosed) return;
      logger.warn(
        { err: toHarmovelaError(error) },
        "the store of checkpoints cannot be looked after",
      );
    }
    if (isClosed) return;
    cancel = clock.after(isDone && from === 0 ? sweepMs : RETRY_MS, () => {
      work = turn();
    });
  };
  work = turn();
  return {
    close: async () => {
      isClosed = true;
      cancel();
      await work;
    },
  };
}

/** Looks at a part of the store; the result: where the next sweep begins, 0 when the end was reached. */
export async function sweepCheckpoints(
  blobs: Blobs,
  from: number,
  leading: CompanionContext<ManagerState>["leading"],
  { unknownMs }: Pick<CheckpointStoreOptions, "unknownMs">,
): Promise<number> {
  let at: number | undefined = from;
  for (let looked = 0; at !== undefined; looked += PAGE) {
    if (looked >= SWEPT_MAX) return at;
    const { blobs: found, next } = await blobs.page(at, PAGE);
    for (const blob of found) {
      const view = leading();
      if (view === undefined) return from;
      if (isGarbage(view, blob, unknownMs)) await blobs.remove(blob.name);
    }
    at = next;
  }
  await blobs.removeIncomplete(unknownMs);
  return 0;
}

/** K1, K2. */
function isGarbage(
  { state, now }: { state: ManagerState; now: Instant },
  { name, at }: Pick<StoredBlob, "name" | "at">,
  unknownMs: number,
): boolean {
  const checkpointId = namesIn(name)[2];
  const task = taskOf(state, name);
  if (task === undefined) return at < now - unknownMs;
  if (checkpointId !== undefined && task.checkpoints?.has(checkpointId)) return false;
  return task.ended !== undefined || at < lastRegistered(task) - unknownMs;
}

/** K4. */
export function mayGiveWay(
  view: { state: ManagerState; now: Instant },
  blob: Pick<StoredBlob, "name" | "at">,
  unknownMs: number,
): boolean {
  return taskOf(view.state, blob.name)?.ended !== undefined || isGarbage(view, blob, unknownMs);
}

function taskOf(state: ManagerState, name: string): TaskRecord | undefined {
  const [tenant, taskId] = namesIn(name);
  return tenant === undefined || taskId === undefined ? undefined : findTask(state, tenant, taskId);
}

function namesIn(name: string): (string | undefined)[] {
  return name.split(".").map((token) => decodeToken(token));
}

/** By the clock of its agent. */
function lastRegistered({ checkpoints }: TaskRecord): Instant {
  let last = Number.NEGATIVE_INFINITY;
  for (const checkpoint of checkpoints?.values() ?? []) last = Math.max(last, checkpoint.at);
  return last;
}
