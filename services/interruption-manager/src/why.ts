/** Plain sentences about how a task is stopped, goes on or is undone. */
import { formatInstant } from "@harmovela/envelope";
import {
  type Compensation,
  findTask,
  type Interruption,
  isStopped,
  type ManagerState,
  type TaskRecord,
} from "./state.ts";

/** Compensations that are told of; there may be more. */
const TOLD_MAX = 5;

/** Nothing when this service has nothing to say about the task. */
export function why(state: ManagerState, name: string, id: string): string[] {
  const tenant = state.tenants.get(name);
  const task = findTask(state, name, id);
  const lines = task ? linesOf(task) : [];
  const own = tenant?.compensations.get(id);
  if (own) lines.push(`${id} undoes ${own.original}, ${askedBy(own)}${standing(own)}.`);
  const others = tenant?.compensationsOf.get(id) ?? new Set<Compensation>();
  for (const other of [...others].slice(0, TOLD_MAX)) {
    lines.push(`${id} is undone by ${other.taskId}, ${askedBy(other)}${standing(other)}.`);
  }
  return lines;
}

function linesOf(task: TaskRecord): string[] {
  const { id, open, plan, asked, past } = task;
  const lines: string[] = [];
  if (plan) {
    const left = plan.tree.members.length - plan.place;
    lines.push(
      `${id} is being interrupted with its subtree by ${plan.id}: at most ${left} tasks first.`,
    );
  }
  if (open) lines.push(`${id} ${openOf(open)}.`);
  const last = past?.at(-1);
  if (!open && last) lines.push(`${id} ${closedOf(last)}.`);
  for (const { envelope, attempt } of asked ?? []) {
    const again = attempt > 1 ? `, attempt ${attempt}` : "";
    lines.push(
      `${envelope.type} of ${id} is asked for because of ${envelope.causation_id}${again}.`,
    );
  }
  return lines;
}

function openOf(open: Interruption): string {
  const { policy, id, requestedBy, at, saved, isExpiry } = open;
  const since = formatInstant(saved?.at ?? at);
  const by = `${policy}, ${id} of ${requestedBy}`;
  if (saved) {
    const what = `saved as checkpoint ${saved.checkpoint}`;
    return `is stopped since ${since}, ${what} (${by}), waits for interruption.resumed`;
  }
  if (isStopped(open)) {
    const because = isExpiry ? "by force, for nothing was saved in time" : "by force";
    return `is stopped since ${since} ${because} (${by}), waits for interruption.resumed`;
  }
  const next = open.state === "requested" ? "interruption.acknowledged" : "interruption.saved";
  return `is interrupted since ${since} (${by}), waits for ${next} until ${formatInstant(open.due)}`;
}

function closedOf({ policy, id, closed }: Interruption): string {
  if (closed === undefined) return `was interrupted (${policy}, ${id})`;
  const at = formatInstant(closed.at);
  if (closed.type === "interruption.resumed") {
    return `was resumed by ${closed.by} (${closed.id}) at ${at} from checkpoint ${closed.checkpoint}`;
  }
  return `was interrupted (${policy}, ${id}) until ${closed.type} of ${closed.by} (${closed.id}) at ${at}`;
}

function askedBy({ requestedBy, id, reason }: Compensation): string {
  return `as ${requestedBy} asked (${id}), because: ${reason}`;
}

function standing({ task, refused, completed }: Compensation): string {
  if (completed) return `; completed by ${completed.by} (${completed.id})`;
  if (refused) return `; there is no such task: ${refused.code}`;
  return task ? `; ${task.state}` : "; its task is asked for";
}
