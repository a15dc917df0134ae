/**
 * What entries of the own log ask of the coordinator, which alone moves tasks (architecture, section 2).
 * Called by `evolve` alone.
 */
import type { EventEntry } from "@harmovela/envelope";
import { cancelledDraft, completedDraft, failedDraft, submittedDraft } from "./derived.ts";
import { ask } from "./requests.ts";
import { deadlineMsOf } from "./rules/compensation.ts";
import { payloadObject } from "./rules/payload.ts";
import type { ManagerSettings } from "./settings.ts";
import {
  type Compensation,
  findTask,
  isStopped,
  type ManagerState,
  type TaskRecord,
} from "./state.ts";

/** A grace has passed: what it owes is told by the entry itself. */
export function failExpired(
  state: ManagerState,
  settings: ManagerSettings,
  task: TaskRecord,
): void {
  const { open } = task;
  if (open === undefined || !canAsk(task)) return;
  const { id: cause, at } = open;
  const code = "interruption_timeout";
  const message = `nothing was saved of task ${task.id} within the grace period`;
  const details = { task_id: task.id, interruption: cause };
  const draft = failedDraft(settings.service, task, { code, message, cause, at, details });
  ask(state, { tenant: task.tenant, task }, draft, at);
}

/** The coordinator can be asked to end it: it knows the task, and has not been asked yet. */
function canAsk({ ended, isExternal, asked }: TaskRecord): boolean {
  return !(ended || isExternal || asked);
}

/** A resumption without checkpoint was refused: the task fails, and nothing runs (spec 5.7). */
export function followRefusal(
  state: ManagerState,
  settings: ManagerSettings,
  entry: EventEntry,
): void {
  const { envelope, at } = entry;
  const error = payloadObject(envelope)?.error as
    | { code?: unknown; details?: { task_id?: unknown; checkpoint_id?: unknown } }
    | undefined;
  if (error?.code !== "checkpoint_missing") return;
  const task = findTask(state, entry.tenant, String(error.details?.task_id ?? ""));
  if (!task?.open || !isStopped(task.open) || !canAsk(task)) return;
  const named = error.details?.checkpoint_id;
  const code = "checkpoint_missing";
  const message = `task ${task.id} cannot go on: there is no such checkpoint of it`;
  const details = {
    task_id: task.id,
    interruption: task.open.id,
    ...(typeof named === "string" ? { checkpoint_id: named } : {}),
  };
  const failure = { code, message, cause: envelope.id, at, details } as const;
  const draft = failedDraft(settings.service, task, failure);
  ask(state, { tenant: task.tenant, task }, draft, at);
}

/** An agent has cancelled the interruption: the task is to end with it (spec 5.7). */
export function askToCancel(
  state: ManagerState,
  { service }: ManagerSettings,
  task: TaskRecord,
  { envelope, at }: EventEntry,
): void {
  if (!canAsk(task)) return;
  const draft = cancelledDraft(service, task, { envelope, at });
  ask(state, { tenant: task.tenant, task }, draft, at);
}

/** A compensation is completed, and its task with it (spec 5.8). */
export function askToComplete(
  state: ManagerState,
  { service }: ManagerSettings,
  task: TaskRecord,
  { envelope, at }: EventEntry,
): void {
  if (!canAsk(task)) return;
  const draft = completedDraft(service, task, { envelope, at });
  ask(state, { tenant: task.tenant, task }, draft, at);
}

/** A compensation is asked for: there is to be its task (spec 5.8). */
export function askToSubmit(
  state: ManagerState,
  { service }: ManagerSettings,
  compensation: Compensation,
  { envelope, at }: EventEntry,
): void {
  const draft = submittedDraft(service, compensation, envelope, deadlineMsOf(envelope, at));
  ask(state, { tenant: compensation.tenant, compensation }, draft, at);
}
