/**
 * A request for a subtree and its resumption (architecture, section 2, `begin`). Called by folds, but for
 * the two that look for the next step.
 *
 * T1 Whom it concerns is fixed when it begins. Who has ended or is interrupted already is passed over.
 * T2 Leaves first, the root's own event last; it goes on in the opposite order.
 * T3 A plan that comes to the root of another one waits for that.
 */
import type { BegunEntry, Instant } from "@harmovela/envelope";
import { close, releaseTree } from "./interruptions.ts";
import { graceMsOf, policyOf } from "./rules/policy.ts";
import type { ManagerSettings } from "./settings.ts";
import type {
  Interruption,
  ManagerState,
  TaskRecord,
  TenantState,
  Tree,
  TreePlan,
  TreeResume,
} from "./state.ts";
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
    if (task === undefined || !canInterrupt(task)) continue;
    if (task.plan === undefined) return task;
    state.ring.remove(plan);
    task.plan.waiters.add(plan);
    return "waits";
  }
  return undefined;
}

function canInterrupt({ ended, open, asked }: TaskRecord): boolean {
  return !(ended || open || asked);
}

/** A step is logged, or cannot be: the plan goes on behind that task. */
export function passMember(
  state: ManagerState,
  walk: TreePlan,
  task: TaskRecord | undefined,
): void {
  const { members } = walk.tree;
  while (walk.place < members.length && members[walk.place] !== task) walk.place += 1;
  walk.place += 1;
  state.ring.rotate(walk);
}

/** What was stopped with a root and is saved goes on after it (T2). */
export function openResume(
  state: ManagerState,
  tenant: TenantState,
  { members, ids }: Tree,
  { id, at }: { id: string; at: Instant },
): void {
  const stopped: Interruption[] = [];
  for (const { open } of members) {
    if (open?.saved && open.treeOf !== undefined && ids.includes(open.treeOf)) stopped.push(open);
  }
  if (stopped.length === 0) return;
  const resume: TreeResume = {
    kind: "resume",
    id,
    tenant,
    at,
    stopped: stopped.reverse(),
    place: 0,
    ringNext: undefined,
    ringPrev: undefined,
  };
  tenant.resumes.set(id, resume);
  state.ring.add(resume);
}

export function closeResume(state: ManagerState, resume: TreeResume): void {
  resume.tenant.resumes.delete(resume.id);
  state.ring.remove(resume);
}

/** The next interruption that goes on; what is over by now is passed over. */
export function nextToResume(resume: TreeResume): Interruption | undefined {
  const { stopped } = resume;
  for (; resume.place < stopped.length; resume.place += 1) {
    const next = stopped[resume.place];
    if (next && !next.closed && !next.task.ended && !next.task.asked) return next;
  }
  return undefined;
}

/** A step is logged, or cannot be: the walk goes on behind that task, or has come to its end. */
export function passResumed(state: ManagerState, resume: TreeResume, task: TaskRecord): void {
  const { stopped } = resume;
  while (resume.place < stopped.length && stopped[resume.place]?.task !== task) resume.place += 1;
  resume.place += 1;
  if (nextToResume(resume) === undefined) closeResume(state, resume);
  else state.ring.rotate(resume);
}
