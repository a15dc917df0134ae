/**
 * Tasks that undo others (spec 5.8). Called by folds alone.
 *
 * K1 One for each original and reason; another one only when that task failed, timed out, was cancelled
 *    or could not be made.
 */
import { deriveId, type EventEntry } from "@harmovela/envelope";
import { boundedText } from "@harmovela/failure";
import { textIn } from "./rules/payload.ts";
import { REASON_LENGTH_MAX } from "./settings.ts";
import type { Compensation, ManagerState, TaskRecord, TenantState } from "./state.ts";
import { nameIn } from "./tasks/book.ts";

/** One key for original and reason, however long they are. */
export function compensationKey(tenant: string, original: string, reason: string): string {
  return deriveId(tenant, original, `compensation:${reason}`, 0);
}

export function addCompensation(
  tenant: TenantState,
  { envelope, at }: EventEntry,
  ids: { taskId: string; original: string },
): Compensation {
  const { taskId, original } = ids;
  const reason = textIn(envelope, "reason") ?? "";
  const compensation: Compensation = {
    id: envelope.id,
    tenant,
    taskId,
    original,
    requestedBy: nameIn(tenant, envelope.source),
    at,
    reason: boundedText(reason, REASON_LENGTH_MAX),
    key: compensationKey(tenant.name, original, reason),
    request: undefined,
    task: undefined,
    refused: undefined,
    completed: undefined,
  };
  tenant.compensations.set(taskId, compensation);
  tenant.compensationByKey.set(compensation.key, compensation);
  const ofOriginal = tenant.compensationsOf.get(original) ?? new Set<Compensation>();
  tenant.compensationsOf.set(original, ofOriginal.add(compensation));
  return compensation;
}

/** K1. */
export function hasFailed({ refused, task }: Compensation): boolean {
  if (refused) return true;
  return task?.ended !== undefined && task.ended.type !== "task.completed";
}

/** The task is there, made by the request or submitted by the agent itself; not by anybody else. */
export function adopt(tenant: TenantState, task: TaskRecord): void {
  const compensation = tenant.compensations.get(task.id);
  if (compensation === undefined || compensation.refused || compensation.task) return;
  if (task.submitter === compensation.requestedBy) compensation.task = task;
}

/** There will be no such task: its id is somebody else's. */
export function refuseCompensation(
  state: ManagerState,
  compensation: Compensation,
  refused: { code: string; at: number },
): void {
  if (compensation.task) return;
  compensation.refused = refused;
  const { tenant } = compensation;
  state.over.push({ kind: "compensation", at: refused.at, tenant, compensation });
}

export function dropCompensation(compensation: Compensation): void {
  const { tenant, taskId, original, key } = compensation;
  if (tenant.compensations.get(taskId) === compensation) tenant.compensations.delete(taskId);
  if (tenant.compensationByKey.get(key) === compensation) tenant.compensationByKey.delete(key);
  const ofOriginal = tenant.compensationsOf.get(original);
  ofOriginal?.delete(compensation);
  if (ofOriginal?.size === 0) tenant.compensationsOf.delete(original);
}
