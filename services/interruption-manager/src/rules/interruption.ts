/**
 * What an event of the family `interruption` means (spec 5.7). Changes nothing.
 *
 * R1 Who comes to a task that has ended, or whose end is asked for, is told so first.
 * R2 An answer that names an earlier interruption as its cause never touches the open one.
 */
import type { DecideContext, Decision, Envelope, Judged } from "@harmovela/envelope";
import { formatInstant } from "@harmovela/envelope";
import { type ErrorPayload, type JsonObject, reject } from "@harmovela/failure";
import { checkpointIds, isSameCheckpoint } from "../checkpoints.ts";
import { LISTED_MAX, type ManagerSettings } from "../settings.ts";
import {
  findTask,
  type Interruption,
  isStopped,
  type ManagerState,
  type TaskRecord,
} from "../state.ts";
import { answerRefusal, requestRefusal } from "./authority.ts";
import { contentOf, formRefusal } from "./checkpoint.ts";
import { millisecondsIn, taskIdOf, textIn, valueIn } from "./payload.ts";
import { completed, dueAfter, graceMsOf, isForTree, mayReplace, policyOf } from "./policy.ts";
import {
  alreadyEnded,
  checkpointMissing,
  missing,
  outOfTurn,
  settlingRefusal,
  superseded,
  unknownTask,
} from "./refusals.ts";

/** Length of the ULID that a derived id ends with. */
const ULID_LENGTH = 26;

export function decideInterruption(
  state: ManagerState,
  settings: ManagerSettings,
  input: Judged,
  ctx: DecideContext,
): Decision {
  const { envelope, tenant } = input;
  const { type } = envelope;
  const id = taskIdOf(envelope);
  if (id === undefined) return { reject: missing(type, "task_id") };
  const invalid = invalidRefusal(envelope);
  if (invalid) return { reject: invalid };
  const task = findTask(state, tenant, id);
  if (task === undefined) {
    return settings.externalTasks && type === "interruption.requested"
      ? acceptRequest(settings, envelope, ctx)
      : { reject: unknownTask(id) };
  }
  const refused = standingRefusal(settings, task, envelope);
  if (refused) return { reject: refused };
  switch (type) {
    case "interruption.requested":
      return decideRequest(settings, task, envelope, ctx);
    case "interruption.acknowledged":
      return decideAcknowledged(task, envelope);
    case "interruption.saved":
      return decideSaved(task, envelope, ctx);
    case "interruption.resumed":
      return decideResumed(task, envelope);
    default:
      return decideCancelled(task, envelope);
  }
}

/** Values that the schema leaves to this service. */
function invalidRefusal(envelope: Envelope): ErrorPayload | undefined {
  const { type } = envelope;
  if (millisecondsIn(envelope, "grace_period_ms") === "invalid") {
    const details = { invalid: ["grace_period_ms"] };
    return reject(
      "invalid_envelope",
      "grace_period_ms: not a whole number of milliseconds",
      details,
    );
  }
  const scope = valueIn(envelope, "scope");
  if (scope !== undefined && scope !== "task" && scope !== "tree") {
    const details = { path: "payload.scope" };
    return reject("invalid_envelope", 'payload.scope must be "task" or "tree"', details);
  }
  return type === "interruption.saved" ? formRefusal(envelope) : undefined;
}

/** R1, and who may say it. */
function standingRefusal(
  settings: ManagerSettings,
  task: TaskRecord,
  envelope: Envelope,
): ErrorPayload | undefined {
  if (task.ended) return alreadyEnded(task);
  const isAnswer =
    envelope.type === "interruption.acknowledged" || envelope.type === "interruption.saved";
  const denied = isAnswer
    ? answerRefusal(task, envelope)
    : requestRefusal(task, envelope, settings);
  return denied ?? settlingRefusal(task);
}

function decideRequest(
  settings: ManagerSettings,
  task: TaskRecord,
  envelope: Envelope,
  ctx: DecideContext,
): Decision {
  const { open } = task;
  const policy = policyOf(envelope);
  if (open && !mayReplace(policy, open)) {
    const message = isStopped(open)
      ? `task ${task.id} is stopped already`
      : `task ${task.id} is being interrupted already, and ${policy} is not stronger`;
    return { reject: outOfTurn(task, message) };
  }
  if (task.tenant.plans.has(envelope.id)) {
    const details = { task_id: task.id, settling_by: envelope.id };
    return { reject: reject("protocol_error", "this id names a plan under way", details) };
  }
  if (!isForTree(envelope) || task.liveCount === 0) return acceptRequest(settings, envelope, ctx);
  const plan = { id: envelope.id, kind: envelope.type, envelope: completed(envelope, settings) };
  return { begin: { ...plan, data: { task_id: task.id } }, verdict: { pending: true } };
}

function acceptRequest(
  settings: ManagerSettings,
  envelope: Envelope,
  { now }: DecideContext,
): Decision {
  const graceMs = graceMsOf(envelope, settings);
  const verdict: JsonObject = { policy: policyOf(envelope) };
  if (graceMs !== undefined) verdict.due = formatInstant(dueAfter(now, graceMs));
  return { accept: completed(envelope, settings), verdict };
}

/** R2: the earlier interruption that an answer names as its cause; an unknown cause says nothing. */
function earlierOf(
  { past }: TaskRecord,
  { causation_id: cause }: Envelope,
): Interruption | undefined {
  if (cause === undefined) return undefined;
  return past?.find((interruption) => eventsOf(interruption).includes(cause));
}

/** Its own events; the stronger request that replaced it is the next one's. */
function eventsOf({ id, acknowledged, saved, closed }: Interruption): (string | undefined)[] {
  const end = closed?.type === "interruption.requested" ? undefined : closed?.id;
  return [id, acknowledged?.id, saved?.id, end];
}

/** The open interruption that an answer means, or why there is none. */
function answered(task: TaskRecord, envelope: Envelope): Interruption | { refused: ErrorPayload } {
  const earlier = earlierOf(task, envelope);
  if (task.open === undefined) {
    return { refused: outOfTurn(task, `no interruption of task ${task.id} is open`, earlier) };
  }
  return earlier === undefined ? task.open : { refused: superseded(task, task.open, earlier) };
}

function decideAcknowledged(task: TaskRecord, envelope: Envelope): Decision {
  const open = answered(task, envelope);
  if ("refused" in open) return { reject: open.refused };
  if (open.state === "requested") return { accept: envelope };
  return { reject: outOfTurn(task, `this interruption of ${task.id} is ${open.state} already`) };
}

function decideSaved(task: TaskRecord, envelope: Envelope, ctx: DecideContext): Decision {
  const open = answered(task, envelope);
  if ("refused" in open) return { reject: open.refused };
  const isInTurn =
    open.state === "acknowledged" || (open.state === "requested" && open.policy === "force_stop");
  if (!isInTurn) {
    const message =
      open.state === "saved"
        ? `a checkpoint of task ${task.id} is saved already`
        : `the interruption of task ${task.id} was not acknowledged`;
    return { reject: outOfTurn(task, message) };
  }
  const { checkpoint_id: id = `ckpt_${ctx.deriveId("checkpoint").slice(-ULID_LENGTH)}` } = envelope;
  const known = task.checkpoints?.get(id);
  if (known && !isSameCheckpoint(known, contentOf(envelope))) {
    const details = { task_id: task.id, checkpoint_id: id, interruption: known.interruption };
    const message = `checkpoint ${id} of task ${task.id} is another one`;
    return { reject: reject("task_error", message, details) };
  }
  const isNamed = envelope.checkpoint_id !== undefined;
  return {
    accept: isNamed ? envelope : { ...envelope, checkpoint_id: id },
    verdict: { checkpoint_id: id },
  };
}

/** A resumption names a checkpoint of this very task; one that names none means what was saved last. */
function decideResumed(task: TaskRecord, envelope: Envelope): Decision {
  const open = answered(task, envelope);
  if ("refused" in open) return { reject: open.refused };
  if (!isStopped(open)) return { reject: outOfTurn(task, `task ${task.id} is not stopped`) };
  const id = envelope.checkpoint_id ?? open.saved?.checkpoint;
  const checkpoint = id === undefined ? undefined : task.checkpoints?.get(id);
  if (id === undefined || checkpoint === undefined) {
    const message =
      id === undefined
        ? `nothing was saved of task ${task.id}`
        : `task ${task.id} has no checkpoint ${id}`;
    return { reject: checkpointMissing(task, message, id) };
  }
  const digest = valueIn(envelope, "digest");
  if (digest !== undefined && digest !== checkpoint.digest) {
    const message = `checkpoint ${id} of task ${task.id} has another digest`;
    return { reject: checkpointMissing(task, message, id) };
  }
  const isNamed = envelope.checkpoint_id !== undefined;
  return {
    accept: isNamed ? envelope : { ...envelope, checkpoint_id: id },
    verdict: { checkpoint_id: id },
  };
}

/** It ends the task instead; what was saved is kept. */
function decideCancelled(task: TaskRecord, envelope: Envelope): Decision {
  const open = answered(task, envelope);
  if ("refused" in open) return { reject: open.refused };
  if (open.state === "requested" && !isStopped(open)) {
    const message = `the interruption of task ${task.id} was not acknowledged`;
    return { reject: outOfTurn(task, message) };
  }
  const named = textIn(envelope, "checkpoint_id");
  const ids = checkpointIds(task);
  if (named !== undefined && !task.checkpoints?.has(named)) {
    const details = { task_id: task.id, checkpoint_id: named, checkpoints: ids };
    return { reject: reject("task_error", `task ${task.id} has no checkpoint ${named}`, details) };
  }
  const verdict: JsonObject = {
    checkpoints: ids.slice(0, LISTED_MAX),
    checkpoint_count: ids.length,
  };
  return { accept: envelope, verdict };
}
