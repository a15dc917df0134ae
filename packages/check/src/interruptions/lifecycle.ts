/** What agents say of interruptions: requested, acknowledged, saved, resumed or cancelled (spec 5.7). */
import { type DomainEvent, payloadField } from "../domain-event.ts";
import { after } from "../tasks/deadline.ts";
import { checkEntitlement, checkOwner, checkTask } from "./authority.ts";
import { type Interruption, isStopped, type Policy, type Stops } from "./book.ts";
import { checkNamed, checkResumed, register } from "./checkpoints.ts";
import { bookOf, type InterruptionContext } from "./context.ts";

/** From the weakest to the strongest. */
const POLICIES: readonly Policy[] = ["drain_then_stop", "save_and_stop", "force_stop"];

/** Interruptions of a task whose answers are told from those to a newer one. */
const EARLIER_MAX = 16;

/** Absent: `save_and_stop`. */
export function policyOf({ envelope }: DomainEvent): Policy {
  const named = POLICIES.find((policy) => policy === envelope.interruption_policy);
  return named ?? "save_and_stop";
}

/** Who may ask, and for what task. */
export function checkRequest(context: InterruptionContext, event: DomainEvent, id: string): void {
  checkEntitlement(context, event, checkTask(context, event, id));
}

/** One is open at a time; only a stronger one takes the place of one that has not stopped the task. */
export function checkOpen({ sink }: InterruptionContext, event: DomainEvent, stops: Stops): void {
  const { open, taskId } = stops;
  const policy = policyOf(event);
  if (open === undefined) return;
  const isStronger = POLICIES.indexOf(policy) > POLICIES.indexOf(open.policy);
  if (isStronger && !isStopped(open)) return;
  const message = `${policy} while ${open.id} (${open.policy}) is ${open.state}`;
  sink.add("interruption-open", message, taskId);
}

/**
 * From here on it is open; what was open gives way, and its tree goes on with the new one. `treeOf`: the
 * request for a tree that it came from; `trees`: those that have its task as root.
 */
export function open(
  context: InterruptionContext,
  event: DomainEvent,
  stops: Stops,
  { treeOf, trees = stops.open?.trees ?? [] }: { treeOf?: string; trees?: readonly string[] } = {},
): void {
  const { envelope, frame } = event;
  close(stops, frame.at);
  const policy = policyOf(event);
  stops.open = {
    id: envelope.id,
    policy,
    state: "requested",
    seq: frame.seq,
    subject: frame.subject,
    savedAt: 0,
    due: dueOf(context, event, policy),
    treeOf,
    trees,
    isAdopted: false,
    events: [envelope.id],
  };
}

/**
 * From receipt; a forced stop needs none. What the service says because of another log stands under the
 * time of the entry before it, and counts from when that happened.
 */
function dueOf(
  { settings }: InterruptionContext,
  { envelope, frame, owedBy, final }: DomainEvent,
  policy: Policy,
): number | undefined {
  if (policy === "force_stop") return undefined;
  const isDerived = owedBy !== undefined && final === undefined;
  const from = isDerived ? Math.max(frame.at, Date.parse(envelope.created_at)) : frame.at;
  const stated = payloadField(envelope, "grace_period_ms");
  const byDefault = policy === "drain_then_stop" ? settings.drainGraceMs : settings.saveGraceMs;
  return after(from, typeof stated === "number" ? stated : byDefault);
}

/** Its task goes on, with who resumes it. */
export function goOn({ tasks }: InterruptionContext, event: DomainEvent, stops: Stops): void {
  close(stops, event.frame.at);
  tasks?.resume(event);
}

export function close(stops: Stops, at: number): void {
  if (stops.open === undefined) return;
  stops.earlier.push(stops.open);
  if (stops.earlier.length > EARLIER_MAX) stops.earlier.shift();
  stops.open = undefined;
  stops.closedAt = at;
}

export function acknowledge(context: InterruptionContext, event: DomainEvent, id: string): void {
  const answered = answer(context, event, id, ({ state }) => state === "requested");
  if (answered !== undefined) answered.open.state = "acknowledged";
}

export function save(context: InterruptionContext, event: DomainEvent, id: string): void {
  const answered = answer(
    context,
    event,
    id,
    ({ state, policy }) =>
      state === "acknowledged" || (policy === "force_stop" && state === "requested"),
  );
  if (answered === undefined) return;
  register(context, event, answered.stops);
  answered.open.state = "saved";
  answered.open.savedAt = event.frame.seq;
  answered.open.due = undefined;
}

/** An answer of who runs the task, in turn and to the open interruption. */
function answer(
  context: InterruptionContext,
  event: DomainEvent,
  id: string,
  isInTurn: (open: Interruption) => boolean,
): { stops: Stops; open: Interruption } | undefined {
  checkOwner(context, event, checkTask(context, event, id));
  const found = inTurn(context, event, id, isInTurn);
  if (found === undefined) return undefined;
  return found;
}

export function resume(
  context: InterruptionContext,
  event: DomainEvent,
  id: string,
): Stops | undefined {
  const task = checkTask(context, event, id);
  if (task?.owner !== event.envelope.source) checkEntitlement(context, event, task);
  const found = inTurn(context, event, id, isStopped);
  if (found === undefined) return undefined;
  checkResumed(context, event, found.stops);
  return found.stops;
}

/** It ends the task instead of resuming it. */
export function cancel(context: InterruptionContext, event: DomainEvent, id: string): void {
  const { frame, envelope } = event;
  const task = checkTask(context, event, id);
  if (task?.owner !== envelope.source) checkEntitlement(context, event, task);
  const mayCancel = (open: Interruption) => open.state === "acknowledged" || isStopped(open);
  const found = inTurn(context, event, id, mayCancel);
  if (found === undefined) return;
  const { stops } = found;
  checkNamed(context, event, stops);
  close(stops, frame.at);
  const { seq, subject } = frame;
  stops.reasons.set(envelope.id, { reason: "cancelled", seq, subject });
  stops.ending = envelope.id;
}

/** The open interruption of the task, when the event is in turn. */
function inTurn(
  context: InterruptionContext,
  event: DomainEvent,
  id: string,
  isInTurn: (open: Interruption) => boolean,
): { stops: Stops; open: Interruption } | undefined {
  const { sink } = context;
  const { tenant, frame, envelope } = event;
  const stops = bookOf(context, tenant).at(id, frame.at);
  if (stops.open === undefined && context.isLenient && stops.closedAt === 0) adopt(event, stops);
  const { open } = stops;
  if (open === undefined) {
    sink.add("interruption-order", `${envelope.type} of ${id}, which nothing interrupts`, id);
    return undefined;
  }
  if (!open.isAdopted && !isInTurn(open)) {
    const message = `${envelope.type} while ${open.id} (${open.policy}) is ${open.state}`;
    sink.add("interruption-order", message, id);
    return undefined;
  }
  checkMeant(context, event, stops, open);
  open.events.push(envelope.id);
  return { stops, open };
}

/** What names an event of an older interruption means that one. */
function checkMeant(
  { sink }: InterruptionContext,
  { envelope }: DomainEvent,
  { earlier, taskId }: Stops,
  open: Interruption,
): void {
  const { causation_id: cause, type } = envelope;
  if (cause === undefined || open.events.includes(cause)) return;
  const older = earlier.find(({ events }) => events.includes(cause));
  if (older === undefined) return;
  const message = `${type} answers ${older.id}, open is ${open.id}`;
  sink.add("interruption-superseded", message, taskId);
}

/** One whose request is not in this log. */
function adopt({ frame, envelope }: DomainEvent, stops: Stops): void {
  stops.open = {
    id: envelope.causation_id ?? envelope.id,
    policy: "save_and_stop",
    state: "requested",
    seq: frame.seq,
    subject: frame.subject,
    savedAt: 0,
    due: undefined,
    treeOf: undefined,
    trees: [],
    isAdopted: true,
    events: [],
  };
}
