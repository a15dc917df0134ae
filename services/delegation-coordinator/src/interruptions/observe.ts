/** Folds the log of `interruptions`. Total: what does not fit (a log may begin in the middle) changes nothing. */
import { type DomainEntry, type EventEntry, isId } from "@harmovela/envelope";
import { giveTo, instanceOf, letBe, pickUp } from "../instances.ts";
import { offerToPlan } from "../plans.ts";
import { nearestPlan } from "../rules/closing.ts";
import { payloadObject, taskIdOf, textOf } from "../rules/identity.ts";
import type { TaskSettings } from "../settings.ts";
import { findTask, type Task, type TaskState } from "../state.ts";
import { nameIn, openTenant } from "../tasks.ts";
import { type Compensation, DUE_MAX, type Hold, SAID_MAX } from "./state.ts";

export function observeInterruptions(
  state: TaskState,
  settings: TaskSettings,
  entry: DomainEntry,
): void {
  if (entry.kind !== "event") return;
  const { type, source } = entry.envelope;
  if (type === "event.rejected") {
    if (source === settings.interruptionManager) observeRefusal(state, entry);
    return;
  }
  const id = taskIdOf(entry.envelope);
  if (id === undefined) return;
  if (type.startsWith("compensation.")) observeCompensation(state, entry, id);
  const task = findTask(state, entry.tenant, id);
  if (type.startsWith("interruption.") && task && !task.ended) interrupt(state, task, entry);
}

function interrupt(state: TaskState, task: Task, entry: EventEntry): void {
  follow(state, task, entry);
  const { hold } = task;
  if (hold) hold.said = [...hold.said, entry.envelope.id].slice(-SAID_MAX);
}

function follow(state: TaskState, task: Task, entry: EventEntry): void {
  const { envelope } = entry;
  const isDerived = "owed" in entry.cause;
  switch (envelope.type) {
    case "interruption.requested":
      begin(state, task, entry);
      break;
    case "interruption.acknowledged":
      holdOf(task, entry).state = "acknowledged";
      break;
    case "interruption.saved": {
      const hold = holdOf(task, entry);
      hold.state = "saved";
      hold.checkpoint = envelope.checkpoint_id;
      stop(state, task, hold, entry);
      break;
    }
    case "interruption.resumed":
      resume(state, task, entry);
      break;
    case "interruption.cancelled": {
      // The service's own says that the task has ended, and this one has not.
      if (isDerived) break;
      const hold = holdOf(task, entry);
      hold.state = "cancelled";
      owe(hold, "task.cancelled", envelope.id);
      stop(state, task, hold, entry);
    }
  }
}

/** A stronger one takes the place of the one before; what that has brought about stays due. */
function begin(state: TaskState, task: Task, entry: EventEntry): void {
  const { envelope } = entry;
  const { interruption_policy: policy = "save_and_stop" } = envelope;
  const hold: Hold = {
    id: envelope.id,
    policy,
    state: "requested",
    since: task.hold?.since,
    checkpoint: undefined,
    due: task.hold?.due ?? [],
    said: task.hold?.said ?? [],
  };
  task.hold = hold;
  const payload = payloadObject(envelope);
  const isExpiry = "owed" in entry.cause && payload?.expired === true;
  if (isExpiry && payload?.on_grace_expired !== "force_stop") {
    owe(hold, "task.failed", envelope.id);
  }
  if (policy === "force_stop") stop(state, task, hold, entry);
}

/** The one in force; where its request is older than what is folded, one that stands for it. */
function holdOf(task: Task, { envelope }: EventEntry): Hold {
  task.hold ??= {
    id: envelope.causation_id ?? envelope.id,
    policy: "save_and_stop",
    state: "requested",
    since: undefined,
    checkpoint: undefined,
    due: [],
    said: [],
  };
  return task.hold;
}

function owe(hold: Hold, type: string, id: string): void {
  hold.due = [...hold.due, { type, id }].slice(-DUE_MAX);
}

/** Nobody runs it now: it neither fails with a lost session, nor is anybody asked to end it. */
function stop(state: TaskState, task: Task, hold: Hold, { seq, at }: EventEntry): void {
  if (hold.since) return;
  hold.since = { seq, at };
  letBe(state, task);
  offerToPlan(state, task);
}

/** Whoever resumes its own task goes on with it in its session; else the first of its owner's processes does. */
function resume(state: TaskState, task: Task, { envelope }: EventEntry): void {
  const { hold } = task;
  if (hold === undefined) return;
  if (hold.due.length === 0) task.hold = undefined;
  else {
    hold.state = "resumed";
    hold.since = undefined;
  }
  nearestPlan(task)?.ready.delete(task);
  const isOwner = envelope.source === task.owner;
  const instance = isOwner ? instanceOf(state, task.tenant, envelope) : undefined;
  giveTo(state, task, instance);
  task.isFree = instance === undefined;
  pickUp(state, task);
}

/** It cannot go on without what it should have saved: it is to fail (spec 5.7). */
function observeRefusal(state: TaskState, { envelope, tenant }: EventEntry): void {
  const error = payloadObject(envelope)?.error;
  if (typeof error !== "object" || error === null || Array.isArray(error)) return;
  const { code, details } = error;
  if (code !== "checkpoint_missing") return;
  const isObject = typeof details === "object" && details !== null && !Array.isArray(details);
  const id = isObject && isId(details.task_id) ? details.task_id : envelope.task_id;
  const task = findTask(state, tenant, id ?? "");
  if (task?.hold?.since && !task.ended) owe(task.hold, "task.failed", envelope.id);
}

function observeCompensation(state: TaskState, entry: EventEntry, taskId: string): void {
  const { envelope, at } = entry;
  if (envelope.type === "compensation.completed") {
    const known = state.tenants.get(entry.tenant)?.compensations.get(taskId);
    if (known) known.completedBy = envelope.id;
    return;
  }
  const original = envelope.compensation_id ?? textOf(envelope, "original_task");
  if (envelope.type !== "compensation.requested" || original === undefined) return;
  const tenant = openTenant(state, entry.tenant);
  const task = tenant.tasks.get(taskId);
  const isMade = task !== undefined && !task.ended;
  // Somebody has used the id for something else meanwhile, or for this already.
  const isTaken = isMade && (task.submitter !== envelope.source || task.parent !== undefined);
  if (isTaken || (isMade && tenant.compensations.has(taskId))) return;
  const compensation: Compensation = {
    taskId,
    original,
    requester: nameIn(tenant, envelope.source),
    id: envelope.id,
    completedBy: undefined,
    isMade,
    isRequested: false,
  };
  tenant.compensations.set(taskId, compensation);
  state.over.push({ kind: "compensation", at, tenant, compensation });
}
