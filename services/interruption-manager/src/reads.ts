/** Answers about interruptions, checkpoints and compensations. Pure functions of the state; each is bounded. */
import {
  formatInstant,
  type Instant,
  optionalTextParam,
  textParam,
  wholeParam,
} from "@harmovela/envelope";
import { HarmovelaError, type JsonObject, type JsonValue } from "@harmovela/failure";
import {
  type Checkpoint,
  type Compensation,
  findTask,
  type Interruption,
  isStopped,
  type ManagerState,
  type TaskRecord,
} from "./state.ts";
import { why } from "./why.ts";

type Read = (
  state: ManagerState,
  params: JsonObject,
  context: { tenant: string; now: Instant },
) => JsonValue;

/** Interruptions, or compensations, that one answer lists. */
export const PAGE_LIMIT = 1000;
const STATES = ["requested", "acknowledged", "saved", "stopped"] as const;

export const MANAGER_READS: Readonly<
  Record<
    "interruption" | "interruptions" | "checkpoints" | "checkpoint" | "compensations" | "why",
    Read
  >
> = {
  interruption: (state, params, { tenant }) => interruptionView(foundTask(state, params, tenant)),
  interruptions: readInterruptions,
  checkpoints: (state, params, { tenant }) => {
    const task = foundTask(state, params, tenant);
    const checkpoints = [...(task.checkpoints?.values() ?? [])];
    return { checkpoints: checkpoints.map((one) => checkpointView(task, one)) };
  },
  checkpoint: readCheckpoint,
  compensations: readCompensations,
  why: (state, params, { tenant }) => why(state, tenant, textParam(params, "task_id")),
};

function foundTask(state: ManagerState, params: JsonObject, tenant: string): TaskRecord {
  const id = textParam(params, "task_id");
  const task = findTask(state, tenant, id);
  if (task !== undefined) return task;
  const details = { task_id: id };
  throw new HarmovelaError("task_error", "this tenant has no such task", { details });
}

/** The open one, and the last ones that are over, oldest first. */
function interruptionView(task: TaskRecord): JsonObject {
  const view: JsonObject = {
    task_id: task.id,
    is_stopped: task.open !== undefined && isStopped(task.open),
    past: (task.past ?? []).map(entryView),
    checkpoints: task.checkpoints?.size ?? 0,
  };
  if (task.open) {
    view.open = entryView(task.open);
    const checkpoint = task.checkpoints?.get(task.open.saved?.checkpoint ?? "");
    if (checkpoint) view.checkpoint = checkpointView(task, checkpoint);
  }
  if (task.ended) view.ended = { event_id: task.ended.id, type: task.ended.type };
  const [asked] = task.asked ?? [];
  if (asked) view.asked = { type: asked.envelope.type, event_id: asked.id, attempt: asked.attempt };
  if (task.plan) view.settling_by = task.plan.id;
  return view;
}

function entryView(interruption: Interruption): JsonObject {
  const { id, task, policy, state, requestedBy, at, graceMs, saved, acknowledged } = interruption;
  const view: JsonObject = {
    id,
    task_id: task.id,
    policy,
    state,
    is_stopped: isStopped(interruption),
    requested_by: requestedBy,
    at: formatInstant(at),
  };
  if (interruption.reason !== undefined) view.reason = interruption.reason;
  if (graceMs !== undefined) {
    view.grace_period_ms = graceMs;
    view.due = formatInstant(interruption.due);
  }
  if (acknowledged) view.acknowledged_at = formatInstant(acknowledged.at);
  if (saved) {
    view.checkpoint_id = saved.checkpoint;
    view.saved_at = formatInstant(saved.at);
  }
  if (interruption.isExpiry) view.expired = true;
  if (interruption.treeOf !== undefined) view.tree = interruption.treeOf;
  const { closed } = interruption;
  if (closed) {
    const { by, type, id: event_id } = closed;
    view.closed = { by, type, event_id, at: formatInstant(closed.at) };
    if (closed.checkpoint !== undefined) view.closed.checkpoint_id = closed.checkpoint;
  }
  return view;
}

function checkpointView(task: TaskRecord, checkpoint: Checkpoint): JsonObject {
  const { id, at, bytes, location, digest, owner, interruption, seq } = checkpoint;
  return {
    checkpoint_id: id,
    task_id: task.id,
    at: formatInstant(at),
    ...(bytes === undefined ? {} : { bytes }),
    ...(location === undefined ? {} : { location }),
    ...(digest === undefined ? {} : { digest }),
    owner,
    interruption,
    cursor: `HV_LOG_INTERRUPTIONS:${seq}`,
  };
}

function readCheckpoint(
  state: ManagerState,
  params: JsonObject,
  { tenant }: { tenant: string },
): JsonValue {
  const task = foundTask(state, params, tenant);
  const id = textParam(params, "checkpoint_id");
  const checkpoint = task.checkpoints?.get(id);
  if (checkpoint !== undefined) return checkpointView(task, checkpoint);
  throw new HarmovelaError("checkpoint_missing", "this task has no such checkpoint", {
    details: { task_id: task.id, checkpoint_id: id },
  });
}

/** Open interruptions, the longest open first; `after` is the `next` of the page before. */
function readInterruptions(
  state: ManagerState,
  params: JsonObject,
  { tenant }: { tenant: string },
): JsonValue {
  const limit = wholeParam(params, "limit", { min: 1, max: PAGE_LIMIT, fallback: PAGE_LIMIT });
  const wanted = optionalTextParam(params, "state");
  if (wanted !== undefined && !STATES.some((known) => known === wanted)) {
    throw new HarmovelaError("invalid_query", `state must be one of ${STATES.join(", ")}`);
  }
  const after = optionalTextParam(params, "after");
  const open = state.tenants.get(tenant)?.open ?? new Map<string, Interruption>();
  const interruptions: JsonObject[] = [];
  // A number that stays whatever is closed between two pages.
  let last = after === undefined ? -1 : orderIn(after);
  for (const interruption of open.values()) {
    if (interruption.order <= last || !isWanted(interruption, wanted)) continue;
    if (interruptions.length === limit) return { interruptions, next: String(last) };
    interruptions.push(entryView(interruption));
    last = interruption.order;
  }
  return { interruptions };
}

function orderIn(after: string): number {
  const order = Number(after);
  if (Number.isSafeInteger(order) && order >= 0) return order;
  throw new HarmovelaError("invalid_query", "after must be the next of the page before");
}

function isWanted(interruption: Interruption, wanted: string | undefined): boolean {
  if (wanted === undefined) return true;
  return wanted === "stopped" ? isStopped(interruption) : interruption.state === wanted;
}

/** Of a task that was undone, or of the task that undoes one. */
function readCompensations(
  state: ManagerState,
  params: JsonObject,
  { tenant: name }: { tenant: string },
): JsonValue {
  const id = textParam(params, "task_id");
  const tenant = state.tenants.get(name);
  const own = tenant?.compensations.get(id);
  const all = own ? new Set([own]) : (tenant?.compensationsOf.get(id) ?? new Set());
  if (all.size === 0) foundTask(state, params, name);
  const compensations: JsonObject[] = [];
  for (const one of all) {
    if (compensations.length === PAGE_LIMIT) break;
    compensations.push(compensationView(one));
  }
  return { compensations, total: all.size };
}

function compensationView(compensation: Compensation): JsonObject {
  const { id, taskId, original, requestedBy, at, reason, refused, completed } = compensation;
  const view: JsonObject = {
    id,
    task_id: taskId,
    compensation_of: original,
    requested_by: requestedBy,
    at: formatInstant(at),
    reason,
    state: stateOf(compensation),
  };
  if (refused) view.refused = { code: refused.code, at: formatInstant(refused.at) };
  if (completed) {
    view.completed = { by: completed.by, event_id: completed.id, at: formatInstant(completed.at) };
  }
  return view;
}

/** "requested" until the task is there, then the task's own. */
export function stateOf({ task, refused }: Compensation): string {
  if (task) return task.state;
  return refused ? "refused" : "requested";
}
