/** What the function of a worker is given, and what it gives back. */
import type { JsonObject, JsonValue } from "@harmovela/failure";
import type { ExternalCheckpoint } from "./checkpoint-store.ts";
import type { DelegationHandle } from "./delegation-handle.ts";
import type { DelegateOptions, Work } from "./delegation-request.ts";
import type { InterruptListener } from "./job-interruptions.ts";
import type { ResumedFrom } from "./resumed-from.ts";
import type { WorkReport } from "./task-handle.ts";
import type { Verdict } from "./verdict.ts";

/** What is to be done. */
export interface Job {
  taskId: string;
  parentTaskId: string | undefined;
  /** Who has given it. */
  delegatedBy: string;
  description: string | undefined;
  context: JsonObject;
  /** RFC 3339. */
  deadline: string | undefined;
  /** The whole of the request's payload. */
  payload: JsonObject;
}

export interface JobContext {
  /**
   * Aborts when the work is not wanted any more: cancellation asked for, the task ended by others,
   * given to somebody else (`task_cancelled`, with the event's id and type in `details`); when the
   * session was lost; when the worker is closed and its time is up. And when the job is to stop so that it
   * can go on later (`interrupted`); whoever throws then is saved with the newest checkpoint.
   */
  readonly signal: AbortSignal;
  /** The session in which this process speaks. */
  readonly sessionId: string | undefined;
  progress(report?: WorkReport): Promise<Verdict>;
  output(report?: WorkReport): Promise<Verdict>;
  /** Gives a part of the work to somebody else; the job ends after it. */
  delegate(
    to: string,
    work: Work,
    options?: Omit<DelegateOptions, "parent">,
  ): Promise<DelegationHandle>;
  /**
   * Calls it when the job is to stop so that it can go on later, with how. Under `save_and_stop` the signal
   * aborts when it has returned, so that it can save what there is to save; under `force_stop` at once; under
   * `drain_then_stop` after the job's next checkpoint, so that the unit of work under way is finished. The
   * job then stops; what it returns completes the task, unless that is nothing. The result ends it.
   */
  onInterrupt(listener: InterruptListener): () => void;
  /**
   * Keeps a state that the job can go on from, here or in another process; resolves with its id when it is
   * stored. The newest one counts. Throws `checkpoint_too_large` (8 MiB),
   * `quota_exceeded`, `store_full`, `no_service`, and what kept it from being stored: then it does not exist.
   */
  checkpoint(data: Uint8Array | JsonValue): Promise<string>;
  /** The same for a state in a store of the agent's own. */
  checkpointAt(where: ExternalCheckpoint): Promise<string>;
  /** Where the job goes on; undefined when it begins. */
  readonly resumedFrom: ResumedFrom | undefined;
}

/** Its result completes the task, what it throws fails it; a HarmovelaError says with which code. */
export type JobFunction = (
  job: Job,
  ctx: JobContext,
) => Promise<JsonValue | undefined> | Promise<void> | JsonValue | undefined;
