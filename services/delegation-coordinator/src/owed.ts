/**
 * What the service owes next. Moving a timer or plan aside that cannot act now is bookkeeping: the
 * answer stays the same, and `evolve` brings it back when it can act again.
 */
import type { Instant, Owed } from "@harmovela/envelope";
import { derivedExpired, expiredIdOf } from "./delegation/deadline.ts";
import type { DelegationTimer } from "./delegation/state.ts";
import { derivedOrphaned, derivedTimedOut, orphanedIdOf, timedOutIdOf } from "./derived.ts";
import { closedBy, hardPlanOver } from "./rules/closing.ts";
import type { TaskSettings } from "./settings.ts";
import {
  type DeadlineTimer,
  type GraceTimer,
  type InstanceState,
  type PlanState,
  settledKey,
  type TaskState,
  type Timer,
} from "./state.ts";
import { gentleStep, hardStep } from "./steps.ts";

export function owed(state: TaskState, settings: TaskSettings, now: Instant): Owed | undefined {
  for (let timer = state.timers.peek(); timer && timer.due <= now; timer = state.timers.peek()) {
    const due = timerOwed(state, settings, timer);
    if (due) return due;
  }
  for (let member = state.ring.head; member; member = state.ring.head) {
    const step =
      member.kind === "instance"
        ? orphanOwed(state, settings, member)
        : planOwed(state, settings, member);
    if (step) return step;
  }
  const timer = state.timers.peek();
  return timer ? { wakeAt: timer.due } : undefined;
}

function timerOwed(state: TaskState, settings: TaskSettings, timer: Timer): Owed | undefined {
  switch (timer.kind) {
    case "deadline":
      return deadlineOwed(state, settings, timer);
    case "grace":
      return graceOwed(state, settings, timer);
    case "delegation":
      return offerOwed(state, settings, timer);
  }
}

/** An offer that nobody accepted in time; in a subtree that is being ended it ends with the task. */
function offerOwed(
  state: TaskState,
  settings: TaskSettings,
  timer: DelegationTimer,
): Owed | undefined {
  const { delegation, due } = timer;
  const over = delegation.task && closedBy(delegation.task);
  const id = expiredIdOf(delegation, due);
  const isSettled = state.settled.has(settledKey(delegation.tenant, id));
  if (over || isSettled) {
    state.timers.remove(timer);
    if (!isSettled) over?.suspended.push(timer);
    return undefined;
  }
  const event = derivedExpired(settings.service, delegation, due);
  return { event, tenant: delegation.tenant, cause: id, urgency: "timer", due };
}

/** A task that is due ends now, or begins to end when it has live descendants. */
function deadlineOwed(
  state: TaskState,
  settings: TaskSettings,
  timer: DeadlineTimer,
): Owed | undefined {
  const { task, due } = timer;
  const over = hardPlanOver(task);
  if (over) {
    state.timers.remove(timer);
    over.suspended.push(timer);
    return undefined;
  }
  const id = timedOutIdOf(timer);
  const tenant = task.tenant.name;
  if (state.settled.has(settledKey(tenant, id))) {
    state.timers.remove(timer);
    return undefined;
  }
  const event = derivedTimedOut(settings, timer, id);
  const common = { tenant, cause: id, urgency: "timer", due } as const;
  if (task.liveCount === 0) return { event, ...common };
  const begin = { id, kind: event.type, envelope: event, data: { task_id: task.id } };
  return { begin, ...common };
}

/** The first forced entry of a request's plan; the entry itself makes the rest steps. */
function graceOwed(state: TaskState, settings: TaskSettings, timer: GraceTimer): Owed | undefined {
  const { plan, due } = timer;
  const over = hardPlanOver(plan.root.parent);
  if (over) {
    state.timers.remove(timer);
    over.suspended.push(timer);
    return undefined;
  }
  // Until it is hard, its subtree may still change around an earlier place of the walk.
  plan.cursor = plan.root;
  const step = hardStep(settings, plan);
  if ("waitsFor" in step) {
    state.timers.remove(timer);
    step.waitsFor.waiters.push(plan);
    return undefined;
  }
  const tenant = plan.root.tenant.name;
  return { event: step.event, tenant, cause: plan.id, urgency: "timer", due };
}

/**
 * A task of a lost instance fails, or begins to when it has live descendants; the newest first, so
 * that mostly a child ends before its parent. One under a plan ends with the plan.
 */
function orphanOwed(
  state: TaskState,
  settings: TaskSettings,
  instance: InstanceState,
): Owed | undefined {
  const { lost } = instance;
  for (let task = lost?.pending.at(-1); lost && task; task = lost.pending.at(-1)) {
    const over = hardPlanOver(task);
    const id = orphanedIdOf(task, lost);
    const tenant = task.tenant.name;
    const isOwed = task.instance === instance && !state.settled.has(settledKey(tenant, id));
    if (isOwed && over === undefined) {
      const event = derivedOrphaned(settings, task, instance.session, lost);
      const common = { tenant, cause: id, urgency: "step", due: 0 } as const;
      if (task.liveCount === 0) return { event, ...common };
      return {
        begin: { id, kind: event.type, envelope: event, data: { task_id: task.id } },
        ...common,
      };
    }
    lost.pending.pop();
    if (isOwed) over?.suspended.push({ kind: "orphan", task, instance });
  }
  state.ring.remove(instance);
  return undefined;
}

function planOwed(state: TaskState, settings: TaskSettings, plan: PlanState): Owed | undefined {
  const event = plan.hard ? hardEvent(state, settings, plan) : gentleEvent(state, settings, plan);
  if (event === undefined) return undefined;
  const tenant = plan.root.tenant.name;
  return { event, tenant, cause: plan.id, urgency: "step", due: 0 };
}

function hardEvent(state: TaskState, settings: TaskSettings, plan: PlanState) {
  const step = hardStep(settings, plan);
  if ("event" in step) return step.event;
  state.ring.remove(plan);
  step.waitsFor.waiters.push(plan);
  return undefined;
}

function gentleEvent(state: TaskState, settings: TaskSettings, plan: PlanState) {
  const over = hardPlanOver(plan.root.parent);
  const event = over ? undefined : gentleStep(settings, plan);
  if (event === undefined) {
    state.ring.remove(plan);
    over?.dormant.push(plan);
  }
  return event;
}
