/** The only place that changes state, beside what the log of `tasks` says. Total: what does not fit changes nothing. */
import type {
  BegunEntry,
  DomainEntry,
  EventEntry,
  ObligationFailedEntry,
} from "@harmovela/envelope";
import { parseInstant } from "@harmovela/envelope";
import { register } from "./checkpoints.ts";
import { addCompensation } from "./compensations.ts";
import {
  askToCancel,
  askToComplete,
  askToSubmit,
  failExpired,
  followRefusal,
} from "./consequences.ts";
import { expiredIdOf, sessionStepIdOf } from "./derived.ts";
import { closeTenant, forget } from "./forgetting.ts";
import { close, openInterruption, releaseTree } from "./interruptions.ts";
import { openResume, passOver } from "./resumes.ts";
import { checkpointOf } from "./rules/checkpoint.ts";
import { originalOf } from "./rules/compensation.ts";
import { payloadObject, taskIdOf, textIn } from "./rules/payload.ts";
import { graceMsOf, isForTree, policyOf } from "./rules/policy.ts";
import type { ManagerSettings } from "./settings.ts";
import {
  findTask,
  type Interruption,
  keyOf,
  type ManagerState,
  openTenant,
  type TaskRecord,
  type TenantState,
} from "./state.ts";
import { addExternal, nameIn } from "./tasks/book.ts";
import { giveTo, instanceOf } from "./tasks/instances.ts";
import { closePlan, nextToInterrupt, openPlan, passMember } from "./trees.ts";

export function evolve(state: ManagerState, settings: ManagerSettings, entry: DomainEntry): void {
  forget(state, settings.retentionMs, entry.at);
  switch (entry.kind) {
    case "event":
      evolveEvent(state, settings, entry);
      break;
    case "begun":
      evolveBegun(state, settings, entry);
      break;
    case "obligation_failed":
      evolveFailed(state, entry);
      break;
    case "token_issued":
      break;
  }
  const tenant = state.tenants.get(entry.tenant);
  if (tenant !== undefined) closeTenant(state, tenant);
}

function evolveEvent(state: ManagerState, settings: ManagerSettings, entry: EventEntry): void {
  const { envelope } = entry;
  if (envelope.source === settings.service && envelope.type.endsWith(".rejected")) {
    followRefusal(state, settings, entry);
    return;
  }
  const id = taskIdOf(envelope);
  if (id === undefined) return;
  if (envelope.type.startsWith("compensation.")) {
    evolveCompensation(state, settings, entry, id);
    return;
  }
  if (envelope.type === "interruption.requested") {
    request(state, settings, entry, id);
    return;
  }
  const open = endingIn(state, entry) ?? findTask(state, entry.tenant, id)?.open;
  if (open === undefined) return;
  switch (envelope.type) {
    case "interruption.acknowledged":
      open.state = "acknowledged";
      open.acknowledged = { id: envelope.id, at: entry.at };
      break;
    case "interruption.saved":
      save(state, open, entry);
      break;
    case "interruption.resumed":
      resume(state, open, entry);
      break;
    case "interruption.cancelled":
      cancel(state, settings, open, entry);
  }
}

/** What this entry closes because its task has ended. */
function endingIn(state: ManagerState, entry: EventEntry): Interruption | undefined {
  return "owed" in entry.cause
    ? state.endings.get(keyOf(entry.tenant, entry.envelope.id))
    : undefined;
}

function request(
  state: ManagerState,
  settings: ManagerSettings,
  entry: EventEntry,
  id: string,
): void {
  const { envelope, at, cause } = entry;
  const tenant = openTenant(state, entry.tenant);
  const plan = "owed" in cause ? tenant.plans.get(cause.owed) : undefined;
  const known = plan?.id === envelope.id ? plan.root : tenant.tasks.get(id);
  // Only an agent speaks of a task that is not known.
  if (known === undefined && "owed" in cause) return;
  const task = known ?? addExternal(tenant, id, envelope.tenant_id !== undefined);
  const payload = payloadObject(envelope);
  const opening = {
    envelope,
    // What follows from another log may be written under the time of an older entry of this one.
    at: "owed" in cause ? Math.max(at, parseInstant(envelope.created_at)) : at,
    policy: policyOf(envelope),
    graceMs: graceMsOf(envelope, settings),
    isExpiry: "owed" in cause && payload?.expired === true,
  };
  if (plan === undefined) openInterruption(state, task, opening);
  else if (plan.id === envelope.id) {
    closePlan(state, plan);
    const { tree, treeOf } = plan;
    openInterruption(state, task, { ...opening, tree, treeOf });
  } else {
    openInterruption(state, task, { ...opening, treeOf: plan.id });
    passMember(state, plan, task);
  }
  if (opening.isExpiry && payload?.on_grace_expired === "fail") failExpired(state, settings, task);
}

function save(state: ManagerState, open: Interruption, entry: EventEntry): void {
  const { task } = open;
  const { envelope, at } = entry;
  const checkpoint = checkpointOf(entry, open.id);
  if (checkpoint === undefined) return;
  register(task, { ...checkpoint, owner: nameIn(task.tenant, checkpoint.owner) });
  open.state = "saved";
  open.saved = { id: envelope.id, at, checkpoint: checkpoint.id };
  state.graces.remove(open);
}

/** Whoever resumes his own task goes on with it in his session; else the first of its owner's processes does. */
function resume(state: ManagerState, open: Interruption, entry: EventEntry): void {
  const { envelope, at } = entry;
  const { id, type, source: by, checkpoint_id: checkpoint } = envelope;
  const { task } = open;
  const { tenant } = task;
  close(state, open, { id, type, by, at, checkpoint });
  const tree = releaseTree(open);
  const instance = by === task.owner ? instanceOf(state, tenant, envelope) : undefined;
  giveTo(state, task, instance);
  task.isFree = instance === undefined;
  if (tree && isForTree(envelope)) openResume(state, tenant, tree, { id, at });
}

/** By an agent it ends the task; by the service it tells that the task has ended. */
function cancel(
  state: ManagerState,
  settings: ManagerSettings,
  open: Interruption,
  entry: EventEntry,
): void {
  const { envelope, at, cause } = entry;
  const { id, type, source: by } = envelope;
  const { task } = open;
  close(state, open, { id, type, by, at, checkpoint: textIn(envelope, "checkpoint_id") });
  releaseTree(open);
  if (!("owed" in cause)) askToCancel(state, settings, task, entry);
}

function evolveCompensation(
  state: ManagerState,
  settings: ManagerSettings,
  entry: EventEntry,
  taskId: string,
): void {
  const { envelope, at } = entry;
  const tenant = openTenant(state, entry.tenant);
  if (envelope.type === "compensation.requested") {
    const compensation = addCompensation(tenant, entry, { taskId, original: originalOf(envelope) });
    askToSubmit(state, settings, compensation, entry);
    return;
  }
  const compensation = tenant.compensations.get(taskId);
  if (compensation === undefined || compensation.completed) return;
  compensation.completed = { id: envelope.id, by: nameIn(tenant, envelope.source), at };
  const { task } = compensation;
  if (task !== undefined) askToComplete(state, settings, task, entry);
}

/** A tree request holds from now on; its own event follows when the rest of its subtree was asked. */
function evolveBegun(state: ManagerState, settings: ManagerSettings, entry: BegunEntry): void {
  const { plan } = entry;
  const root = findTask(state, entry.tenant, taskIdOf(plan.envelope) ?? "");
  if (root === undefined || root.plan) return;
  openPlan(state, settings, root, entry);
}

/** What cannot be written is given up: a walk goes on behind it, a grace never passes. */
function evolveFailed(state: ManagerState, entry: ObligationFailedEntry): void {
  const { id, at, cause } = entry;
  const tenant = state.tenants.get(entry.tenant);
  if (tenant) giveUpWalk(state, tenant, id, "owed" in cause ? cause.owed : id);
  const ending = state.endings.get(keyOf(entry.tenant, id));
  if (ending) {
    const by = ending.requestedBy;
    close(state, ending, { id, type: "obligation_failed", by, at, checkpoint: undefined });
    releaseTree(ending);
  }
  for (const grace of state.graces.dueBy(at)) {
    if (expiredIdOf(grace) === id) state.graces.remove(grace);
  }
  const left = leftBehind(state, id);
  if (left) giveTo(state, left, undefined);
}

function giveUpWalk(state: ManagerState, tenant: TenantState, id: string, walk: string): void {
  const plan = tenant.plans.get(walk);
  if (plan?.id === id) closePlan(state, plan);
  else if (plan) {
    const next = nextToInterrupt(state, plan);
    if (typeof next === "object") passMember(state, plan, next);
  }
  const resumes = tenant.resumes.get(walk);
  if (resumes) passOver(state, resumes);
}

/** The task of an ended session whose interruption goes by this id. */
function leftBehind(state: ManagerState, id: string): TaskRecord | undefined {
  for (const work of state.ring.backwards()) {
    if (work.kind !== "instance") continue;
    for (const task of work.tasks.backwards()) {
      if (sessionStepIdOf(work, task) === id) return task;
    }
  }
  return undefined;
}
