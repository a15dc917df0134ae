import { isObject } from "../record.ts";
import { payloadField, type TaskContext, type TaskEvent } from "./context.ts";
import type { Task } from "./task.ts";

/** A `task.timed_out` of the service: declared, due, and with its error (spec 5.4). */
export function checkTimeOut(context: TaskContext, event: TaskEvent, task: Task): void {
  const { sink } = context;
  const error = payloadField(event.envelope, "error");
  if (!isObject(error) || error.code !== "task_timeout") {
    sink.add("timeout-error", `${task.id} is timed out without the error task_timeout`, task.id);
  }
  if (task.isAdopted) return;
  if (task.due === undefined) {
    sink.add("timeout-undeclared", `${task.id} declared no deadline`, task.id);
  } else if (event.frame.at < task.due) {
    const message = `${task.id} is timed out at ${event.frame.at}, it is due at ${task.due}`;
    sink.add("timeout-early", message, task.id);
  }
}
