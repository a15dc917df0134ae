/** What the service says of interruptions by itself: expired, with a session, over with the task. */
import { type DomainEvent, payloadField } from "../domain-event.ts";
import { isTerminal } from "../tasks/table.ts";
import type { Task } from "../tasks/task.ts";
import { isStopped, type Stops } from "./book.ts";
import { bookOf, type InterruptionContext, taskOf } from "./context.ts";
import { close, open, policyOf } from "./lifecycle.ts";

/** Whether a request of the service is the end of a grace. */
export const isExpiry = ({ envelope }: DomainEvent): boolean =>
  payloadField(envelope, "expired") === true;

/** Nothing was saved within the grace: from here on the task is stopped (spec 5.7, C10). */
export function expire(context: InterruptionContext, event: DomainEvent, id: string): void {
  const { sink, settings, isLenient } = context;
  const { tenant, envelope, frame } = event;
  if (policyOf(event) !== "force_stop" || payloadField(envelope, "grace_period_ms") !== 0) {
    sink.add("grace-form", `the grace of ${id} expires with another policy or grace`, id);
  }
  const stops = bookOf(context, tenant).at(id, frame.at);
  const { open } = stops;
  const isIt = open !== undefined && !isStopped(open) && open.id === envelope.causation_id;
  if (open === undefined || !(isIt || open.isAdopted)) {
    if (open === undefined && isLenient) return;
    const found = open === undefined ? "none" : `${open.id} (${open.policy}, ${open.state})`;
    sink.add("grace-cause", `the grace of ${envelope.causation_id} expires, open is ${found}`, id);
    return;
  }
  if (open.due !== undefined && frame.at < open.due) {
    sink.add("grace-early", `the grace of ${id} ends at ${open.due}, not at ${frame.at}`, id);
  }
  open.policy = "force_stop";
  open.state = "requested";
  open.due = undefined;
  open.events.push(envelope.id);
  // The entry says what was decided under the settings of its time.
  const next = payloadField(envelope, "on_grace_expired") ?? settings.onGraceExpired;
  if (next === "fail") owe(stops, event, "expired");
}

/** A resume without a checkpoint was refused: the task is to fail (spec 5.7). */
export function refuse(context: InterruptionContext, event: DomainEvent, id: string): void {
  owe(bookOf(context, event.tenant).at(id, event.frame.at), event, "checkpoint_missing");
}

function owe(
  stops: Stops,
  { envelope, frame }: DomainEvent,
  reason: "expired" | "checkpoint_missing",
): void {
  const { seq, subject } = frame;
  stops.reasons.set(envelope.id, { reason, seq, subject });
  stops.ending = envelope.id;
}

/** The session has ended in which an agent had the task (spec 5.1, 5.7). */
export function interruptWithSession(
  context: InterruptionContext,
  event: DomainEvent,
  id: string,
): void {
  const { sink } = context;
  const { tenant, envelope, frame } = event;
  const { causation_id: cause } = envelope;
  const stops = bookOf(context, tenant).at(id, frame.at);
  const fault = faultOf(context, event, stops, taskOf(context, event, id));
  if (fault !== undefined) {
    sink.add("interrupt-cause", `${id} is interrupted because of ${cause}: ${fault}`, id);
  }
  open(context, event, stops);
  if (cause !== undefined) stops.sessionEnds.add(cause);
}

function faultOf(
  { tasks, settings }: InterruptionContext,
  event: DomainEvent,
  stops: Stops,
  task: Task | undefined,
): string | undefined {
  const { causation_id: cause = "" } = event.envelope;
  if (policyOf(event) !== "save_and_stop") return `by ${policyOf(event)}`;
  if (stops.open !== undefined) return `${stops.open.id} is open`;
  if (stops.sessionEnds.has(cause)) return "once more";
  if (tasks === undefined || tasks.isLenient) return undefined;
  if (task === undefined) return "it is unknown";
  if (isTerminal(task.state)) return `it is ${task.state}`;
  const { heldIn } = task;
  if (heldIn?.endedBy !== cause) return "that is no end of the session that has it";
  const isDue = heldIn.state === "closed" || settings.orphanedTasks === "interrupt";
  return isDue ? undefined : "tasks of a lost session are not interrupted";
}

/** Its task has ended: there is nothing left to stop or to resume. */
export function closeWithTask(context: InterruptionContext, event: DomainEvent, id: string): void {
  const { sink, isLenient, tasks } = context;
  const { tenant, envelope, frame } = event;
  const stops = bookOf(context, tenant).at(id, frame.at);
  if (stops.open === undefined && !isLenient) {
    sink.add("closing-cause", `nothing interrupts ${id}`, id);
  }
  close(stops, frame.at);
  const task = taskOf(context, event, id);
  if (tasks === undefined || tasks.isLenient) return;
  const { causation_id: cause } = envelope;
  // A task that was offered only is gone when the offer is (spec 5.6).
  if (task === undefined || (isTerminal(task.state) && task.endedBy === cause)) return;
  const state = `${task.state} by ${task.endedBy ?? "nothing"}`;
  sink.add("closing-cause", `${id} is closed because of ${cause}, it is ${state}`, id);
}
