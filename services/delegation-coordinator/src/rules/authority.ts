/** Who may say what about a live task (spec 5.4, work order "ownership"). */
import type { ErrorPayload } from "@harmovela/failure";
import { delegationOf, isPending } from "../delegation/state.ts";
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
