/** Who may say what about a live task (spec 5.4, work order "ownership"). */
import type { Envelope } from "@harmovela/envelope";
import type { ErrorPayload } from "@harmovela/failure";
import { delegationOf, isPending } from "../delegation/state.ts";
import { isElsewhere } from "../instances.ts";
import type { Task } from "../state.ts";
import { refusal } from "./refusals.ts";

/**
 * Owner (or target while nobody owns it) and submitter, of the task or of an ancestor: whoever may
 * cancel a task may cancel what is below it.
 */
export function isEntitledToCancel(task: Task, source: string): boolean {
  for (let at: Task | undefined = task; at; at = at.parent) {
    if (source === at.submitter || source === (at.owner ?? (isOffered(at) ? undefined : at.target)))
      return true;
  }
  return false;
}

function mayTake(task: Task, source: string): boolean {
  return task.owner === undefined
    ? task.target === undefined || task.target === source
    : task.owner === source;
}

function mayEnd(task: Task, source: string): boolean {
  return task.owner === undefined
    ? task.submitter === source || (task.target === source && !isOffered(task))
    : task.owner === source;
}

/** Work on a task that nobody took is an illegal transition, which says more; one given back rests. */
function mayWork({ owner, state }: Task, source: string): boolean {
  return owner === undefined ? state === "submitted" || state === "accepted" : owner === source;
}

/** Undefined when the sender may send this task event; else `unauthorized` naming who may. */
export function authorityRefusal(
  task: Task,
  type: string,
  source: string,
): ErrorPayload | undefined {
  switch (type) {
    case "task.cancelled":
    case "task.cancel.requested":
      return isEntitledToCancel(task, source) ? undefined : stranger(task, type, source);
    case "task.accepted":
    case "task.started":
      return mayTake(task, source) ? undefined : stranger(task, type, source);
    case "task.failed":
    case "task.timed_out":
      return mayEnd(task, source) ? undefined : stranger(task, type, source);
    default:
      return mayWork(task, source) ? undefined : stranger(task, type, source);
  }
}

/**
 * Who takes a task in its own session has it for that session: another process of the same name does
 * not work on it (spec 5.1, 5.4). Cancelling is the agent's, wherever it speaks.
 */
export function instanceRefusal(task: Task, envelope: Envelope): ErrorPayload | undefined {
  const { type, source, session_id } = envelope;
  const { instance } = task;
  if (type === "task.cancelled" || type === "task.cancel.requested") return undefined;
  if (!isElsewhere(instance, session_id)) return undefined;
  const message = `${source} has task ${task.id} in another session`;
  const details = { task_id: task.id, owner: source, session_id: instance.session };
  return refusal("unauthorized", message, details);
}

function stranger(task: Task, type: string, source: string): ErrorPayload {
  return refusal("unauthorized", `${source} may not send ${type} for task ${task.id}`, {
    task_id: task.id,
    ...(task.owner === undefined ? {} : { owner: task.owner }),
    ...(task.target === undefined ? {} : { target: task.target }),
  });
}

/** An offer that nobody accepted gives no rights over the task. */
function isOffered(task: Task): boolean {
  const delegation = delegationOf(task);
  return delegation !== undefined && isPending(delegation);
}
