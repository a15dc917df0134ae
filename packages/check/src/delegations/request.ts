import type { Envelope } from "@harmovela/envelope";
import { instantIn } from "../domain-event.ts";
import { checkOpen } from "../tasks/closed.ts";
import { linked, payloadText, type TaskContext, type TaskEvent } from "../tasks/context.ts";
import { adopt, checkParent, create } from "../tasks/submission.ts";
import { isTerminal } from "../tasks/table.ts";
import { ownerOf, type Task } from "../tasks/task.ts";
import { type DelegationBook, keyOf } from "./book.ts";
import type { Delegation } from "./delegation.ts";

/** `delegation.requested`: a new task under a parent, or one that its owner offers (spec 5.6). */
export function request(
  context: TaskContext,
  book: DelegationBook,
  event: TaskEvent,
  id: string,
): void {
  const { sink, forest } = context;
  const { tenant, envelope, frame } = event;
  const { source, delegated_to: to } = envelope;
  if (envelope.delegated_by !== source) {
    const named = envelope.delegated_by ?? "nobody";
    sink.add("delegation-tuple", `${source} delegates in the name of ${named}`, id);
  }
  const known = forest.get(tenant, id);
  if (known !== undefined && isTerminal(known.state)) {
    sink.add("task-terminal", `requested on a task that is ${known.state}`, id);
    return;
  }
  const before = book.get(tenant, id);
  checkRetry(context, event, before);
  const key = claimKey(context, book, event, known, id);
  if (known !== undefined) checkExisting(context, event, known);
  const task = known ?? createTask(context, event, id);
  if (before !== undefined) {
    book.tokens.void(tenant, before.issued);
    if (before.state !== "rejected") book.isOver(tenant, before, frame.at);
  }
  const delegation: Delegation = {
    id,
    task,
    state: "requested",
    delegatedBy: source,
    delegatedTo: to,
    owner: source,
    acceptedIn: undefined,
    key,
    at: frame.at,
    deadline: deadlineOf(envelope, frame.at),
    hasTaken: false,
    targetBefore: known?.target,
    retryAfter: undefined,
    isAdopted: false,
    issued: [],
  };
  book.set(tenant, delegation);
  task.delegation = delegation;
  if (task.owner === undefined) task.target = to;
}

/** At its time, or at once when that has passed (architecture, section 5). */
function deadlineOf(envelope: Envelope, at: number): number | undefined {
  const stated = instantIn(envelope, "deadline");
  return stated === undefined ? undefined : Math.max(at, stated);
}

function checkRetry({ sink }: TaskContext, event: TaskEvent, before: Delegation | undefined): void {
  const { envelope, frame } = event;
  if (before?.state !== "rejected" || before.delegatedTo !== envelope.delegated_to) return;
  if (before.retryAfter === undefined || before.retryAfter <= frame.at) return;
  const message = `asked again at ${frame.at}, and not before ${before.retryAfter}`;
  sink.add("delegation-retry", message, before.id);
}

/** The key of a request, which has made no other task. */
function claimKey(
  { sink }: TaskContext,
  book: DelegationBook,
  { tenant, envelope }: TaskEvent,
  known: Task | undefined,
  id: string,
): string | undefined {
  const named = payloadText(envelope, "key");
  if (named === undefined) return undefined;
  const parent = linked(envelope, "parent_task_id") ?? known?.parent?.id;
  const key = keyOf([tenant, parent, envelope.source, named]);
  const made = book.claimKey(key, id);
  if (made !== undefined) {
    sink.add("delegation-key", `the key of ${id} has made ${made}`, id);
  }
  return key;
}

/** One that there is may be offered by its owner alone, and to one agent at a time. */
function checkExisting(context: TaskContext, event: TaskEvent, task: Task): void {
  const { sink } = context;
  const { source } = event.envelope;
  checkParent(context, event, task);
  checkOpen(context, event, task);
  if (!task.isAdopted && ownerOf(task) !== source) {
    const message = `${source} offers ${task.id}, the owner is ${ownerOf(task)}`;
    sink.add("delegation-owner", message, task.id);
  }
  const { delegation } = task;
  if (delegation === undefined) return;
  if (delegation.state === "rejected" || delegation.state === "handed_off") return;
  sink.add("delegation-transition", `requested after ${delegation.state}`, task.id);
}

function createTask(context: TaskContext, event: TaskEvent, id: string): Task {
  if (context.isLenient) return adopt(context, event.tenant, id);
  const { source, delegated_to: to } = event.envelope;
  const task = create(context, event, id, to);
  if (context.settings.authenticated && task.parent && !hasPart(task.parent, source)) {
    const message = `${source} delegates under ${task.parent.id} without a part in it`;
    context.sink.add("delegation-entitlement", message, id);
  }
  return task;
}

/** Owner, submitter or target of the parent, or an owner of an ancestor. */
function hasPart(parent: Task, source: string): boolean {
  if (parent.submitter === source || parent.target === source) return true;
  for (let at: Task | undefined = parent; at !== undefined; at = at.parent) {
    if (at.isAdopted || at.owner === source || ownerOf(at) === source) return true;
  }
  return false;
}
