/** Events that the service writes by itself; a function of what owes them, so they can be named before they exist. */
import { deriveId, type Envelope, formatInstant, type Instant } from "@harmovela/envelope";
import { type JsonObject, reject } from "@harmovela/failure";
import { delegationOf } from "./delegation/state.ts";
import { textOf } from "./rules/identity.ts";
import { bounded } from "./rules/text.ts";
import { REASON_LENGTH_MAX, type TaskSettings } from "./settings.ts";
import type { DeadlineTimer, LostInstance, PlanState, Task } from "./state.ts";

const SPEC_VERSION = "0.2";

/** The id under which a plan ends a task: its root under its own event's id, others under a derived one. */
export function endIdOf(plan: PlanState, task: Task): string {
  if (task === plan.root && plan.grace === undefined) return plan.envelope.id;
  return deriveId(task.tenant.name, plan.id, `cancelled:${task.id}`, plan.at);
}

function requestIdOf(plan: PlanState, task: Task): string {
  return deriveId(task.tenant.name, plan.id, `cancel:${task.id}`, plan.at);
}

function frame(
  settings: TaskSettings,
  task: Task,
  fields: { id: string; type: string; at: Instant; target: string; payload: JsonObject },
): Envelope {
  return {
    spec_version: SPEC_VERSION,
    id: fields.id,
    type: fields.type,
    source: settings.service,
    target: fields.target,
    created_at: formatInstant(fields.at),
    task_id: task.id,
    ...(task.session === undefined ? {} : { session_id: task.session }),
    payload: fields.payload,
  };
}

/** What an event of a plan inherits from the event that opened it (spec 9.9). */
function inherit(plan: PlanState, envelope: Envelope, causation: string): Envelope {
  const { conversation_id, tenant_id, session_id } = plan.envelope;
  if (envelope.session_id === undefined && session_id !== undefined) {
    envelope.session_id = session_id;
  }
  if (conversation_id !== undefined) envelope.conversation_id = conversation_id;
  if (tenant_id !== undefined) envelope.tenant_id = tenant_id;
  envelope.causation_id = causation;
  envelope.correlation_id = plan.id;
  return envelope;
}

function informed(task: Task): string {
  return task.owner ?? task.target ?? task.submitter;
}

function requestReason(plan: PlanState): string {
  return bounded(textOf(plan.envelope, "reason") ?? "cancel requested", REASON_LENGTH_MAX);
}

/** `task.cancelled` of one task of a plan (spec 5.5). */
export function derivedCancelled(
  settings: TaskSettings,
  plan: PlanState,
  task: Task,
  options: { forced: boolean; causation: string },
): Envelope {
  const isRoot = task === plan.root;
  const payload: JsonObject = {
    task_id: task.id,
    state: "cancelled",
    reason: isRoot ? requestReason(plan) : "parent task cancelled",
    root_task_id: plan.root.id,
    root_outcome: plan.kind.slice("task.".length),
  };
  if (options.forced) payload.forced = true;
  const envelope = frame(settings, task, {
    id: endIdOf(plan, task),
    type: "task.cancelled",
    // What is forced happens when the grace is over, not when the request came.
    at: (options.forced ? plan.grace?.due : undefined) ?? plan.at,
    target: informed(task),
    payload,
  });
  return inherit(plan, envelope, options.causation);
}

/** `task.cancel.requested` for the runner of one task of a request's plan. */
export function derivedRequest(settings: TaskSettings, plan: PlanState, task: Task): Envelope {
  const envelope = frame(settings, task, {
    id: requestIdOf(plan, task),
    type: "task.cancel.requested",
    at: plan.at,
    target: informed(task),
    payload: {
      task_id: task.id,
      reason: requestReason(plan),
      grace_period_ms: plan.graceMs,
      root_task_id: plan.root.id,
    },
  });
  return inherit(plan, envelope, requestAbove(plan, task));
}

/** The request that the parent's runner got, else the one that opened the plan. */
export function requestAbove(plan: PlanState, task: Task): string {
  if (task === plan.root) return plan.id;
  return task.parent?.cancelRequested ?? plan.id;
}

export function orphanedIdOf(task: Task, lost: LostInstance): string {
  return deriveId(task.tenant.name, lost.by, `orphaned:${task.id}`, lost.at);
}

/** `task.failed` of a task whose worker was lost with its session (spec 5.1, 9.5). */
export function derivedOrphaned(
  settings: TaskSettings,
  task: Task,
  session: string,
  lost: LostInstance,
): Envelope {
  const error = reject("session_timeout", `the session that had task ${task.id} was lost`, {
    session_id: session,
    ...(task.owner === undefined ? {} : { owner: task.owner }),
  });
  const envelope = frame(settings, task, {
    id: orphanedIdOf(task, lost),
    type: "task.failed",
    at: lost.at,
    target: delegationOf(task)?.delegatedBy ?? task.submitter,
    payload: { task_id: task.id, state: "failed", error: { ...error } },
  });
  envelope.causation_id = lost.by;
  if (task.namesTenant) envelope.tenant_id = task.tenant.name;
  return envelope;
}

export function timedOutIdOf(timer: DeadlineTimer): string {
  const { task, due } = timer;
  return deriveId(task.tenant.name, `deadline:${task.id}`, "timed_out", due);
}

/** `task.timed_out` of a task whose deadline has passed, stamped with the due time (spec 5.4). */
export function derivedTimedOut(
  settings: TaskSettings,
  timer: DeadlineTimer,
  id: string,
): Envelope {
  const { task, due } = timer;
  const envelope = frame(settings, task, {
    id,
    type: "task.timed_out",
    at: due,
    target: task.owner ?? task.submitter,
    payload: {
      task_id: task.id,
      state: "timed_out",
      error: {
        code: "task_timeout",
        message: `task ${task.id} reached no terminal state before its deadline`,
        retryable: true,
      },
    },
  });
  envelope.causation_id = timer.causation;
  if (task.namesTenant) envelope.tenant_id = task.tenant.name;
  return envelope;
}
