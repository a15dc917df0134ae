/**
 * The next step of a plan. Walks are iterative and go on where they stopped, so that the whole of a
 * plan costs what its subtree holds, and one step next to nothing.
 */
import type { Envelope } from "@harmovela/envelope";
import { derivedCancelled, derivedRequest, endIdOf, requestAbove } from "./derived.ts";
import { hasRunner } from "./interruptions/state.ts";
import { nearestPlan } from "./rules/closing.ts";
import type { TaskSettings } from "./settings.ts";
import type { PlanState, Task } from "./state.ts";
import { nextInPreorder, nextOutside } from "./tree.ts";

/** Leaves first, the root last; or the plan below whose root must end first. */
export function hardStep(
  settings: TaskSettings,
  plan: PlanState,
): { event: Envelope } | { waitsFor: PlanState } {
  const { root } = plan;
  let at: Task = plan.cursor;
  while (at !== root && at.ended && at.parent) at = at.parent;
  while (at.firstLive) {
    const child = at.firstLive;
    if (child.plan?.hard) {
      plan.cursor = at;
      return { waitsFor: child.plan };
    }
    at = child;
  }
  plan.cursor = at;
  const isRequested = plan.grace !== undefined;
  if (at === root && !isRequested) return { event: plan.envelope };
  const causation = at === root || at.parent === undefined ? plan.id : citedEnd(plan, at.parent);
  return { event: derivedCancelled(settings, plan, at, { forced: isRequested, causation }) };
}

/** The id under which a parent will end; kept, for its next child asks again. */
function citedEnd(plan: PlanState, parent: Task): string {
  if (plan.cited !== parent.id) {
    plan.cited = parent.id;
    plan.citedId = endIdOf(plan, parent);
  }
  return plan.citedId;
}

/** Asks runners to stop, parents first; cancels tasks that have neither runner nor live child. */
export function gentleStep(settings: TaskSettings, plan: PlanState): Envelope | undefined {
  const cancelled = (task: Task) =>
    derivedCancelled(settings, plan, task, { forced: false, causation: requestAbove(plan, task) });

  for (const task of plan.ready) {
    if (nearestPlan(task) === plan && !hasRunner(task)) return cancelled(task);
    plan.ready.delete(task);
  }
  while (plan.next) {
    const task: Task = plan.next;
    if (task !== plan.root && task.plan) {
      // A plan of its own ends this subtree.
      plan.next = nextOutside(task, plan.root);
    } else if (hasRunner(task)) {
      return derivedRequest(settings, plan, task);
    } else if (task.liveCount === 0) {
      return cancelled(task);
    } else {
      plan.next = nextInPreorder(task, plan.root);
    }
  }
  return undefined;
}
