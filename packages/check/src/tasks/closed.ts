import type { TaskContext, TaskEvent } from "./context.ts";
import { coveringRoot, gentleAbove, type Task } from "./task.ts";

/** Nothing is delegated in a subtree that is being ended (architecture, section 2; spec 5.5). */
export function checkOpen(context: TaskContext, event: TaskEvent, task: Task): void {
  const { sink, forest } = context;
  const closed = forest.cascades > 0 ? coveringRoot(task)?.plan?.id : undefined;
  const asked = forest.requests > 0 ? gentleAbove(task)?.id : undefined;
  const by = closed ?? asked;
  if (by === undefined) return;
  const message = `${event.envelope.type} of ${task.id}, which is being ended by ${by}`;
  sink.add("delegation-closed", message, task.id);
}
