/** Tasks that undo what another one did (spec 5.8). */
import { type DomainEvent, payloadText } from "../domain-event.ts";
import { isTerminal, mayFollow, type TaskState } from "../tasks/table.ts";
import type { Task } from "../tasks/task.ts";
import { checkEntitlement } from "./authority.ts";
import { type KnownCompensation, reasonKey } from "./book.ts";
import { bookOf, type InterruptionContext, taskOf } from "./context.ts";

/** A compensation whose task ended so may be tried again. */
const UNDONE: ReadonlySet<TaskState> = new Set(["failed", "timed_out", "cancelled"]);

/** A new task for one that there is, that has ended or is stopped, and that is none itself. */
export function requestCompensation(
  context: InterruptionContext,
  event: DomainEvent,
  id: string,
): void {
  const { sink } = context;
  const { tenant, envelope, frame } = event;
  const book = bookOf(context, tenant);
  const original = envelope.compensation_id ?? payloadText(envelope, "original_task");
  if (original === undefined || original === id || book.compensations.has(original)) {
    const message = `${id} would undo ${original ?? "nothing"}`;
    sink.add("compensation-original", message, id);
    if (original === undefined) return;
  }
  checkOriginal(context, event, id, original);
  checkNew(context, event, id);
  const reason = payloadText(envelope, "reason");
  checkOnce(context, event, id, book.byReason.get(reasonKey(original, reason)));
  const { source } = envelope;
  const made = { id: envelope.id, taskId: id, original, requester: source, reason, at: frame.at };
  book.add({ ...made, isCompleted: false });
  const { seq, subject } = frame;
  const { reasons } = book.at(id, frame.at);
  reasons.set(envelope.id, { reason: "compensation.requested", seq, subject });
}

function checkOriginal(
  context: InterruptionContext,
  event: DomainEvent,
  id: string,
  original: string,
): void {
  const { sink, tasks, settings } = context;
  if (tasks === undefined || tasks.isLenient) return;
  const task = taskOf(context, event, original);
  if (task === undefined) {
    if (settings.externalTasks) return;
    sink.add("compensation-original", `${id} would undo ${original}, which is unknown`, id);
    return;
  }
  checkEntitlement(context, event, task);
  if (task.compensates !== undefined) {
    sink.add("compensation-original", `${id} would undo the compensation ${original}`, id);
  }
  const stops = bookOf(context, event.tenant).get(original);
  const isStopped = stops?.ending !== undefined || (stops?.open && isOver(stops.open));
  if (isTerminal(task.state) || isStopped) return;
  sink.add("compensation-original", `${id} would undo ${original}, which is ${task.state}`, id);
}

const isOver = ({ state, policy }: { state: string; policy: string }): boolean =>
  state === "saved" || policy === "force_stop";

function checkNew(context: InterruptionContext, event: DomainEvent, id: string): void {
  const { sink } = context;
  const isKnown = bookOf(context, event.tenant).compensations.has(id);
  if (!isKnown && taskOf(context, event, id) === undefined) return;
  sink.add("compensation-task", `${id} is there already`, id);
}

/** Once for each original and reason, unless the task of the one before came to nothing. */
function checkOnce(
  context: InterruptionContext,
  event: DomainEvent,
  id: string,
  before: KnownCompensation | undefined,
): void {
  const { sink, tasks, settings } = context;
  if (before === undefined || tasks === undefined) return;
  if (before.at < event.frame.at - settings.retentionMs) return;
  const task = taskOf(context, event, before.taskId);
  // The id may have become somebody else's meanwhile.
  const isOther = task !== undefined && task.compensates !== before.original;
  if (task !== undefined && (isOther || UNDONE.has(task.state))) return;
  sink.add("compensation-twice", `${id} undoes again what ${before.taskId} undoes`, id);
}

/** Its owner or who asked for it says once that it is done, of a task that is, or may be, completed. */
export function completeCompensation(
  context: InterruptionContext,
  event: DomainEvent,
  id: string,
): void {
  const { sink, isLenient } = context;
  const { tenant, envelope, frame } = event;
  const book = bookOf(context, tenant);
  const known = book.compensations.get(id);
  const { compensation_id: original = known?.original } = envelope;
  if (known === undefined) {
    if (!isLenient) sink.add("compensation-order", `${id} was never asked for`, id);
    return;
  }
  if (known.isCompleted) sink.add("compensation-order", `${id} is completed again`, id);
  if (original !== known.original) {
    sink.add("compensation-order", `${id} undoes ${known.original}, not ${original}`, id);
  }
  known.isCompleted = true;
  const task = taskOf(context, event, id);
  checkCompleted(context, event, id, known, task);
  if (task?.state === "completed") return;
  const { seq, subject } = frame;
  const { reasons } = book.at(id, frame.at);
  reasons.set(envelope.id, { reason: "compensation.completed", seq, subject });
}

function checkCompleted(
  { sink, tasks }: InterruptionContext,
  { envelope }: DomainEvent,
  id: string,
  known: KnownCompensation,
  task: Task | undefined,
): void {
  if (tasks === undefined || tasks.isLenient) return;
  const { source } = envelope;
  if (source !== known.requester && (task === undefined || source !== task.owner)) {
    sink.add("compensation-party", `${id} is completed by ${source}`, id);
  }
  const isDone = task?.state === "completed";
  if (isDone || (task !== undefined && mayFollow(task.state, "completed"))) return;
  sink.add("compensation-order", `${id} is completed, its task is ${task?.state ?? "unknown"}`, id);
}
