/** `task.submitted`: a new task, under a parent or as a root (spec 5.4, 5.5). */
import type { DecideContext, Decision, Envelope, Judged } from "@harmovela/envelope";
import type { ErrorPayload } from "@harmovela/failure";
import { decideCompensationTask, reservedRefusal } from "./interruptions/requests.ts";
import { stoppedParentRefusal, stoppedRefusal } from "./interruptions/rules.ts";
import { isEntitledToCancel } from "./rules/authority.ts";
import { closedBy } from "./rules/closing.ts";
import { hasTwoParents, parentIdOf, payloadObject, taskIdOf } from "./rules/identity.ts";
import { alreadyEnded, refusal, settling, winnerOf } from "./rules/refusals.ts";
import type { TaskSettings } from "./settings.ts";
import { findTask, type Task, type TaskState } from "./state.ts";

/** Length of the ULID that a derived id ends with. */
const ULID_LENGTH = 26;

export function decideSubmission(
  state: TaskState,
  settings: TaskSettings,
  input: Judged,
  ctx: DecideContext,
): Decision {
  const { envelope, tenant } = input;
  const named = taskIdOf(envelope);
  const id = named ?? `task_${ctx.deriveId("task").slice(-ULID_LENGTH)}`;
  if (named !== undefined && input.source === settings.interruptionManager) {
    return decideCompensationTask(state, input, named);
  }
  const known = findTask(state, tenant, id);
  if (known && !known.isSubmitted && !known.ended) return decideFillIn(known, input);
  if (known) {
    const details = { task_id: id, state: known.state, ...winnerOf(known) };
    return { reject: refusal("task_error", `task ${id} exists already`, details) };
  }
  const refused =
    reservedRefusal(state.tenants.get(tenant), input, id) ??
    parentRefusal(state, settings, input, id);
  if (refused) return { reject: refused };
  if (named !== undefined) return { accept: envelope };
  return { accept: withTaskId(envelope, id), verdict: { task_id: id } };
}

/** The submission of a task that a delegation has made is accepted once (spec 5.6). */
function decideFillIn(task: Task, { envelope, source }: Judged): Decision {
  const details = { task_id: task.id };
  if (!isEntitledToCancel(task, source)) {
    const message = `${source} has no part in task ${task.id}`;
    return { reject: refusal("unauthorized", message, details) };
  }
  const named = parentIdOf(envelope);
  if (hasTwoParents(envelope) || (named !== undefined && named !== task.parent?.id)) {
    const parent = task.parent?.id ?? null;
    const message = `task ${task.id} has another parent`;
    return { reject: refusal("task_error", message, { ...details, parent_task_id: parent }) };
  }
  const plan = closedBy(task);
  if (plan) return { reject: settling(task, plan, `task ${task.id} is being ended`) };
  const stopped = stoppedRefusal(task, envelope.type);
  if (stopped) return { reject: stopped };
  return { accept: envelope };
}

/** A parent must be known, live, open and not too deep: else nobody could hold it open for the child. */
export function parentRefusal(
  state: TaskState,
  settings: TaskSettings,
  input: Judged,
  id: string,
): ErrorPayload | undefined {
  const { envelope, tenant } = input;
  const parentId = parentIdOf(envelope);
  if (parentId === undefined) return undefined;
  const details = { task_id: id, parent_task_id: parentId };
  if (hasTwoParents(envelope)) {
    return refusal("invalid_envelope", "envelope and payload name different parents", details);
  }
  if (parentId === id) {
    return refusal("task_error", `task ${id} cannot be its own parent`, details);
  }
  const parent = findTask(state, tenant, parentId);
  if (parent === undefined) {
    return refusal("task_error", `parent ${parentId} is not known`, details);
  }
  if (parent.ended) {
    const ended = alreadyEnded(parent);
    return { ...ended, details: { ...ended.details, ...details } };
  }
  const plan = closedBy(parent);
  if (plan) return settling(parent, plan, `parent ${parentId} is being ended`);
  const stopped = stoppedParentRefusal(parent, details);
  if (stopped) return stopped;
  if (parent.depth + 1 > settings.maxDepth) {
    const message = `task ${id} would stand deeper than ${settings.maxDepth} levels`;
    return refusal("task_error", message, { ...details, depth_max: settings.maxDepth });
  }
  return undefined;
}

/** Names the derived id wherever a task names itself. */
function withTaskId(envelope: Envelope, id: string): Envelope {
  const payload = payloadObject(envelope);
  return payload === undefined
    ? { ...envelope, task_id: id }
    : { ...envelope, task_id: id, payload: { ...payload, task_id: id } };
}
