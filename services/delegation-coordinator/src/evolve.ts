/**
 * The only place that changes state. An entry that does not fit the state cannot come from this
 * service; folding on would hide that, so it throws and names the sequence.
 */
import type {
  BegunEntry,
  DomainEntry,
  Envelope,
  EventEntry,
  ObligationFailedEntry,
} from "@harmovela/envelope";
import { expiredIdOf } from "./delegation/deadline.ts";
import { evolveDelegation, evolveIssue } from "./delegation/evolve.ts";
import { disarm } from "./delegation/offer.ts";
import { orphanedIdOf, timedOutIdOf } from "./derived.ts";
import { forget } from "./forgetting.ts";
import { giveTo, instanceOf, letBe } from "./instances.ts";
import { harden, openGentlePlan, openHardPlan, removePlan } from "./plans.ts";
import { closedBy, hardPlanOver } from "./rules/closing.ts";
import { payloadObject, taskIdOf } from "./rules/identity.ts";
import { isAllowed, isTerminal, stateAfter, type TaskStateName } from "./rules/transitions.ts";
import { HISTORY_LENGTH_MAX, type TaskSettings } from "./settings.ts";
import { findTask, type PlanState, type Task, type TaskState, type Timer } from "./state.ts";
import { addTask, endTask, nameIn } from "./tasks.ts";
import { dropTimer } from "./timers.ts";
import { nextInPreorder } from "./tree.ts";

export function evolve(state: TaskState, settings: TaskSettings, entry: DomainEntry): void {
  forget(state, settings.retentionMs, entry.at);
  switch (entry.kind) {
    case "event":
      evolveEvent(state, settings, entry);
      break;
    case "begun":
      evolveBegun(state, entry);
      break;
    case "obligation_failed":
      evolveFailed(state, entry);
      break;
    case "token_issued": {
      const problem = evolveIssue(state, entry);
      if (problem) misfit(entry, problem);
    }
  }
}

function misfit(entry: DomainEntry, what: string): never {
  throw new Error(`entry ${entry.seq} does not fit: ${what}`);
}

function evolveEvent(state: TaskState, settings: TaskSettings, entry: EventEntry): void {
  const { envelope } = entry;
  if (isAnswer(settings, entry)) return;
  if (envelope.type === "task.submitted") {
    const known = findTask(state, entry.tenant, taskIdOf(envelope) ?? "");
    const problem = addTask(state, settings, entry);
    if (problem) misfit(entry, problem);
    if (known && !known.ended) remember(known, entry.seq);
    return;
  }

  const id = taskIdOf(envelope);
  const tenant = state.tenants.get(entry.tenant);
  const task = id === undefined ? undefined : tenant?.tasks.get(id);
  if (!envelope.type.startsWith("task.")) {
    const problem = evolveDelegation(state, entry);
    if (problem) misfit(entry, problem);
    if (task) remember(task, entry.seq);
    return;
  }
  if (tenant === undefined || task === undefined) misfit(entry, `no task ${id}`);
  if (task.ended) misfit(entry, `task ${id} has ended`);

  const plan = "owed" in entry.cause ? tenant.plans.get(entry.cause.owed) : undefined;
  if (plan) advancePlan(state, plan, task, envelope);
  const to = stateAfter(envelope.type);
  if (to !== undefined) move(state, settings, task, to, entry);
  else if (envelope.type === "task.cancel.requested") request(state, settings, task, entry, plan);
  else misfit(entry, `unknown type ${envelope.type}`);
  remember(task, entry.seq);
  // A task is as active as its own agents are; what the service writes is no sign of life.
  if (envelope.source !== settings.service) task.lastAt = entry.at;
}

/** A refusal of somebody's envelope says nothing about the state; an offer that has expired does. */
function isAnswer(settings: TaskSettings, { envelope, cause }: EventEntry): boolean {
  if (envelope.source !== settings.service || !envelope.type.endsWith(".rejected")) return false;
  return "in" in cause || envelope.type !== "delegation.rejected";
}

function remember(task: Task, seq: number): void {
  task.lastSeq = seq;
  task.entryCount += 1;
  // Exact sizes while short: most tasks have a handful of entries, and there may be a million tasks.
  if (task.entries.length < 16) task.entries = [...task.entries, seq];
  else {
    if (task.entries.length === HISTORY_LENGTH_MAX) task.entries.shift();
    task.entries.push(seq);
  }
}

/** A step of a plan is logged: the plan's turn is over, and its first forced step makes it hard. */
function advancePlan(state: TaskState, plan: PlanState, task: Task, envelope: Envelope): void {
  if (!plan.hard && payloadObject(envelope)?.forced === true) harden(state, plan);
  state.ring.rotate(plan);
  if (!plan.hard || task === plan.root || task.parent === undefined) return;
  task.parent.endPromised = true;
}

function move(
  state: TaskState,
  settings: TaskSettings,
  task: Task,
  to: TaskStateName,
  entry: EventEntry,
): void {
  if (!isAllowed(task.state, to)) misfit(entry, `${task.state} to ${to}`);
  if (isTerminal(to)) {
    if (task.liveCount > 0) misfit(entry, `task ${task.id} has live children`);
    endTask(state, settings, task, to, entry);
    return;
  }
  task.state = to;
  if ((to === "accepted" || to === "started") && task.owner === undefined) {
    task.owner = nameIn(task.tenant, entry.envelope.source);
    giveTo(state, task, instanceOf(state, task.tenant, entry.envelope));
  } else if (task.isFree && entry.envelope.source === task.owner) {
    giveTo(state, task, instanceOf(state, task.tenant, entry.envelope));
  }
}

function request(
  state: TaskState,
  settings: TaskSettings,
  task: Task,
  entry: EventEntry,
  plan: PlanState | undefined,
): void {
  const { envelope, at, seq } = entry;
  if (plan) {
    task.cancelRequested = envelope.id;
    plan.next = nextInPreorder(task, plan.root);
    return;
  }
  if ("owed" in entry.cause) misfit(entry, `no plan ${entry.cause.owed}`);
  if (closedBy(task)) misfit(entry, `task ${task.id} is being ended already`);
  const opening = {
    id: envelope.id,
    root: task,
    kind: "task.cancelled",
    envelope,
    at,
    seq,
  } as const;
  openGentlePlan(state, settings, opening);
}

function evolveBegun(state: TaskState, entry: BegunEntry): void {
  const { plan, at, seq } = entry;
  const id = taskIdOf(plan.envelope);
  const root = id === undefined ? undefined : state.tenants.get(entry.tenant)?.tasks.get(id);
  if (root === undefined) misfit(entry, `no task ${id}`);
  const to = stateAfter(plan.kind);
  if (to === undefined || !isTerminal(to)) misfit(entry, `plan of ${plan.kind}`);
  if (root.ended || !isAllowed(root.state, to)) misfit(entry, `${root.state} to ${to}`);
  if (hardPlanOver(root)) misfit(entry, `task ${root.id} is being ended already`);
  openHardPlan(state, { id: plan.id, root, kind: `task.${to}`, envelope: plan.envelope, at, seq });
  if (root.instance) state.ring.rotate(root.instance);
  remember(root, seq);
}

/** What cannot be written is given up: a plan's subtree opens again, a timer never fires. */
function evolveFailed(state: TaskState, entry: ObligationFailedEntry): void {
  const plans = state.tenants.get(entry.tenant)?.plans;
  const ids = "owed" in entry.cause ? [entry.id, entry.cause.owed] : [entry.id];
  for (const id of ids) {
    const plan = plans?.get(id);
    if (plan) removePlan(state, plan);
  }
  // What was owed was due. Ids are derived from the tenant too.
  for (const timer of state.timers.dueBy(entry.at)) giveUp(state, timer, ids);
  const orphan = orphanOf(state, ids);
  if (orphan) letBe(state, orphan);
}

/** The task whose failure, owed by the loss of its instance, goes by one of these ids. */
function orphanOf(state: TaskState, ids: readonly string[]): Task | undefined {
  for (const member of state.ring.backwards()) {
    if (member.kind !== "instance" || member.lost === undefined) continue;
    for (const task of member.tasks.backwards()) {
      if (ids.includes(orphanedIdOf(task, member.lost))) return task;
    }
  }
  return undefined;
}

function giveUp(state: TaskState, timer: Timer, ids: readonly string[]): void {
  if (timer.kind === "delegation") {
    const { delegation, due } = timer;
    if (ids.includes(expiredIdOf(delegation, due))) disarm(state, delegation);
  } else if (timer.kind === "deadline" && ids.includes(timedOutIdOf(timer))) {
    timer.isGivenUp = true;
    dropTimer(state, timer);
  }
}
