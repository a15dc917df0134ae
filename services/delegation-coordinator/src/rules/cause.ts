/** Why a child ends while its parent goes on (spec 4.2, coordination.v1; section 11, C9). */
import { type Judged, profilesInForce } from "@harmovela/envelope";
import type { ErrorPayload } from "@harmovela/failure";
import type { TaskSettings } from "../settings.ts";
import type { Task, TaskState } from "../state.ts";
import { closedBy } from "./closing.ts";
import { refusal } from "./refusals.ts";

const COORDINATION = "harmovela.coordination.v1";

/**
 * A child is cancelled because its parent is, which the service says itself. With a parent that goes on
 * its end is its own: it names no cause, or what asked for it to be cancelled or interrupted.
 */
export function causeRefusal(
  { families }: TaskState,
  settings: TaskSettings,
  task: Task,
  { envelope, tenant }: Judged,
): ErrorPayload | undefined {
  const { type, causation_id: cause } = envelope;
  if (type !== "task.cancelled" || cause === undefined || task.parent === undefined)
    return undefined;
  if (closedBy(task) !== undefined) return undefined;
  const { cancelRequested, hold, parent } = task;
  if (cause === cancelRequested || cause === hold?.id || hold?.said.includes(cause))
    return undefined;
  const inForce = profilesInForce(families.sessions, tenant, envelope, settings);
  if (!inForce.includes(COORDINATION)) return undefined;
  const message = `task ${task.id} is cancelled for a cause that is none: parent ${parent.id} goes on`;
  return refusal("task_error", message, {
    task_id: task.id,
    parent_task_id: parent.id,
    causation_id: cause,
  });
}
