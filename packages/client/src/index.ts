export { authFromFile, CHECKPOINT_BYTES_MAX } from "@harmovela/bus";
export { Agent, type AgentOptions, type PublishOptions, type TasksOptions } from "./agent.ts";
export type {
  Belief,
  BeliefOptions,
  Ground,
  RetractOptions,
  ReviseOptions,
} from "./belief-draft.ts";
export {
  type BeliefChange,
  type BeliefNews,
  BeliefWatch,
  type WatchOptions,
} from "./belief-watch.ts";
export { type BeliefName, Beliefs, type Doubt, type Useable } from "./beliefs.ts";
export { BucketShelf, type CheckpointShelf } from "./checkpoint-shelf.ts";
export {
  type Checkpoint,
  CheckpointStore,
  type ExternalCheckpoint,
} from "./checkpoint-store.ts";
export type { CompensateOptions } from "./compensation.ts";
export { type ConnectOptions, connect, openAgent } from "./connect.ts";
export { formatCursor, type Position, parseCursor } from "./cursor.ts";
export { type Acceptance, DelegationHandle, type Handoff } from "./delegation-handle.ts";
export type { DelegateOptions, Work } from "./delegation-request.ts";
export type { Draft } from "./draft.ts";
export type { Filter } from "./filter.ts";
export type {
  InterruptionPolicy,
  InterruptOptions,
  ResumeOptions,
} from "./interruption-draft.ts";
export { InterruptionHandle, type Saved } from "./interruption-handle.ts";
export { Interruptions, type InterruptionView } from "./interruptions.ts";
export type { Job, JobContext, JobFunction } from "./job-context.ts";
export type { InterruptionNotice, InterruptListener } from "./job-interruptions.ts";
export type { Gap, Observed } from "./lane.ts";
export { type From, Observation, type ObserveOptions } from "./observation.ts";
export type { Reading, ReadOptions } from "./reads.ts";
export { RejectedError } from "./rejected-error.ts";
export type { ResumedFrom } from "./resumed-from.ts";
export type { RetryOptions } from "./retry.ts";
export type { Settled, TerminalState } from "./settled.ts";
export { type SigningKey, signEnvelope } from "./sign.ts";
export {
  type CancelOptions,
  type SubmitSpec,
  type TaskError,
  TaskHandle,
  type WorkReport,
} from "./task-handle.ts";
export { TaskStream } from "./task-stream.ts";
export type { Stored, Verdict } from "./verdict.ts";
export { Worker } from "./worker.ts";
export type { SignalSource, WorkerOptions } from "./worker-options.ts";
export { WorkerTask } from "./worker-task.ts";
