import { INSTANT_MAX } from "@harmovela/envelope";
import { isObject } from "../record.ts";
import { payloadField, type TaskContext, type TaskEvent } from "./context.ts";
import type { Task } from "./task.ts";

/** A span from a time on; what would end after the last instant that RFC 3339 can write ends at it. */
export const after = (at: number, span: number): number => Math.min(at + span, INSTANT_MAX);

/** The earlier of two times, either of which may be none. */
export function earlier(one: number | undefined, other: number | undefined): number | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return Math.min(one, other);
}

/** A `task.timed_out` of the service: declared, due, and with its error (spec 5.4). */
export function checkTimeOut(context: TaskContext, event: TaskEvent, task: Task): void {
  const { sink } = context;
  const error = payloadField(event.envelope, "error");
  if (!isObject(error) || error.code !== "task_timeout") {
    sink.add("timeout-error", `${task.id} is timed out without the error task_timeout`, task.id);
  }
  if (task.isAdopted) return;
  const due = earlier(task.due, task.offerDue);
  if (due === undefined) {
    sink.add("timeout-undeclared", `${task.id} declared no deadline`, task.id);
  } else if (event.frame.at < due) {
    const message = `${task.id} is timed out at ${event.frame.at}, it is due at ${due}`;
    sink.add("timeout-early", message, task.id);
  }
}
