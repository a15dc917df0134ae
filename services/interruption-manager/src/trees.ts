/**
 * A request for a subtree (architecture, section 2, `begin`). Called by folds, but for the look at the
 * next step.
 *
 * T1 Whom it concerns is fixed when it begins. Passed over is who has ended, is stopped already, or is
 *    being interrupted by a request that is not weaker.
 * T2 Leaves first, the root's own event last.
 * T3 A plan that comes to the root of another one waits for that.
 */
import type { BegunEntry } from "@harmovela/envelope";
import { close, releaseTree } from "./interruptions.ts";
import { graceMsOf, mayReplace, policyOf } from "./rules/policy.ts";
import type { ManagerSettings } from "./settings.ts";
import type { ManagerState, Policy, TaskRecord, Tree, TreePlan } from "./state.ts";
import { liveBelow } from "./tasks/book.ts";
import { place } from "./tasks/instances.ts";

/** From now on the root is this request's; a weaker one that was open there is over. */
export function openPlan(
  state: ManagerState,
  settings: ManagerSettings,
  root: TaskRecord,
  { plan: { id, envelope }, at }: BegunEntry,
): void {
  const before = root.open;
  const tree: Tree = { ids: [...(before?.tree?.ids ?? []), id], members: liveBelow(root) };
  const plan: TreePlan = {
    kind: "tree",
    id,
    root,
    envelope,
    policy: policyOf(envelope),
    graceMs: graceMsOf(envelope, settings),
    at,
    tree,
    treeOf: before?.treeOf,
    place: 0,
    waiters: new Set(),
    ringNext: undefined,
    ringPrev: undefined,
  };
  root.plan = plan;
  root.tenant.plans.set(id, plan);
  if (before) {
    const { type, source: by } = envelope;
    close(state, before, { id, type, by, at, checkpoint: undefined });
    releaseTree(before);
  }
  place(state, root);
  state.ring.add(plan);
}

/** Its root's own event is logged, or cannot be. */
export function closePlan(state: ManagerState, plan: TreePlan): void {
  const { root, id } = plan;
  root.plan = undefined;
  root.tenant.plans.delete(id);
  state.ring.remove(plan);
  for (const waiter of plan.waiters) state.ring.add(waiter);
  place(state, root);
}

/** The next task that a plan interrupts; "waits" when another plan is before it (T1, T3). */
export function nextToInterrupt(
  state: ManagerState,
  plan: TreePlan,
): TaskRecord | "waits" | undefined {
  const { members } = plan.tree;
  for (; plan.place < members.length; plan.place += 1) {
    const task = members[plan.place];
    if (task === undefined || !canInterrupt(task, plan.policy)) continue;
    if (task.plan === undefined) return task;
    state.ring.remove(plan);
    task.plan.waiters.add(plan);
    return "waits";
  }
  return undefined;
}

function canInterrupt({ ended, open, asked }: TaskRecord, policy: Policy): boolean {
  if (ended || asked) return false;
  return open === undefined || mayReplace(policy, open);
}

/** A step is logged, or cannot be: the plan goes on behind that task. */
export function passMember(state: ManagerState, plan: TreePlan, task: TaskRecord): void {
  const { members } = plan.tree;
  while (plan.place < members.length && members[plan.place] !== task) plan.place += 1;
  plan.place += 1;
  state.ring.rotate(plan);
}
