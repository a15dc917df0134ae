/** Refusals of this domain; each names what stands, what was expected, and who won (spec 5.7). */
import { type ErrorPayload, type JsonObject, reject } from "@harmovela/failure";
import { checkpointIds } from "../checkpoints.ts";
import { type Interruption, isStopped, type TaskRecord } from "../state.ts";

export function missing(type: string, ...fields: string[]): ErrorPayload {
  const message = `${type} needs ${fields.join(", ")}`;
  return reject("invalid_envelope", message, { missing: fields });
}

export function unknownTask(id: string): ErrorPayload {
  return reject("task_error", `task ${id} is not known`, { task_id: id });
}

/** The task is terminal: names the event that won. */
export function alreadyEnded({ id, state, ended }: TaskRecord): ErrorPayload {
  return reject("task_error", `task ${id} is already ${state}`, {
    task_id: id,
    state,
    ...(ended ? { winner: { event_id: ended.id, type: ended.type, seq: ended.seq } } : {}),
  });
}

/** Its end is asked for, or a request for its subtree is under way. */
export function settlingRefusal(task: TaskRecord): ErrorPayload | undefined {
  const { id, asked, plan } = task;
  const by = asked?.[0]?.envelope ?? plan?.envelope;
  if (by === undefined) return undefined;
  return reject("task_error", `${by.type} of task ${id} is under way`, {
    task_id: id,
    ...aboutOpen(task),
    settling_by: asked?.[0]?.envelope.causation_id ?? by.id,
    pending: true,
  });
}

/** How it stands, which events are legal now, and what ended the interruption that was meant when none is open. */
export function outOfTurn(
  task: TaskRecord,
  message: string,
  meant = task.past?.at(-1),
): ErrorPayload {
  return reject("task_error", message, {
    task_id: task.id,
    ...aboutOpen(task),
    expected: expectedFor(task.open),
    ...(task.open ? {} : winnerOf(meant)),
  });
}

function winnerOf(interruption: Interruption | undefined): JsonObject {
  if (interruption?.closed === undefined) return {};
  const { id, type, checkpoint } = interruption.closed;
  const winner: JsonObject = { event_id: id, type };
  if (checkpoint !== undefined) winner.checkpoint_id = checkpoint;
  return { winner };
}

export function aboutOpen({ open }: TaskRecord): JsonObject {
  if (open === undefined) return {};
  const { id, policy, state, saved } = open;
  return {
    interruption: id,
    policy,
    state,
    ...(saved ? { checkpoint_id: saved.checkpoint } : {}),
  };
}

/** What may follow now. */
function expectedFor(open: Interruption | undefined): string[] {
  if (open === undefined) return ["interruption.requested"];
  const { state, policy } = open;
  const expected: string[] = [];
  if (state === "requested") expected.push("interruption.acknowledged");
  if (state === "acknowledged" || (policy === "force_stop" && state !== "saved")) {
    expected.push("interruption.saved");
  }
  if (isStopped(open)) expected.push("interruption.resumed");
  if (isStopped(open) || state === "acknowledged") expected.push("interruption.cancelled");
  // A stronger one.
  if (!isStopped(open)) expected.push("interruption.requested");
  return expected;
}

/** It answers an interruption that is over. */
export function superseded(
  task: TaskRecord,
  open: Interruption,
  earlier: Interruption,
): ErrorPayload {
  return reject("task_error", `this answers an earlier interruption of task ${task.id}`, {
    task_id: task.id,
    ...aboutOpen(task),
    expected: expectedFor(open),
    superseded_by: open.id,
    ...winnerOf(earlier),
  });
}

/** Without what it saved a task does not go on; it fails (spec 5.7). */
export function checkpointMissing(
  task: TaskRecord,
  message: string,
  checkpoint: string | undefined,
): ErrorPayload {
  return reject("checkpoint_missing", message, {
    task_id: task.id,
    ...(checkpoint === undefined ? {} : { checkpoint_id: checkpoint }),
    interruption: task.open?.id,
    checkpoints: checkpointIds(task),
  });
}
