/**
 * What the service owes next. Moving a timer or plan aside that cannot act now is bookkeeping: the
 * answer stays the same, and `evolve` brings it back when it can act again.
 */
import type { Instant, Owed } from "@harmovela/envelope";
import { derivedExpired } from "./delegation/deadline.ts";
import type { DelegationTimer } from "./delegation/state.ts";
import { derivedOrphaned, derivedTimedOut, orphanedIdOf, timedOutIdOf } from "./derived.ts";
import { layAside } from "./instances.ts";
import { sleepUnder, waitFor } from "./plans.ts";
import { closedBy, hardPlanOver } from "./rules/closing.ts";
import type { TaskSettings } from "./settings.ts";
import type {
  DeadlineTimer,
  GraceTimer,
  InstanceState,
  PlanState,
  TaskState,
  Timer,
} from "./state.ts";
import { gentleStep, hardStep } from "./steps.ts";
import { suspendTimer } from "./timers.ts";

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
  if (over) {
    suspendTimer(state, timer, over);
    return undefined;
  }
  const event = derivedExpired(settings.service, delegation, due);
  return { event, tenant: delegation.tenant, cause: event.id, urgency: "timer", due };
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
    suspendTimer(state, timer, over);
    return undefined;
  }
  const id = timedOutIdOf(timer);
  const tenant = task.tenant.name;
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
    suspendTimer(state, timer, over);
    return undefined;
  }
  // Until it is hard, its subtree may still change around an earlier place of the walk.
  plan.cursor = plan.root;
  const step = hardStep(settings, plan);
  if ("waitsFor" in step) {
    state.timers.remove(timer);
    waitFor(plan, step.waitsFor);
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
  const { lost, tasks } = instance;
  const isOwed = settings.orphanedTasks === "fail";
  for (let task = tasks.last; isOwed && lost && task; task = tasks.last) {
    const over = hardPlanOver(task);
    if (over) {
      layAside(state, task, over);
      continue;
    }
    const id = orphanedIdOf(task, lost);
    const tenant = task.tenant.name;
    const event = derivedOrphaned(settings, task, instance.session, lost);
    const common = { tenant, cause: id, urgency: "step", due: 0 } as const;
    if (task.liveCount === 0) return { event, ...common };
    const begin = { id, kind: event.type, envelope: event, data: { task_id: task.id } };
    return { begin, ...common };
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
  waitFor(plan, step.waitsFor);
  return undefined;
}

function gentleEvent(state: TaskState, settings: TaskSettings, plan: PlanState) {
  const over = hardPlanOver(plan.root.parent);
  const event = over ? undefined : gentleStep(settings, plan);
  if (event === undefined) {
    state.ring.remove(plan);
    if (over) sleepUnder(plan, over);
  }
  return event;
}
