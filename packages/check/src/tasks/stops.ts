/** What the log of interruptions means for tasks: a stopped one does no work (spec 5.7). */
import type { Hold } from "../interruptions/view.ts";
import type { TaskContext, TaskEvent } from "./context.ts";
import type { Task } from "./task.ts";

/** What may be said of a stopped task. */
const ENDS: ReadonlySet<string> = new Set(["cancelled", "cancel.requested", "failed", "timed_out"]);

/** What holds a task as far as the entry at hand has seen it. */
export function holdOf({ interruptions }: TaskContext, tenant: string, task: Task) {
  return interruptions?.hold(tenant, task.id);
}

/** Whether the entry has seen interruptions of which nothing is known here. */
export function isBlind({ interruptions }: TaskContext, { frame }: TaskEvent): boolean {
  const isRead = interruptions !== undefined && !interruptions.isLenient;
  return !isRead && (frame.seen.get("interruptions") ?? 0) > 0;
}

/** Whether a task may be stopped: it is, or the entry has seen a log that is not read here. */
export function maybeStopped(context: TaskContext, event: TaskEvent, task: Task): boolean {
  return isBlind(context, event) || holdOf(context, event.tenant, task) !== undefined;
}

/** Nobody works on a task between `saved` or a forced stop and `resumed`. */
export function checkWork(context: TaskContext, event: TaskEvent, task: Task, name: string): void {
  if (ENDS.has(name)) return;
  const hold = holdOf(context, event.tenant, task);
  if (hold === undefined) return;
  context.sink.add("stopped-work", `${name} of ${task.id}, which ${describe(hold)}`, task.id);
}

/** No task is added below one that is stopped. */
export function checkSpawn(context: TaskContext, event: TaskEvent, parent: Task, id: string): void {
  const hold = holdOf(context, event.tenant, parent);
  if (hold === undefined) return;
  context.sink.add("stopped-spawn", `${id} joins ${parent.id}, which ${describe(hold)}`, id);
}

const describe = ({ since, why }: Hold): string =>
  why === "ending" ? `is to end since ${since}` : `is stopped (${why}) since ${since}`;
