/** Undoing what an ended or interrupted task has done (spec 5.8): a task of its own. */
import { newId } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import type { Draft } from "./draft.ts";

export interface CompensateOptions {
  /** Of the new task. Default: a fresh id. */
  taskId?: string;
  /** Why it is undone: once for each reason, unless the earlier try failed. */
  reason: string;
  /** What is to be done. */
  description: string;
  /** Who is to do it; without one, whoever accepts it. */
  target?: string;
  /** When it must be done; later it times out. */
  deadline?: Date;
}

export function toCompensation(
  originalTaskId: string,
  options: CompensateOptions,
): Draft & { task_id: string } {
  const { taskId = newId("task"), reason, description, target, deadline } = options;
  const payload: JsonObject = {
    task_id: taskId,
    original_task: originalTaskId,
    reason,
    description,
    ...(deadline === undefined ? {} : { deadline: deadline.toISOString() }),
  };
  return {
    type: "compensation.requested",
    task_id: taskId,
    compensation_id: originalTaskId,
    ...(target === undefined ? {} : { target }),
    payload,
  };
}

export function toCompensated(taskId: string, originalTaskId: string): Draft {
  return {
    type: "compensation.completed",
    task_id: taskId,
    compensation_id: originalTaskId,
    payload: { task_id: taskId, original_task: originalTaskId },
  };
}
