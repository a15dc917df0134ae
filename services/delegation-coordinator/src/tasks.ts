/** The life of one task in the state: made by its submission, ended by its terminal event. */
import type { EventEntry, Instant } from "@harmovela/envelope";
import { voidDelegation } from "./delegation/offer.ts";
import { createDelegationBook } from "./delegation/state.ts";
import { release } from "./forgetting.ts";
import { takeBack } from "./instances.ts";
import { isRequestOf } from "./interruptions/requests.ts";
import { offerToPlan, removePlan } from "./plans.ts";
import { millisecondsOf, parentIdOf, payloadObject, taskIdOf, textOf } from "./rules/identity.ts";
import { bounded } from "./rules/text.ts";
import type { TerminalName } from "./rules/transitions.ts";
import { LAST_INSTANT, REASON_LENGTH_MAX, type TaskSettings } from "./settings.ts";
import type { DeadlineTimer, Task, TaskState, TenantState } from "./state.ts";
import { dropTimer } from "./timers.ts";
import { linkChild, nextOutside, unlinkChild, unlinkLive } from "./tree.ts";

export function openTenant(state: TaskState, name: string): TenantState {
  let tenant = state.tenants.get(name);
  if (tenant === undefined) {
    tenant = {
      name,
      tasks: new Map(),
      plans: new Map(),
      names: { recent: new Map(), before: new Map() },
      instances: new Map(),
      delegations: createDelegationBook(name, state.tokens),
      compensations: new Map(),
    };
    state.tenants.set(name, tenant);
  }
  return tenant;
}

/** Names that are kept for certain; the older half goes when there are twice as many. */
const NAMES_MAX = 10_000;

/** The tenant's one string object for an agent: a million tasks share few names. */
export function nameIn({ names }: TenantState, name: string): string {
  const recent = names.recent.get(name);
  if (recent !== undefined) return recent;
  const known = names.before.get(name) ?? name;
  if (names.recent.size >= NAMES_MAX) {
    names.before = names.recent;
    names.recent = new Map();
  }
  names.recent.set(known, known);
  return known;
}

/**
 * The live task of an id that the log uses. One that has ended makes room: whoever wrote the log, under
 * a shorter retention perhaps, had forgotten it (architecture, section 6).
 */
export function makeRoom(task: Task | undefined): Task | undefined {
  if (!task?.ended) return task;
  release(task);
  return undefined;
}

/** Adds a submitted task, or fills in one that a delegation has made; what is wrong with the entry, when something is. */
export function addTask(
  state: TaskState,
  settings: TaskSettings,
  entry: EventEntry,
): string | undefined {
  const { envelope, seq } = entry;
  const id = taskIdOf(envelope);
  if (id === undefined) return "a submission without task id";
  const tenant = state.tenants.get(entry.tenant);
  const known = makeRoom(tenant?.tasks.get(id));
  const compensation = tenant?.compensations.get(id);
  const isRequest = isRequestOf(compensation, envelope, settings.interruptionManager);
  const submitter = isRequest ? compensation.requester : envelope.source;
  const task = known
    ? fillIn(known, entry, isRequest && !compensation.isRequested)
    : insertTask(state, entry, id, envelope.target, submitter);
  if (typeof task === "string") return task;
  if (isRequest) compensation.isRequested = true;
  else task.isSubmitted = true;
  const due = deadlineOf(entry);
  if (due !== undefined) setDeadline(state, task, { due, order: seq, causation: envelope.id });
  return undefined;
}

/** A request that comes after the submission brings its deadline, and nothing else. */
function fillIn(task: Task, { envelope, seq }: EventEntry, isRequest: boolean): Task | string {
  if (isRequest) return task;
  if (task.isSubmitted) return `task ${task.id} exists`;
  task.session ??=
    envelope.session_id === undefined ? undefined : nameIn(task.tenant, envelope.session_id);
  task.submittedSeq = seq;
  return task;
}

/** A task in the state that a submission gives it; what is wrong, when something is. */
export function insertTask(
  state: TaskState,
  entry: EventEntry,
  id: string,
  target: string | undefined,
  submitter: string = entry.envelope.source,
): Task | string {
  const { envelope, seq, at } = entry;
  const tenant = openTenant(state, entry.tenant);
  if (tenant.tasks.has(id)) return `task ${id} exists`;
  const parentId = parentIdOf(envelope);
  const parent = parentId === undefined ? undefined : tenant.tasks.get(parentId);
  if (parentId !== undefined && parent === undefined) return `no parent ${parentId}`;
  if (parent?.ended) return `parent ${parentId} has ended`;
  const task: Task = {
    id,
    tenant,
    parent,
    depth: parent ? parent.depth + 1 : 0,
    submitter: nameIn(tenant, submitter),
    target: target === undefined ? undefined : nameIn(tenant, target),
    session: envelope.session_id === undefined ? undefined : nameIn(tenant, envelope.session_id),
    namesTenant: envelope.tenant_id !== undefined,
    isSubmitted: false,
    submittedSeq: seq,
    state: "submitted",
    owner: undefined,
    instance: undefined,
    isFree: false,
    asleepUnder: undefined,
    ringNext: undefined,
    ringPrev: undefined,
    deadline: undefined,
    lastSeq: seq,
    lastAt: at,
    ended: undefined,
    hold: undefined,
    plan: undefined,
    cancelRequested: undefined,
    endPromised: false,
    childCount: 0,
    forgottenCount: 0,
    liveCount: 0,
    firstChild: undefined,
    lastChild: undefined,
    prevSibling: undefined,
    nextSibling: undefined,
    firstLive: undefined,
    lastLive: undefined,
    prevLive: undefined,
    nextLive: undefined,
    entries: [seq],
    entryCount: 1,
  };
  tenant.tasks.set(id, task);
  const compensation = tenant.compensations.get(id);
  if (compensation) compensation.isMade = true;
  if (parent) linkChild(parent, task);
  return task;
}

/** The tighter of the deadline that a task has and another one rules. */
export function setDeadline(
  state: TaskState,
  task: Task,
  { due, order, causation }: { due: Instant; order: number; causation: string },
): void {
  if (task.deadline && task.deadline.due <= due) return;
  const place = { index: -1, heldBy: undefined, isGivenUp: false };
  replaceDeadline(state, task, { kind: "deadline", due, order, task, causation, ...place });
}

export function replaceDeadline(
  state: TaskState,
  task: Task,
  timer: DeadlineTimer | undefined,
): void {
  if (task.deadline) dropTimer(state, task.deadline);
  task.deadline = timer;
  if (timer && !timer.isGivenUp) state.timers.add(timer);
}

/** Takes out a task that was offered only and never had a child. No plan is over it. */
export function removeTask(state: TaskState, task: Task): void {
  replaceDeadline(state, task, undefined);
  unlinkLive(task);
  unlinkChild(task);
  if (task.parent) task.parent.childCount -= 1;
  const { tenant } = task;
  tenant.tasks.delete(task.id);
  const compensation = tenant.compensations.get(task.id);
  if (compensation === undefined) return;
  // Its task may still come, by another offer or by the request.
  compensation.isMade = false;
  state.over.push({ kind: "compensation", at: task.lastAt, tenant, compensation });
}

/** `timeout_ms` and `deadline_ms` mean the same and run from receipt; the tighter one rules (spec 5.4, C32). */
function deadlineOf(entry: EventEntry): Instant | undefined {
  const spans = [
    millisecondsOf(entry.envelope, "timeout_ms"),
    millisecondsOf(entry.envelope, "deadline_ms"),
  ].filter((span) => typeof span === "number");
  if (spans.length === 0) return undefined;
  return Math.min(entry.at + Math.min(...spans), LAST_INSTANT);
}

/** Ends a task that has no live child. */
export function endTask(
  state: TaskState,
  settings: TaskSettings,
  task: Task,
  to: TerminalName,
  entry: EventEntry,
): void {
  const { envelope } = entry;
  // Only the service's own word says that a plan ended the task.
  const isPlanned = envelope.source === settings.service;
  leaveWalks(state, task);
  unlinkLive(task);
  // A parent without runner whose last live child has ended.
  if (task.parent) offerToPlan(state, task.parent);
  const reason = textOf(envelope, "reason") ?? errorMessageOf(entry);
  task.state = to;
  task.hold = undefined;
  task.ended = {
    id: envelope.id,
    type: `task.${to}`,
    seq: entry.seq,
    at: entry.at,
    by: nameIn(task.tenant, envelope.source),
    causation: envelope.causation_id,
    correlation: envelope.correlation_id,
    reason: reason === undefined ? undefined : bounded(reason, REASON_LENGTH_MAX),
    rootOutcome: isPlanned ? textOf(envelope, "root_outcome") : undefined,
    rootTask: isPlanned ? textOf(envelope, "root_task_id") : undefined,
    forced: isPlanned && payloadObject(envelope)?.forced === true,
  };
  if (task.deadline) dropTimer(state, task.deadline);
  takeBack(state, task);
  voidDelegation(state, task, entry.seq);
  if (task.plan) removePlan(state, task.plan);
  state.over.push({ kind: "task", at: entry.at, tenant: task.tenant, task });
}

function errorMessageOf(entry: EventEntry): string | undefined {
  const error = payloadObject(entry.envelope)?.error;
  if (typeof error !== "object" || error === null || Array.isArray(error)) return undefined;
  const { message } = error;
  return typeof message === "string" ? message : undefined;
}

/** Walks of requests' plans that stand at the ending task go on behind it. */
function leaveWalks(state: TaskState, task: Task): void {
  if (state.gentleCount === 0) return;
  for (let at: Task | undefined = task; at; at = at.parent) {
    const { plan } = at;
    if (plan && plan.next === task) plan.next = nextOutside(task, plan.root);
    plan?.ready.delete(task);
  }
}
