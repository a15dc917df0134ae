import { isService } from "../event-rules.ts";
import { isElsewhere, type TaskContext, type TaskEvent } from "./context.ts";
import { isBlind } from "./stops.ts";
import type { Task } from "./task.ts";

const ENDS_BY_PARTIES: ReadonlySet<string> = new Set(["failed", "timed_out"]);

/** Who may move a task (spec 5.4, 5.5). What services derive or ask for is exempt. */
export function checkAuthority(
  context: TaskContext,
  event: TaskEvent,
  task: Task,
  name: string,
): void {
  const { source } = event.envelope;
  if (event.owedBy !== undefined || isService(source)) return;
  if (name === "cancelled" || name === "cancel.requested") {
    if (!isEntitled(task, source)) {
      context.sink.add("task-entitlement", `${source} may not cancel ${task.id}`, task.id);
    }
    return;
  }
  if (task.owner !== undefined) {
    if (source !== task.owner) {
      const message = `${name} from ${source}, the owner is ${task.owner}`;
      context.sink.add("task-owner", message, task.id);
    } else if (isElsewhere(event, task.heldIn) && !isBlind(context, event)) {
      const { session_id: session = "none" } = event.envelope;
      const message = `${name} in session ${session}, it is taken in ${task.heldIn.id}`;
      context.sink.add("task-instance", message, task.id);
    }
    return;
  }
  if (task.isAdopted) return;
  if (isOffered(task) && (name === "accepted" || name === "started")) {
    const message = `${name} on ${task.id}, which is offered to ${task.delegation?.delegatedTo}`;
    context.sink.add("delegation-taken", message, task.id);
    return;
  }
  if (name === "accepted" || name === "started") {
    if (task.target !== undefined && source !== task.target) {
      const message = `${name} by ${source}, the target is ${task.target}`;
      context.sink.add("task-target", message, task.id);
    }
    return;
  }
  // Before anybody owns it, only the two parties of the submission can give it up; nobody works on it.
  const isParty = source === task.submitter || source === task.target;
  if (!isParty || !ENDS_BY_PARTIES.has(name)) {
    context.sink.add("task-owner", `${name} from ${source} on a task without owner`, task.id);
  }
}

function isOffered({ delegation }: Task): boolean {
  return delegation !== undefined && ["requested", "escalated"].includes(delegation.state);
}

/** Owner, else target, and submitter, of the task or of an ancestor. */
export function isEntitled(task: Task, source: string): boolean {
  for (let at: Task | undefined = task; at !== undefined; at = at.parent) {
    if (at.isAdopted || source === at.submitter) return true;
    if (source === (at.owner ?? at.target)) return true;
  }
  return false;
}
