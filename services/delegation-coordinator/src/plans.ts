/** Opening and closing of plans; called by `evolve` alone. */
import type { Envelope, Instant } from "@harmovela/envelope";
import { pickUp } from "./instances.ts";
import { hasRunner } from "./interruptions/state.ts";
import { nearestPlan } from "./rules/closing.ts";
import { millisecondsOf } from "./rules/identity.ts";
import type { TerminalType } from "./rules/transitions.ts";
import { LAST_INSTANT, type TaskSettings } from "./settings.ts";
import type { GraceTimer, PlanState, Task, TaskState } from "./state.ts";
import { dropTimer, resumeTimer } from "./timers.ts";
import { isWithin } from "./tree.ts";

interface Opening {
  id: string;
  root: Task;
  kind: TerminalType;
  envelope: Envelope;
  at: Instant;
  seq: number;
}

function createPlan(opening: Opening, hard: boolean, graceMs: number): PlanState {
  const { root } = opening;
  const plan: PlanState & { grace: GraceTimer | undefined } = {
    ...opening,
    grace: undefined,
    graceMs,
    hard,
    cursor: root,
    next: undefined,
    ready: new Set(),
    cited: undefined,
    citedId: "",
    waiters: new Set(),
    waitsFor: undefined,
    dormant: new Set(),
    overtakenBy: undefined,
    suspended: new Set(),
    orphans: new Set(),
    ringNext: undefined,
    ringPrev: undefined,
  };
  if (!hard) {
    const due = Math.min(opening.at + graceMs, LAST_INSTANT);
    plan.grace = { kind: "grace", due, order: opening.seq, plan, index: -1, heldBy: undefined };
  }
  return plan;
}

function install(state: TaskState, plan: PlanState): void {
  const { root } = plan;
  if (root.plan) removePlan(state, root.plan);
  root.plan = plan;
  root.tenant.plans.set(plan.id, plan);
  if (!plan.hard) state.gentleCount += 1;
  state.ring.add(plan);
}

/** The outcome of `root` is fixed by a `begun` entry; a request's plan on it gives way. */
export function openHardPlan(state: TaskState, opening: Opening): void {
  const plan = createPlan(opening, true, 0);
  install(state, plan);
  // Runners below are no longer asked by a plan above: this plan ends them.
  for (let at = plan.root.parent; at; at = at.parent) {
    const above = at.plan;
    if (above && !above.hard && above.next && isWithin(above.next, plan.root)) {
      above.next = plan.root;
    }
  }
}

/** A cancel request: the gate closes and runners are asked to stop, the root's own one first. */
export function openGentlePlan(state: TaskState, settings: TaskSettings, opening: Opening): void {
  const { root, envelope } = opening;
  const grace = millisecondsOf(envelope, "grace_period_ms");
  const graceMs = typeof grace === "number" ? grace : settings.defaultGraceMs;
  const plan = createPlan(opening, false, graceMs);
  const isTold = root.owner === envelope.target || root.owner === envelope.source;
  plan.next = !hasRunner(root) || isTold ? root.firstLive : root;
  if (!hasRunner(root) && root.liveCount === 0) plan.ready.add(root);
  root.cancelRequested = opening.id;
  install(state, plan);
  if (plan.grace) state.timers.add(plan.grace);
}

/** A task with neither runner nor live child is cancelled by the request's plan around it. */
export function offerToPlan(state: TaskState, task: Task): void {
  if (state.gentleCount === 0 || task.liveCount > 0 || hasRunner(task)) return;
  const plan = nearestPlan(task);
  if (plan === undefined || plan.hard) return;
  plan.ready.add(task);
  state.ring.add(plan);
}

/** The grace has passed: its first forced entry is logged. */
export function harden(state: TaskState, plan: PlanState): void {
  plan.hard = true;
  plan.cursor = plan.root;
  plan.next = undefined;
  plan.ready.clear();
  state.gentleCount -= 1;
  if (plan.grace) dropTimer(state, plan.grace);
  state.ring.add(plan);
}

/** The root has ended, or another plan has taken its place. */
export function removePlan(state: TaskState, plan: PlanState): void {
  if (plan.root.plan === plan) plan.root.plan = undefined;
  const { plans } = plan.root.tenant;
  if (plans.get(plan.id) === plan) plans.delete(plan.id);
  if (!plan.hard) state.gentleCount -= 1;
  if (plan.grace) dropTimer(state, plan.grace);
  state.ring.remove(plan);
  stopWaiting(plan);
  // Whatever slept under this plan may act again.
  for (const sleeper of [...plan.waiters, ...plan.dormant]) resume(state, sleeper);
  for (const timer of plan.suspended) resumeTimer(state, timer);
  for (const task of plan.orphans) pickUp(state, task);
}

/** A plan above goes on when the root of the one below has ended. */
export function waitFor(plan: PlanState, below: PlanState): void {
  plan.waitsFor?.waiters.delete(plan);
  plan.waitsFor = below;
  below.waiters.add(plan);
}

/** A request's plan asks nobody while a plan over it ends everything. */
export function sleepUnder(plan: PlanState, over: PlanState): void {
  plan.overtakenBy?.dormant.delete(plan);
  plan.overtakenBy = over;
  over.dormant.add(plan);
}

function stopWaiting(plan: PlanState): void {
  plan.waitsFor?.waiters.delete(plan);
  plan.waitsFor = undefined;
  plan.overtakenBy?.dormant.delete(plan);
  plan.overtakenBy = undefined;
}

function resume(state: TaskState, plan: PlanState): void {
  stopWaiting(plan);
  state.ring.add(plan);
  if (!plan.hard && plan.grace) resumeTimer(state, plan.grace);
}
