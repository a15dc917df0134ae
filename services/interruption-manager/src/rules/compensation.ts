/** What an event of the family `compensation` means (spec 5.8). Changes nothing. */
import {
  type Decision,
  type Envelope,
  type Instant,
  type Judged,
  parseInstant,
  SPAN_MS_MAX,
} from "@harmovela/envelope";
import { type ErrorPayload, type JsonObject, reject } from "@harmovela/failure";
import { compensationKey, hasFailed } from "../compensations.ts";
import type { ManagerSettings } from "../settings.ts";
import {
  type Compensation,
  findTask,
  isStopped,
  type ManagerState,
  type TaskRecord,
} from "../state.ts";
import { requestRefusal } from "./authority.ts";
import { taskIdOf, textIn } from "./payload.ts";
import { alreadyEnded, missing, settlingRefusal, unknownTask } from "./refusals.ts";

/** States from which a task may complete (spec 5.4). */
const COMPLETABLE: ReadonlySet<string> = new Set(["started", "progress", "output"]);

/** What is undone: the field, else the payload (section 11, C11). */
export function originalOf(envelope: Envelope): string {
  return envelope.compensation_id ?? textIn(envelope, "original_task") ?? "";
}

/** From receipt to the deadline, milliseconds; one that is past is due at once. */
export function deadlineMsOf(envelope: Envelope, at: Instant): number | undefined {
  const deadline = textIn(envelope, "deadline");
  if (deadline === undefined) return undefined;
  return Math.min(SPAN_MS_MAX, Math.max(0, parseInstant(deadline) - at));
}

export function decideCompensation(
  state: ManagerState,
  settings: ManagerSettings,
  input: Judged,
): Decision {
  const { envelope } = input;
  const { type } = envelope;
  const id = taskIdOf(envelope);
  if (id === undefined) return { reject: missing(type, "task_id") };
  const original = originalOf(envelope);
  if (original === "") return { reject: missing(type, "compensation_id") };
  const named = textIn(envelope, "original_task");
  if (named !== undefined && named !== original) {
    const details = { path: "payload.original_task", compensation_id: original };
    const message = "payload.original_task must be the same as compensation_id";
    return { reject: reject("invalid_envelope", message, details) };
  }
  const refused =
    type === "compensation.requested"
      ? requestedRefusal(state, settings, input, { id, original })
      : completedRefusal(state, input, { id, original });
  if (refused) return { reject: refused };
  const isNamed = envelope.compensation_id !== undefined;
  return { accept: isNamed ? envelope : { ...envelope, compensation_id: original } };
}

interface Ids {
  id: string;
  original: string;
}

function requestedRefusal(
  state: ManagerState,
  settings: ManagerSettings,
  { envelope, tenant: name }: Judged,
  { id, original }: Ids,
): ErrorPayload | undefined {
  const tenant = state.tenants.get(name);
  const task = findTask(state, name, original);
  if (task === undefined && !settings.externalTasks) return unknownTask(original);
  const details = { task_id: id, compensation_id: original };
  if (tenant?.compensations.has(original)) {
    return reject("task_error", `task ${original} is a compensation itself`, details);
  }
  const denied = task && (requestRefusal(task, envelope, settings) ?? runningRefusal(task, id));
  if (denied) return denied;
  if (id === original || tenant?.tasks.has(id) || tenant?.compensations.has(id)) {
    return reject("task_error", `task ${id} exists already`, details);
  }
  const key = compensationKey(name, original, textIn(envelope, "reason") ?? "");
  const before = tenant?.compensationByKey.get(key);
  if (before === undefined || hasFailed(before)) return undefined;
  return reject("task_error", `${original} is compensated for this reason already`, {
    ...details,
    task_id: before.taskId,
    winner: { event_id: before.id, type: "compensation.requested" },
  });
}

/** What still runs is stopped before it is undone. */
function runningRefusal(task: TaskRecord, id: string): ErrorPayload | undefined {
  if (task.ended || (task.open && isStopped(task.open))) return undefined;
  // Nobody tells this service how an external task stands.
  if (task.isExternal && task.open === undefined) return undefined;
  return reject("task_error", `task ${task.id} is still running: interrupt it first`, {
    task_id: id,
    compensation_id: task.id,
    state: task.state,
    expected: ["interruption.saved"],
  });
}

function completedRefusal(
  state: ManagerState,
  { envelope, tenant, source }: Judged,
  { id, original }: Ids,
): ErrorPayload | undefined {
  const compensation = state.tenants.get(tenant)?.compensations.get(id);
  const details = { task_id: id, compensation_id: original };
  if (compensation === undefined || compensation.original !== original) {
    const message = `nobody has asked ${id} to undo ${original}`;
    return reject("task_error", message, { ...details, expected: ["compensation.requested"] });
  }
  const { task, requestedBy, completed } = compensation;
  if (source !== requestedBy && source !== task?.owner) {
    const message = `${source} may not send ${envelope.type} for task ${id}`;
    return reject("unauthorized", message, { ...details, requested_by: requestedBy });
  }
  if (completed) {
    const winner = { event_id: completed.id, type: "compensation.completed" };
    return reject("task_error", `the compensation ${id} is completed already`, {
      ...details,
      winner,
    });
  }
  return workRefusal(compensation, details);
}

/** The task has completed, or can. */
function workRefusal(
  { task, refused }: Compensation,
  details: JsonObject,
): ErrorPayload | undefined {
  if (task === undefined) {
    const message = refused
      ? `task ${details.task_id} could not be made`
      : `task ${details.task_id} is not there yet`;
    return reject("task_error", message, {
      ...details,
      ...(refused ? { refused: refused.code } : {}),
      expected: [refused ? "compensation.requested" : "task.submitted"],
    });
  }
  if (task.ended) return task.ended.type === "task.completed" ? undefined : alreadyEnded(task);
  const settling = settlingRefusal(task);
  if (settling) return settling;
  const { state, liveCount, open } = task;
  if (COMPLETABLE.has(state) && liveCount === 0 && !(open && isStopped(open))) return undefined;
  return reject("task_error", `task ${task.id} cannot complete now`, {
    ...details,
    state,
    live_children: liveCount,
    expected: [expectedFirst(task)],
  });
}

function expectedFirst({ state, open }: TaskRecord): string {
  if (open && isStopped(open)) return "interruption.resumed";
  return COMPLETABLE.has(state) ? "task.completed" : "task.started";
}
