import { isObject } from "../record.ts";
import { payloadField, type TaskContext, type TaskEvent } from "./context.ts";
import { holdOf } from "./stops.ts";
import type { Task } from "./task.ts";

/** A `task.failed` of the service: the session that has the task was lost, and is its cause (spec 5.1). */
export function checkOrphan(context: TaskContext, event: TaskEvent, task: Task): void {
  const { sink, settings } = context;
  const { envelope } = event;
  const error = payloadField(envelope, "error");
  if (!isObject(error) || error.code !== "session_timeout") {
    sink.add("orphan-error", `${task.id} fails without the error session_timeout`, task.id);
  }
  if (holdOf(context, event.tenant, task) !== undefined) {
    sink.add("orphan-cause", `${task.id} fails with a session, and it is stopped`, task.id);
  }
  if (context.isLenient && task.heldIn === undefined) return;
  const lostBy = task.heldIn?.lostBy;
  if (settings.orphanedTasks === "fail" && lostBy !== undefined && lostBy === envelope.causation_id)
    return;
  const held = task.heldIn === undefined ? "no session" : `session ${task.heldIn.id}`;
  sink.add("orphan-cause", `${task.id} fails by ${envelope.causation_id}, ${held} has it`, task.id);
}
