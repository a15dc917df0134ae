/** What a plan forbids in its subtree (architecture, section 2, `begin`). */
import type { ErrorPayload } from "@harmovela/failure";
import type { PlanState, Task } from "../state.ts";
import { settling } from "./refusals.ts";
import { isTerminal, stateAfter } from "./transitions.ts";

/** The plan that closes a task's subtree: the nearest hard one, else the nearest of a request. */
export function closedBy(task: Task): PlanState | undefined {
  if (task.tenant.plans.size === 0) return undefined;
  let nearest: PlanState | undefined;
  for (let at: Task | undefined = task; at; at = at.parent) {
    if (at.plan?.hard) return at.plan;
    nearest ??= at.plan;
  }
  return nearest;
}

/** The nearest plan whose root is the task or an ancestor of it. */
export function nearestPlan(task: Task): PlanState | undefined {
  for (let at: Task | undefined = task; at; at = at.parent) {
    if (at.plan) return at.plan;
  }
  return undefined;
}

/** The nearest hard plan whose root is the task or an ancestor of it. */
export function hardPlanOver(task: Task | undefined): PlanState | undefined {
  if (task === undefined) return undefined;
  const plan = closedBy(task);
  return plan?.hard ? plan : undefined;
}

export function closingRefusal(task: Task, type: string): ErrorPayload | undefined {
  const plan = closedBy(task);
  if (plan === undefined) return undefined;
  if (type === "task.cancel.requested") {
    return settling(task, plan, `task ${task.id} is already being cancelled`);
  }
  return plan.hard ? hardRefusal(task, type, plan) : gentleRefusal(task, type, plan);
}

function hardRefusal(task: Task, type: string, plan: PlanState): ErrorPayload | undefined {
  const to = stateAfter(type);
  if (to === undefined || !isTerminal(to)) {
    return settling(task, plan, `task ${task.id} is being ended; no more work counts`);
  }
  // A leaf may still end by itself, unless a planned event already names its planned end.
  const isFreeLeaf = task !== plan.root && task.liveCount === 0 && !task.endPromised;
  return isFreeLeaf ? undefined : settling(task, plan, `how task ${task.id} ends is settled`);
}

/** Nobody may take a task that is about to be cancelled for want of a runner. */
function gentleRefusal(task: Task, type: string, plan: PlanState): ErrorPayload | undefined {
  const takes = task.owner === undefined && (type === "task.accepted" || type === "task.started");
  return takes ? settling(task, plan, `task ${task.id} is being cancelled`) : undefined;
}
