/**
 * What is over is remembered for `retentionMs`: its id is not used again, and who comes late is told
 * who won. Then it is forgotten, and its id is free (architecture, section 6).
 *
 * F1 Counted in the entries' own times, so that every fold forgets alike.
 * F2 What lives is never forgotten, nor what it stands on. Descendants end before their ancestors, so
 *    they leave the queue before them.
 * F3 One entry lets go of a bounded number; what is left goes with the next ones.
 */
import { FORGOTTEN_MAX, forgetOver, type Instant } from "@harmovela/envelope";
import type { Delegation, DelegationBook } from "./delegation/state.ts";
import type { Compensation } from "./interruptions/state.ts";
import type { Over, Task, TaskState, TenantState } from "./state.ts";
import { unlinkChild } from "./tree.ts";

/** Lets go of what ended longer ago than the retention at the time of an entry (F1, F3). */
export function forget(state: TaskState, retentionMs: number, at: Instant): void {
  forgetOver(state.over, { retentionMs, at }, (over) => {
    forgetOne(over);
    closeTenant(state, over.tenant);
  });
  forgetTokens(state, at);
}

function forgetOne(over: Over): void {
  switch (over.kind) {
    case "task":
      forgetTask(over.task);
      return;
    case "offer":
      forgetOffer(over.tenant, over.delegation);
      return;
    case "compensation":
      forgetCompensation(over.tenant, over.compensation);
  }
}

function forgetTask(task: Task): void {
  const { tasks, compensations } = task.tenant;
  const isCurrent = tasks.get(task.id) === task;
  if (isCurrent && compensations.get(task.id)?.isMade) compensations.delete(task.id);
  release(task);
  leaveCursors(task);
  unlinkChild(task);
  if (task.parent) task.parent.forgottenCount += 1;
}

/**
 * Its id belongs to another task from now on. Whoever wrote the log under a shorter retention had
 * forgotten this one already.
 */
export function release(task: Task): void {
  const { tasks, delegations } = task.tenant;
  if (tasks.get(task.id) !== task) return;
  tasks.delete(task.id);
  const delegation = delegations.byTask.get(task.id);
  if (delegation === undefined) return;
  delegations.byTask.delete(task.id);
  dropKey(delegations, delegation);
}

/** A cascade goes on above the leaf that it stood at. */
function leaveCursors(task: Task): void {
  if (task.tenant.plans.size === 0) return;
  for (let at = task.parent; at; at = at.parent) {
    if (at.plan?.cursor === task && task.parent) at.plan.cursor = task.parent;
  }
}

/** The offer in force belongs to its task, and goes with it. */
function forgetOffer({ tasks, delegations }: TenantState, delegation: Delegation): void {
  dropKey(delegations, delegation);
  const { taskId } = delegation;
  if (delegations.byTask.get(taskId) === delegation && !tasks.has(taskId)) {
    delegations.byTask.delete(taskId);
  }
}

/** One whose task has never come; else it goes with its task. */
function forgetCompensation({ compensations }: TenantState, compensation: Compensation): void {
  const { taskId, isMade } = compensation;
  if (!isMade && compensations.get(taskId) === compensation) compensations.delete(taskId);
}

function dropKey({ byKey }: DelegationBook, { retry }: Delegation): void {
  if (retry && byKey.get(retry.key) === retry) byKey.delete(retry.key);
}

/** Tokens are remembered for longer than they can live, and no longer. */
function forgetTokens(state: TaskState, at: Instant): void {
  for (let left = FORGOTTEN_MAX; left > 0; left -= 1) {
    const oldest = state.tokens.peek();
    if (oldest === undefined || oldest.due >= at) return;
    state.tokens.remove(oldest);
    const tenant = state.tenants.get(oldest.tenant);
    tenant?.delegations.tokens.known.delete(oldest.jti);
    if (tenant) closeTenant(state, tenant);
  }
}

/** Nothing is left of a tenant of whom nothing is remembered. */
function closeTenant(state: TaskState, tenant: TenantState): void {
  const { tasks, plans, delegations, compensations } = tenant;
  const { byTask, byKey, tokens } = delegations;
  const own = tasks.size + plans.size + compensations.size;
  const count = own + byTask.size + byKey.size + tokens.known.size;
  if (count === 0 && state.tenants.get(tenant.name) === tenant) state.tenants.delete(tenant.name);
}
