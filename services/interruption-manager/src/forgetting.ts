/**
 * What is over is remembered for `retentionMs`: who comes late is told who won. Then it is forgotten
 * (architecture, section 6).
 *
 * F1 Counted in the entries' own times, so that every fold forgets alike.
 * F2 What lives is never forgotten, nor what it stands on; a checkpoint lives as long as its task.
 * F3 One entry lets go of a bounded number; what is left goes with the next ones.
 */
import { forgetOver, type Instant } from "@harmovela/envelope";
import { dropCompensation } from "./compensations.ts";
import type { Interruption, ManagerState, Over, TaskRecord, TenantState } from "./state.ts";

/** Lets go of what ended longer ago than the retention at the time of an entry (F1, F3). */
export function forget(state: ManagerState, retentionMs: number, at: Instant): void {
  forgetOver(state.over, { retentionMs, at }, (over) => {
    forgetOne(over);
    closeTenant(state, over.tenant);
  });
}

function forgetOne(over: Over): void {
  const { tenant } = over;
  switch (over.kind) {
    case "task":
      forgetTask(tenant, over.task);
      return;
    case "interruption":
      forgetInterruption(tenant, over.interruption);
      return;
    case "compensation":
      dropCompensation(over.compensation);
  }
}

function forgetTask(tenant: TenantState, task: TaskRecord): void {
  if (tenant.tasks.get(task.id) === task) tenant.tasks.delete(task.id);
  const compensation = tenant.compensations.get(task.id);
  if (compensation?.task === task) dropCompensation(compensation);
}

function forgetInterruption(tenant: TenantState, interruption: Interruption): void {
  const { task } = interruption;
  const past = task.past?.filter((other) => other !== interruption) ?? [];
  task.past = past.length === 0 ? undefined : past;
  // Nobody ever tells of the end of an external task: with its last interruption it is over.
  const isLeft = task.open || task.past || task.plan;
  if (task.isExternal && !isLeft) forgetTask(tenant, task);
}

/** Nothing is left of a tenant of whom nothing is remembered. */
export function closeTenant(state: ManagerState, tenant: TenantState): void {
  const { tasks, plans, resumes, compensations, instances, name } = tenant;
  const left = tasks.size + plans.size + resumes.size + compensations.size + instances.size;
  if (left === 0 && state.tenants.get(name) === tenant) state.tenants.delete(name);
}
