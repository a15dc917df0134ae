/** What is legal for a task that is stopped (spec 5.7). */
import type { ErrorPayload, JsonObject } from "@harmovela/failure";
import { refusal } from "../rules/refusals.ts";
import type { Task } from "../state.ts";
import { type Hold, isStopped } from "./state.ts";

/** Ends it, or asks for its end; nothing else of its family counts. */
const LEGAL: ReadonlySet<string> = new Set([
  "task.cancelled",
  "task.cancel.requested",
  "task.failed",
  "task.timed_out",
]);

/** Work on a task that stands still, whoever does it (L1). */
export function stoppedRefusal(task: Task, type: string): ErrorPayload | undefined {
  const { hold } = task;
  if (hold === undefined || !isStopped(task) || LEGAL.has(type)) return undefined;
  const message = `task ${task.id} is stopped by ${hold.id}; no work on it counts`;
  return refusal("task_error", message, { task_id: task.id, ...detailsOf(hold) });
}

/** A task that stands still gets no children. */
export function stoppedParentRefusal(parent: Task, details: JsonObject): ErrorPayload | undefined {
  const { hold } = parent;
  if (hold === undefined || !isStopped(parent)) return undefined;
  const message = `parent ${parent.id} is stopped by ${hold.id}`;
  return refusal("task_error", message, { ...details, ...detailsOf(hold) });
}

function detailsOf({ id, policy, state }: Hold): JsonObject {
  const isOver = state === "cancelled";
  return {
    interruption: id,
    policy,
    state: state === "saved" || isOver ? state : policy,
    expected: isOver
      ? ["task.cancelled"]
      : ["interruption.resumed", "interruption.cancelled", ...LEGAL],
  };
}
