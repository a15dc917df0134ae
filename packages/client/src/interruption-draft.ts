/** What is said about an interruption, as the envelopes that say so (spec 3.1, 5.7). */
import type { Envelope } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import type { Checkpoint } from "./checkpoint-store.ts";
import type { Draft } from "./draft.ts";

export type InterruptionPolicy = NonNullable<Envelope["interruption_policy"]>;

export interface InterruptOptions {
  /** Default `save_and_stop`. */
  policy?: InterruptionPolicy;
  /** How long there is to save, milliseconds from receipt; 0 is at once. Default 5,000; `drain_then_stop`: 60,000. */
  graceMs?: number;
  reason?: string;
  /** "tree": everything live below the task too, leaves first. */
  scope?: "task" | "tree";
  /** Whose work it is, when that is known: it finds the event among those that are meant for it. */
  target?: string;
  /** Further fields of the envelope, as `session_id`. */
  envelope?: Partial<Envelope>;
}

export interface ResumeOptions {
  /** `sha-256:<hex>` of the bytes that are meant: another one is refused. */
  digest?: string;
  /** "tree": also what was stopped with the task, parents first. */
  scope?: "task" | "tree";
  /** Further fields of the envelope, as `session_id`. */
  envelope?: Partial<Envelope>;
}

export function toInterruption(taskId: string, options: InterruptOptions): Draft {
  const { policy = "save_and_stop", graceMs, reason, scope, target, envelope } = options;
  const payload: JsonObject = { task_id: taskId };
  if (graceMs !== undefined) payload.grace_period_ms = graceMs;
  if (reason !== undefined) payload.reason = reason;
  if (scope === "tree") payload.scope = scope;
  return {
    interruption_policy: policy,
    ...(target === undefined ? {} : { target }),
    ...envelope,
    type: "interruption.requested",
    task_id: taskId,
    payload,
  };
}

/** `request`: the id of the `interruption.requested` that is answered. */
export function toAcknowledgement(taskId: string, request: string): Draft {
  return {
    type: "interruption.acknowledged",
    task_id: taskId,
    causation_id: request,
    payload: { task_id: taskId },
  };
}

export function toSaved(checkpoint: Checkpoint, request: string): Draft {
  const { taskId, checkpointId, at, bytes, location, digest } = checkpoint;
  const payload: JsonObject = { task_id: taskId };
  if (bytes !== undefined) payload.bytes_saved = bytes;
  if (location !== undefined) payload.location = location;
  if (digest !== undefined) payload.digest = digest;
  return {
    type: "interruption.saved",
    task_id: taskId,
    causation_id: request,
    checkpoint_id: checkpointId,
    checkpoint_at: at,
    payload,
  };
}

export function toResumption(taskId: string, checkpointId: string, options: ResumeOptions): Draft {
  const { digest, scope, envelope } = options;
  const payload: JsonObject = { task_id: taskId };
  if (digest !== undefined) payload.digest = digest;
  if (scope === "tree") payload.scope = scope;
  return {
    ...envelope,
    type: "interruption.resumed",
    task_id: taskId,
    checkpoint_id: checkpointId,
    payload,
  };
}

export function toCancelledInterruption(
  taskId: string,
  reason: string,
  checkpointId?: string,
): Draft {
  return {
    type: "interruption.cancelled",
    task_id: taskId,
    payload: {
      task_id: taskId,
      reason,
      ...(checkpointId === undefined ? {} : { checkpoint_id: checkpointId }),
    },
  };
}
