import type { Envelope } from "@harmovela/envelope";
import { instantIn } from "../domain-event.ts";
import { isElsewhere, type TaskContext, type TaskEvent } from "../tasks/context.ts";
import { earlier } from "../tasks/deadline.ts";
import type { Task } from "../tasks/task.ts";
import type { Delegation, DelegationState } from "./delegation.ts";
import type { TokenBook } from "./token-book.ts";

/** From which states an offer ends by itself: nobody has accepted it. */
const EXPIRES_FROM: readonly DelegationState[] = ["requested", "escalated"];

/** From which states an event leads on (spec 5.6). */
const FROM: ReadonlyMap<string, readonly DelegationState[]> = new Map([
  ["accepted", ["requested", "escalated"]],
  ["rejected", ["requested", "accepted", "escalated"]],
  ["handoff.completed", ["accepted"]],
  ["escalated", ["requested", "accepted", "handed_off", "escalated"]],
]);

/** Whether the event is in turn, by who may say it, of the parties in force; what is not is named. */
export function checkAnswer(
  { sink }: TaskContext,
  event: TaskEvent,
  delegation: Delegation,
  name: string,
): boolean {
  const { id, state, acceptedIn, isAdopted } = delegation;
  const { source } = event.envelope;
  if (isAdopted) return true;
  const from = event.owedBy === undefined ? FROM.get(name) : EXPIRES_FROM;
  if (!from?.includes(state)) {
    sink.add("delegation-transition", `${name} after ${state}`, id);
    return false;
  }
  if (event.owedBy === undefined && !mayAnswer(delegation, name, source)) {
    sink.add("delegation-party", `${name} of ${id} by ${source}`, id);
    return false;
  }
  if (name === "rejected" && state === "accepted" && isElsewhere(event, acceptedIn)) {
    sink.add("task-instance", `${id} is given back, and session ${acceptedIn.id} has it`, id);
    return false;
  }
  if (namesParties(delegation, event.envelope, name)) return true;
  sink.add("delegation-tuple", `${name} of ${id} names other parties`, id);
  return false;
}

/** An open offer is anybody's to accept. */
function mayAnswer(delegation: Delegation, name: string, source: string): boolean {
  const { state, delegatedBy, delegatedTo, owner } = delegation;
  if (name === "handoff.completed") return source === delegatedBy;
  if (name === "escalated" && source === owner) return true;
  // While an escalation waits only whose the task is takes it elsewhere.
  if (name === "escalated" && state === "escalated") return false;
  if (source === delegatedTo) return true;
  return name === "escalated"
    ? source === delegatedBy
    : name === "accepted" && delegatedTo === undefined;
}

/** An event need not name the parties; an escalation names one of them or the owner, and somebody else (C27). */
function namesParties(delegation: Delegation, envelope: Envelope, name: string): boolean {
  const { delegatedBy, delegatedTo, owner } = delegation;
  if (name === "escalated") {
    const by = envelope.delegated_by ?? envelope.source;
    const to = supervisorOf(envelope);
    const isParty = [delegatedBy, delegatedTo, owner].includes(by);
    return isParty && (to === undefined || to !== delegatedTo);
  }
  const taker = delegatedTo ?? envelope.source;
  const { delegated_by = delegatedBy, delegated_to = taker } = envelope;
  return delegated_by === delegatedBy && delegated_to === taker;
}

/** To whom an escalation goes: the field that says so, else the agent to whom it is addressed. */
function supervisorOf({ delegated_to: to, target }: Envelope): string | undefined {
  if (to !== undefined || target === undefined) return to;
  return /^(?:harness|service):/.test(target) ? undefined : target;
}

/** What the event makes of the delegation and of its task. */
export function applyAnswer(
  context: TaskContext,
  tokens: TokenBook,
  event: TaskEvent,
  delegation: Delegation,
  name: string,
): void {
  const { envelope, tenant } = event;
  if (name !== "accepted") {
    tokens.void(tenant, delegation.issued);
    delegation.issued = [];
  }
  if (name === "accepted") accept(context, event, delegation);
  else if (name === "rejected") withdraw(context, event, delegation);
  else if (name === "handoff.completed") handOff(event, delegation);
  else if (name === "escalated") escalate(envelope, delegation);
}

function accept({ sessions }: TaskContext, event: TaskEvent, delegation: Delegation): void {
  const { task } = delegation;
  delegation.state = "accepted";
  delegation.acceptedIn = sessions.own(event);
  delegation.delegatedTo ??= event.envelope.source;
  if (task === undefined) return;
  if (task.owner === undefined) {
    delegation.hasTaken = true;
    work(event, delegation, task);
  }
  if (task.state === "submitted") task.state = "accepted";
}

/** The delegate works on the task from now on, and has until the deadline. */
function work(event: TaskEvent, delegation: Delegation, task: Task): void {
  const { delegatedTo, acceptedIn, deadline } = delegation;
  task.owner = delegatedTo;
  task.heldIn = acceptedIn;
  task.isFree = false;
  task.ownedAt = event.frame.seq;
  task.offerDue = earlier(task.offerDue, deadline);
}

function withdraw(context: TaskContext, event: TaskEvent, delegation: Delegation): void {
  const { task, delegatedTo, isAdopted } = delegation;
  delegation.state = "rejected";
  delegation.retryAfter = instantIn(event.envelope, "retry_after");
  if (task === undefined) return;
  if ((delegation.hasTaken || isAdopted) && task.owner === delegatedTo) {
    task.owner = undefined;
    task.heldIn = undefined;
    task.offerDue = undefined;
    delegation.hasTaken = false;
  }
  if (task.owner === undefined) {
    task.target = delegation.targetBefore;
    // One that was offered only, and never had a child, leaves nothing behind.
    const isOfferedOnly = !task.isSubmitted && task.compensates === undefined;
    if (isOfferedOnly && task.children === 0) context.forest.remove(event.tenant, task);
  }
  // A task that goes on with somebody whom only the delegation put there still is its owner's.
  if (task.owner !== undefined && task.owner !== delegation.owner) return;
  delegation.task = undefined;
  task.delegation = undefined;
}

function escalate(envelope: Envelope, delegation: Delegation): void {
  const { task } = delegation;
  delegation.state = "escalated";
  delegation.delegatedBy = envelope.delegated_by ?? envelope.source;
  delegation.delegatedTo = supervisorOf(envelope);
  delegation.hasTaken = false;
  if (task !== undefined && task.owner === undefined) task.target = delegation.delegatedTo;
}

function handOff(event: TaskEvent, delegation: Delegation): void {
  const { task } = delegation;
  const { delegated_to: to = delegation.delegatedTo } = event.envelope;
  delegation.state = "handed_off";
  if (to === undefined) return;
  delegation.delegatedTo = to;
  delegation.owner = to;
  if (task !== undefined) work(event, delegation, task);
}
