import type { Envelope } from "@harmovela/envelope";
import { isEntitled } from "./authority.ts";
import { checkOpen } from "./closed.ts";
import { linked, payloadField, type TaskContext, type TaskEvent } from "./context.ts";
import { after, earlier } from "./deadline.ts";
import { checkRequest, isRequest } from "./requests.ts";
import { checkSpawn, checkWork } from "./stops.ts";
import { isTerminal, type TaskState } from "./table.ts";
import { coveringRoot, gentleAbove, type Task } from "./task.ts";

/** `task.submitted`: a new id under a parent that can take it (spec 5.4, 5.5). */
export function submit(context: TaskContext, event: TaskEvent, id: string): void {
  const { sink, forest } = context;
  const { tenant, envelope } = event;
  const known = forest.get(tenant, id);
  const isOwn = !isRequest(event);
  if (known !== undefined && isOwn && !known.isSubmitted && !isTerminal(known.state)) {
    fillIn(context, event, known);
    return;
  }
  if (known !== undefined) {
    sink.add("task-reused", `${id} is submitted again`, id);
    return;
  }
  const task = create(context, event, id, envelope.target);
  checkRequest(context, event, id, "submitted");
  // Its agent may still submit what a compensation has made (spec 5.8).
  task.isSubmitted = isOwn;
  task.due = dueOf(envelope, event.frame.at);
}

/** The submission of a task that a delegation has made; it is accepted once (spec 5.6). */
function fillIn(context: TaskContext, event: TaskEvent, task: Task): void {
  const { source } = event.envelope;
  if (!isEntitled(task, source)) {
    context.sink.add("submission-entitlement", `${source} has no part in ${task.id}`, task.id);
  }
  checkParent(context, event, task);
  checkOpen(context, event, task);
  checkWork(context, event, task, "submitted");
  task.isSubmitted = true;
  task.due = earlier(task.due, dueOf(event.envelope, event.frame.at));
}

/** A task as its first event makes it, under the parent that the event names. */
export function create(
  context: TaskContext,
  event: TaskEvent,
  id: string,
  target: string | undefined,
): Task {
  const { sink, forest, settings } = context;
  const task: Task = {
    ...blank(id, "submitted", parentOf(context, event, id)),
    ...originOf(context, event, id),
    target,
  };
  if (task.depth > settings.maxDepth) {
    sink.add("tree-depth", `depth ${task.depth} is beyond ${settings.maxDepth}`, id);
  }
  forest.add(event.tenant, task);
  return task;
}

/** Whose it is before anybody takes it: a task that undoes another one is its requester's (spec 5.8). */
function originOf(
  { sink, interruptions }: TaskContext,
  event: TaskEvent,
  id: string,
): Pick<Task, "submitter" | "compensates" | "isAdopted"> {
  const { source, compensation_id: original } = event.envelope;
  if (!isRequest(event)) return { submitter: source, compensates: undefined, isAdopted: false };
  if (linked(event.envelope, "parent_task_id") !== undefined) {
    sink.add("compensation-apart", `${id} is put below a task`, id);
  }
  const made = interruptions?.compensation(event.tenant, id);
  if (made !== undefined && made.original !== original) {
    sink.add("request-reason", `${id} undoes ${made.original}, not ${original}`, id);
  }
  // Who asked for it stands in a log that may not be read here.
  return { submitter: made?.requester, compensates: original, isAdopted: made === undefined };
}

/** The parent of a task never changes (spec 5.5). */
export function checkParent(context: TaskContext, event: TaskEvent, task: Task): void {
  const named = linked(event.envelope, "parent_task_id");
  if (named === undefined || named === task.parent?.id) return;
  if (task.isAdopted && task.parent === undefined) return;
  const message = `parent ${named}, it was ${task.parent?.id ?? "none"}`;
  context.sink.add("parent-changed", message, task.id);
}

/** A task whose submission is not in this log. */
export function adopt(context: TaskContext, tenant: string, id: string): Task {
  const unknown = { isAdopted: true, isStateKnown: false, isSubmitted: true };
  const task: Task = { ...blank(id, "submitted", undefined), ...unknown };
  context.forest.add(tenant, task);
  return task;
}

function parentOf(context: TaskContext, event: TaskEvent, id: string): Task | undefined {
  const { sink, forest } = context;
  const parentId = linked(event.envelope, "parent_task_id");
  if (parentId === undefined) return undefined;
  if (parentId === id) {
    sink.add("parent-cycle", `${id} names itself as parent`, id);
    return undefined;
  }
  const parent = forest.get(event.tenant, parentId);
  if (parent === undefined) {
    if (context.isLenient) return adopt(context, event.tenant, parentId);
    sink.add("parent-unknown", `parent ${parentId} of ${id} is unknown`, id);
    return undefined;
  }
  if (isTerminal(parent.state)) {
    sink.add("parent-terminal", `parent ${parentId} of ${id} is ${parent.state}`, id);
    return undefined;
  }
  const closed = forest.cascades > 0 ? coveringRoot(parent) : undefined;
  if (closed?.plan !== undefined) {
    sink.add("plan-spawn", `${id} joins a subtree that plan ${closed.plan.id} has closed`, id);
  }
  const gentle = forest.requests > 0 ? gentleAbove(parent) : undefined;
  if (gentle !== undefined) {
    sink.add("gentle-spawn", `${id} joins a subtree that ${gentle.id} asked to cancel`, id);
  }
  checkSpawn(context, event, parent, id);
  return parent;
}

/** From receipt, the tighter of the two names for one thing (spec 5.4, C32). */
function dueOf(envelope: Envelope, at: number): number | undefined {
  const limits = [
    payloadField(envelope, "timeout_ms"),
    payloadField(envelope, "deadline_ms"),
  ].filter((limit) => typeof limit === "number");
  return limits.length === 0 ? undefined : after(at, Math.min(...limits));
}

function blank(id: string, state: TaskState, parent: Task | undefined): Task {
  return {
    id,
    state,
    parent,
    depth: parent === undefined ? 0 : parent.depth + 1,
    liveChildren: 0,
    children: 0,
    submitter: undefined,
    target: undefined,
    isSubmitted: false,
    compensates: undefined,
    delegation: undefined,
    owner: undefined,
    heldIn: undefined,
    isFree: false,
    ownedAt: 0,
    due: undefined,
    offerDue: undefined,
    isAdopted: false,
    isStateKnown: true,
    endedBy: undefined,
    plan: undefined,
    gentle: undefined,
    requestedBy: undefined,
    promisedEnd: undefined,
  };
}
