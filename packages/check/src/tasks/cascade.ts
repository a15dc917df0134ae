import type { OpenPlan } from "../plan-book.ts";
import { payloadField, type TaskContext, type TaskEvent } from "./context.ts";
import { maybeStopped } from "./stops.ts";
import { isTerminal } from "./table.ts";
import { coveringRoot, type GentlePlan, isAtOrAbove, type Task } from "./task.ts";

const BEGINNING: ReadonlySet<string> = new Set(["task.cancelled", "task.failed", "task.timed_out"]);

/** A begun cascade fixes the outcome of its root and closes the subtree (architecture, section 2). */
export function openCascade(context: TaskContext, plan: OpenPlan, task: Task): void {
  const { sink, forest } = context;
  const { type } = plan.envelope;
  if (!BEGINNING.has(type)) sink.add("begun-form", `no cascade begins with ${type}`, task.id);
  if (isTerminal(task.state)) {
    sink.add("begun-pointless", `${task.id} is ${task.state}`, task.id);
    return;
  }
  if (task.liveChildren === 0 && !task.isAdopted) {
    sink.add("begun-pointless", `${task.id} has no live descendant`, task.id);
  }
  const closed = forest.cascades > 0 ? coveringRoot(task) : undefined;
  if (closed?.plan !== undefined) {
    sink.add("begun-nested", `${task.id} is covered by plan ${closed.plan.id}`, task.id);
  }
  // One that was given up makes room for the next.
  if (task.plan !== undefined && !task.plan.isAbandoned) return;
  if (task.plan === undefined) forest.cascades += 1;
  task.plan = plan;
  // A cancel request of the same root gives way, whatever becomes of the cascade.
  for (const gentle of task.gentle ?? []) gentle.isAbandoned = true;
}

/** What a closed subtree takes: planned events and the ends of leaves. */
export function checkClosed(
  context: TaskContext,
  event: TaskEvent,
  task: Task,
  name: string,
  isEnd: boolean,
): void {
  const { sink, forest } = context;
  const root = forest.cascades > 0 ? coveringRoot(task) : undefined;
  const plan = root?.plan;
  if (plan === undefined || event.final === plan) return;
  if (task === root) {
    const rule = isEnd ? "plan-root-ended" : "plan-work";
    sink.add(rule, `${name} on the root of plan ${plan.id}`, task.id);
  } else if (event.owedBy !== undefined) {
    // Derived cancels and requests are held to the plan that owes them.
    if (name === "timed_out" || name === "failed") {
      sink.add("plan-timer", `${name} by itself in the subtree of plan ${plan.id}`, task.id);
    }
  } else if (!isEnd) {
    sink.add("plan-work", `${name} in the subtree of plan ${plan.id}`, task.id);
  }
}

/** A derived `task.cancelled`: a step of a begun plan, or of a cancel request. */
export function checkStep(context: TaskContext, event: TaskEvent, task: Task): void {
  const { tenant, owedBy } = event;
  if (owedBy === undefined) return;
  const plan = context.plans.get(tenant, owedBy);
  if (plan !== undefined) {
    checkCascadeStep(context, event, task, plan);
    return;
  }
  const gentle = context.forest.request(tenant, owedBy);
  if (gentle !== undefined && isAtOrAbove(gentle.root, task)) {
    checkGentleStep(context, event, task, gentle);
    return;
  }
  context.sink.add("plan-step", `${owedBy} is no plan that covers ${task.id}`, task.id);
}

function checkCascadeStep(
  context: TaskContext,
  event: TaskEvent,
  task: Task,
  plan: OpenPlan,
): void {
  const { sink } = context;
  const { envelope } = event;
  const root = plan.isAbandoned ? undefined : coveringRoot(task);
  if (!plan.isAbandoned && root?.plan !== plan) {
    sink.add("plan-step", `plan ${plan.id} does not cover ${task.id}`, task.id);
    return;
  }
  checkCorrelation(context, event, task, plan.id);
  if (payloadField(envelope, "reason") !== "parent task cancelled") {
    sink.add("cascade-reason", `${task.id} is cancelled for another reason`, task.id);
  }
  const isChildOfRoot = task.parent?.plan === plan;
  checkCausation(context, event, task, plan.id, isChildOfRoot ? plan.envelope.id : undefined);
}

/** A child names its parent's own end, which is logged later; `checkPromisedEnd` compares it. */
function checkCausation(
  context: TaskContext,
  event: TaskEvent,
  task: Task,
  planId: string,
  rootEnd: string | undefined,
): void {
  const { sink } = context;
  const { causation_id: named } = event.envelope;
  const { parent } = task;
  if (named === undefined) {
    sink.add("cascade-causation", `${task.id} names no cause`, task.id);
    return;
  }
  if (rootEnd !== undefined) {
    if (named !== rootEnd) {
      sink.add("cascade-causation", `${task.id} names ${named}, not ${rootEnd}`, task.id);
    }
    return;
  }
  if (parent === undefined) return;
  const promised = parent.promisedEnd;
  if (promised?.plan === planId && promised.id !== named) {
    sink.add("cascade-causation", `${task.id} names ${named}, not ${promised.id}`, task.id);
  }
  parent.promisedEnd = { plan: planId, id: named };
}

/** A task whose cascaded children have named the event that ends it ends by that event. */
export function checkPromisedEnd(context: TaskContext, event: TaskEvent, task: Task): void {
  const promised = task.promisedEnd;
  const { id } = event.envelope;
  if (promised === undefined || promised.id === id) return;
  if (context.plans.get(event.tenant, promised.plan)?.isAbandoned) return;
  if (context.forest.request(event.tenant, promised.plan)?.isAbandoned) return;
  const message = `children of ${task.id} name ${promised.id} as its end, it is ${id}`;
  context.sink.add("cascade-causation", message, task.id);
}

function checkGentleStep(
  context: TaskContext,
  event: TaskEvent,
  task: Task,
  gentle: GentlePlan,
): void {
  const { sink } = context;
  const isForced = payloadField(event.envelope, "forced") === true;
  checkCorrelation(context, event, task, gentle.id);
  if (task === gentle.root) checkCausation(context, event, task, gentle.id, gentle.id);
  else if (isForced) checkCausation(context, event, task, gentle.id, undefined);
  else if (event.envelope.causation_id === undefined) {
    sink.add("cascade-causation", `${task.id} names no cause`, task.id);
  }
  if (isForced) {
    if (event.frame.at < gentle.due) {
      const message = `${task.id} is forced at ${event.frame.at}, the grace ends at ${gentle.due}`;
      sink.add("gentle-early", message, task.id);
    }
  } else if (task.owner !== undefined && !maybeStopped(context, event, task)) {
    sink.add("gentle-unforced", `${task.id} has the runner ${task.owner}`, task.id);
  }
}

function checkCorrelation(
  context: TaskContext,
  event: TaskEvent,
  task: Task,
  planId: string,
): void {
  const { correlation_id: named } = event.envelope;
  if (named === planId) return;
  const message = `${task.id} correlates to ${named ?? "nothing"}, not ${planId}`;
  context.sink.add("cascade-correlation", message, task.id);
}

/** A derived `task.cancel.requested`: root first, each running task once (spec 5.4). */
export function checkDerivedRequest(context: TaskContext, event: TaskEvent, task: Task): void {
  const { sink, forest } = context;
  const { tenant, owedBy } = event;
  const gentle = owedBy === undefined ? undefined : forest.request(tenant, owedBy);
  if (gentle === undefined || !isAtOrAbove(gentle.root, task)) {
    sink.add("gentle-request", `${owedBy} is no cancel request at or above ${task.id}`, task.id);
    return;
  }
  checkCorrelation(context, event, task, gentle.id);
  if (task.owner === undefined && !task.isAdopted) {
    sink.add("gentle-request", `${task.id} has no runner to ask`, task.id);
  }
  const { parent } = task;
  const isParentFirst =
    task === gentle.root ||
    parent === undefined ||
    parent === gentle.root ||
    parent.owner === undefined ||
    parent.ownedAt > gentle.seq ||
    parent.requestedBy !== undefined ||
    maybeStopped(context, event, parent);
  if (!isParentFirst) {
    sink.add("gentle-order", `${task.id} is asked before its parent ${parent.id}`, task.id);
  }
  if (task !== gentle.root && task.requestedBy === gentle.id) {
    sink.add("gentle-order", `${task.id} is asked twice by ${gentle.id}`, task.id);
  }
  task.requestedBy = gentle.id;
}
