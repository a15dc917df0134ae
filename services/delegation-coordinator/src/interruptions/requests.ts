/**
 * What the service of the domain `interruptions` asks for: it moves no task itself. Granted when its own
 * log, as it was seen, says so (L2); then it is judged like anybody's.
 */
import type { Decision, Envelope, Judged } from "@harmovela/envelope";
import type { ErrorPayload } from "@harmovela/failure";
import { closedBy } from "../rules/closing.ts";
import { parentIdOf } from "../rules/identity.ts";
import { alreadyEnded, refusal, settling } from "../rules/refusals.ts";
import type { Task, TaskState, TenantState } from "../state.ts";
import { stoppedRefusal } from "./rules.ts";
import type { Compensation } from "./state.ts";

/** Undefined when an entry says that this end of the task is due, and the request names it. */
export function requestRefusal(task: Task, envelope: Envelope): ErrorPayload | undefined {
  const { type, causation_id: cause } = envelope;
  const isDue =
    type === "task.completed"
      ? cause !== undefined && task.tenant.compensations.get(task.id)?.completedBy === cause
      : task.hold?.due.some((due) => due.type === type && due.id === cause);
  return isDue ? undefined : unfounded(task.id, envelope);
}

/** A task that undoes another one is submitted in the name of whoever asked for it (spec 5.8). */
export function decideCompensationTask(state: TaskState, input: Judged, id: string): Decision {
  const { envelope } = input;
  const tenant = state.tenants.get(input.tenant);
  const compensation = tenant?.compensations.get(id);
  const isFounded =
    compensation?.id === envelope.causation_id &&
    compensation?.original === envelope.compensation_id &&
    parentIdOf(envelope) === undefined;
  if (tenant === undefined || compensation === undefined || !isFounded) {
    return { reject: unfounded(id, envelope) };
  }
  const task = tenant.tasks.get(id);
  if (task === undefined) return { accept: envelope };
  if (task.ended) return { reject: alreadyEnded(task) };
  if (compensation.isRequested) {
    const details = { task_id: id, state: task.state };
    return { reject: refusal("task_error", `task ${id} exists already`, details) };
  }
  const plan = closedBy(task);
  if (plan) return { reject: settling(task, plan, `task ${id} is being ended`) };
  const stopped = stoppedRefusal(task, envelope.type);
  return stopped ? { reject: stopped } : { accept: envelope };
}

/** An id that is meant for undoing something is used by whoever asked for it, and stands below nothing. */
export function reservedRefusal(
  tenant: TenantState | undefined,
  { envelope, source }: Judged,
  id: string,
): ErrorPayload | undefined {
  const compensation = tenant?.compensations.get(id);
  if (compensation === undefined) return undefined;
  const details = { task_id: id, compensation_id: compensation.original };
  if (compensation.requester !== source) {
    const message = `${source} did not ask for the compensation task ${id}`;
    return refusal("unauthorized", message, details);
  }
  if (parentIdOf(envelope) === undefined) return undefined;
  const message = `task ${id} compensates ${compensation.original} and has no parent`;
  return refusal("task_error", message, { ...details, parent_task_id: null });
}

/** Whether an entry is the one that submits it in the name of its request. */
export function isRequestOf(
  compensation: Compensation | undefined,
  { source, causation_id }: Envelope,
  manager: string,
): compensation is Compensation {
  return compensation !== undefined && source === manager && causation_id === compensation.id;
}

function unfounded(taskId: string, { type, source, causation_id }: Envelope): ErrorPayload {
  const message = `no entry that is known here lets ${source} ask for ${type} of ${taskId}`;
  const details = { task_id: taskId, causation_id: causation_id ?? null };
  return refusal("unauthorized", message, details);
}
