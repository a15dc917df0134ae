import {
  type ErrorCode,
  type ErrorPayload,
  type JsonObject,
  RETRYABLE_BY_CODE,
} from "@harmovela/failure";
import type { PlanState, Task } from "../state.ts";

/** Ids listed in a refusal; the count beside them is exact. */
const LISTED_MAX = 20;

export function refusal(code: ErrorCode, message: string, details?: JsonObject): ErrorPayload {
  const retryable = RETRYABLE_BY_CODE[code];
  return details ? { code, message, retryable, details } : { code, message, retryable };
}

/** The task is terminal: names the event that won (spec 5.4). */
export function alreadyEnded(task: Task): ErrorPayload {
  return refusal("task_error", `task ${task.id} is already ${task.state}`, {
    task_id: task.id,
    state: task.state,
    ...winnerOf(task),
  });
}

export function winnerOf(task: Task): JsonObject {
  const { ended } = task;
  return ended ? { winner: { event_id: ended.id, type: ended.type, seq: ended.seq } } : {};
}

/** A plan has closed the subtree in which the task stands. */
export function settling(task: Task, plan: PlanState, message: string): ErrorPayload {
  return refusal("task_error", message, {
    task_id: task.id,
    state: task.state,
    settling_by: plan.id,
    settling_root: plan.root.id,
    pending: true,
  });
}

/** A parent may not complete while a descendant is live (spec 5.5). */
export function activeChildren(task: Task): ErrorPayload {
  const ids: string[] = [];
  for (let child = task.firstLive; child && ids.length < LISTED_MAX; child = child.nextLive) {
    ids.push(child.id);
  }
  return refusal("task_error", `task ${task.id} still has ${task.liveCount} live children`, {
    task_id: task.id,
    active_children: ids,
    active_count: task.liveCount,
  });
}
