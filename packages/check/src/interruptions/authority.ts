import type { DomainEvent } from "../domain-event.ts";
import { isTerminal } from "../tasks/table.ts";
import { ownerOf, type Task } from "../tasks/task.ts";
import { type InterruptionContext, taskOf } from "./context.ts";

const RUNTIME = /^(?:harness|orchestrator|runtime|service):/;

/** Only a task that is known and live is interrupted, or answers (spec 5.7). False: nothing more can be said. */
export function checkTask(
  context: InterruptionContext,
  event: DomainEvent,
  id: string,
): Task | undefined {
  const { sink, tasks, settings } = context;
  if (tasks === undefined) return undefined;
  const { type } = event.envelope;
  const task = taskOf(context, event, id);
  if (task === undefined) {
    const mayBeUnknown = settings.externalTasks || tasks.isLenient;
    if (!mayBeUnknown) sink.add("interruption-task", `${type} of ${id}, which is unknown`, id);
    return undefined;
  }
  if (isTerminal(task.state)) {
    sink.add("interruption-task", `${type} of ${id}, which is ${task.state}`, id);
  }
  return task;
}

/** Who runs the task says what it does about an interruption, and its own process where it has one. */
export function checkOwner(
  { sink, tasks }: InterruptionContext,
  { envelope }: DomainEvent,
  task: Task | undefined,
): void {
  if (task === undefined || task.isAdopted || tasks?.isLenient) return;
  const { source, type, session_id: session } = envelope;
  if (!isOwner(task, source)) {
    const message = `${type} by ${source}, the owner is ${task.owner ?? ownerOf(task)}`;
    sink.add("interruption-owner", message, task.id);
    return;
  }
  const { heldIn } = task;
  if (heldIn === undefined || heldIn.endedAt !== undefined || heldIn.id === session) return;
  const message = `${type} in session ${session ?? "none"}, it is taken in ${heldIn.id}`;
  sink.add("interruption-owner", message, task.id);
}

/** Before anybody has taken a task it is for its target, and its submitter's. */
function isOwner(task: Task, source: string): boolean {
  if (task.owner !== undefined) return source === task.owner;
  return source === ownerOf(task) || source === task.target || source === task.submitter;
}

/** Who has a part in the task or in an ancestor, and runtimes (spec 5.7). */
export function checkEntitlement(
  context: InterruptionContext,
  event: DomainEvent,
  task: Task | undefined,
): void {
  const { sink, tasks } = context;
  const { source, type } = event.envelope;
  if (task === undefined || tasks?.isLenient) return;
  if (isRuntime(context, source) || hasPart(task, source)) return;
  sink.add("interruption-entitlement", `${type} of ${task.id} by ${source}`, task.id);
}

/** With proved senders only services bear these names. */
function isRuntime({ settings }: InterruptionContext, source: string): boolean {
  return settings.authenticated ? source.startsWith("service:") : RUNTIME.test(source);
}

function hasPart(task: Task, source: string): boolean {
  for (let at: Task | undefined = task; at !== undefined; at = at.parent) {
    const { delegation } = at;
    if (at.isAdopted) return true;
    const parts = [at.owner, at.submitter, at.target, delegation?.owner, delegation?.delegatedBy];
    if (parts.includes(source)) return true;
  }
  return false;
}
