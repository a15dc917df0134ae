/** What is owed of interruptions and was not said, in logs at rest (spec 5.7, 5.8; architecture, section 2). */
import type { Missing } from "../domain-rules.ts";
import type { RuleId } from "../rules-table.ts";
import { isTerminal } from "../tasks/table.ts";
import type { Task } from "../tasks/task.ts";
import type { TaskView } from "../tasks/view.ts";
import { isStopped, type Stops, type TenantBook } from "./book.ts";
import { bookOf, type InterruptionContext } from "./context.ts";
import type { TreeRules } from "./trees.ts";

export function* findMissing(
  context: InterruptionContext,
  trees: TreeRules,
  now: number,
): Generator<Missing> {
  const { tasks } = context;
  const tenants = new Set([...context.books.keys(), ...(tasks?.tenants() ?? [])]);
  for (const tenant of tenants) {
    const book = bookOf(context, tenant);
    if (book.isExcused) continue;
    yield* overdue(book, now);
    if (tasks === undefined || tasks.isLenient) continue;
    yield* unclosed(tenant, book, tasks);
    yield* unanswered(tenant, book, tasks);
    yield* uninterrupted(context, tenant, book, tasks);
  }
  for (const { task, resume } of trees.unresumed()) {
    const message = `${task.id} was stopped with a tree that is resumed, and it is not`;
    yield at("tree-open", resume, message, task.id);
  }
}

function* overdue({ stops }: TenantBook, now: number): Generator<Missing> {
  for (const { taskId, open } of stops.values()) {
    if (open?.due === undefined || isStopped(open) || open.due > now) continue;
    yield at("grace-open", open, `the grace of ${taskId} has ended at ${open.due}`, taskId);
  }
}

function* unclosed(tenant: string, { stops }: TenantBook, tasks: TaskView): Generator<Missing> {
  for (const { taskId, open } of stops.values()) {
    const task = tasks.task(tenant, taskId);
    if (open === undefined || task === undefined || !isTerminal(task.state)) continue;
    yield at("closing-open", open, `${taskId} is ${task.state}, and still interrupted`, taskId);
  }
}

/** What was asked of tasks and has not come to pass. */
function* unanswered(tenant: string, { stops }: TenantBook, tasks: TaskView): Generator<Missing> {
  for (const { taskId, reasons } of stops.values()) {
    const task = tasks.task(tenant, taskId);
    const isLive = task !== undefined && !isTerminal(task.state);
    for (const [id, entry] of reasons) {
      // Whether a task may be completed, its own log says.
      if (entry.reason === "compensation.completed") continue;
      const isOpen = entry.reason === "compensation.requested" ? task === undefined : isLive;
      if (isOpen) yield at("request-open", entry, `${id} asks in vain for ${taskId}`, taskId);
    }
  }
}

/** Live tasks of sessions that were closed, which nobody was told to stop. */
function* uninterrupted(
  { settings }: InterruptionContext,
  tenant: string,
  book: TenantBook,
  tasks: TaskView,
): Generator<Missing> {
  for (const task of tasks.tasks(tenant)) {
    const { heldIn } = task;
    if (isTerminal(task.state) || heldIn?.endedBy === undefined) continue;
    if (heldIn.state === "error" && settings.orphanedTasks !== "interrupt") continue;
    if (isTold(task, heldIn.endedBy, heldIn.endedAt ?? 0, book.get(task.id))) continue;
    const message = `${task.id} goes on after its session ${heldIn.id}`;
    yield { rule: "interrupt-open", seq: 0, subject: "", message, taskId: task.id };
  }
}

function isTold(task: Task, endedBy: string, endedAt: number, stops: Stops | undefined): boolean {
  if (stops === undefined || task.isAdopted) return task.isAdopted;
  if (stops.open !== undefined || stops.ending !== undefined) return true;
  return stops.sessionEnds.has(endedBy) || stops.closedAt >= endedAt;
}

const at = (
  rule: RuleId,
  { seq, subject }: { seq: number; subject: string },
  message: string,
  taskId: string,
): Missing => ({ rule, seq, subject, message, taskId });
