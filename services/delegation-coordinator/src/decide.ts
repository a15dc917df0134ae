/** What an envelope means for the tasks it finds. Changes nothing. */
import type { DecideContext, Decision, Envelope, Judged } from "@harmovela/envelope";
import { decideDelegation } from "./delegation/decide.ts";
import { offeredRefusal } from "./delegation/refusals.ts";
import { requestRefusal } from "./interruptions/requests.ts";
import { stoppedRefusal } from "./interruptions/rules.ts";
import { isStopped } from "./interruptions/state.ts";
import { authorityRefusal, instanceRefusal, isEntitledToCancel } from "./rules/authority.ts";
import { causeRefusal } from "./rules/cause.ts";
import { closedBy, closingRefusal } from "./rules/closing.ts";
import { millisecondsOf, parentIdOf, taskIdOf } from "./rules/identity.ts";
import { activeChildren, alreadyEnded, refusal } from "./rules/refusals.ts";
import { isAllowed, isTerminal, stateAfter, type TaskStateName } from "./rules/transitions.ts";
import type { TaskSettings } from "./settings.ts";
import { findTask, type Task, type TaskState } from "./state.ts";
import { decideSubmission } from "./submission.ts";

/** The spans that this decider reads, all in whole milliseconds (spec 5.4, 5.7). */
const SPANS_OF_TYPE: ReadonlyMap<string, readonly string[]> = new Map([
  ["task.submitted", ["timeout_ms", "deadline_ms"]],
  ["task.cancel.requested", ["grace_period_ms"]],
]);

export function decide(
  state: TaskState,
  settings: TaskSettings,
  input: Judged,
  ctx: DecideContext,
): Decision {
  const { envelope, tenant } = input;
  if (envelope.type === "session.heartbeat") return { ignore: "heartbeat" };
  if (envelope.type.startsWith("delegation.")) {
    return decideDelegation(state, settings, input, ctx);
  }
  // Facts: the state rules of the other families are not this decider's.
  if (!envelope.type.startsWith("task.")) return { accept: envelope };

  const invalid = invalidSpan(envelope);
  if (invalid) return { reject: invalid };
  if (envelope.type === "task.submitted") return decideSubmission(state, settings, input, ctx);

  const id = taskIdOf(envelope);
  if (id === undefined) {
    const details = { missing: ["task_id"] };
    return { reject: refusal("invalid_envelope", `${envelope.type} names no task`, details) };
  }
  const task = findTask(state, tenant, id);
  if (task === undefined) {
    return { reject: refusal("task_error", `task ${id} is not known`, { task_id: id }) };
  }
  if (task.ended) return decideOnEnded(task, input);
  return decideOnLive(state, settings, task, input);
}

function invalidSpan(envelope: Envelope) {
  const invalid = SPANS_OF_TYPE.get(envelope.type)?.filter(
    (key) => millisecondsOf(envelope, key) === "invalid",
  );
  if (invalid === undefined || invalid.length === 0) return undefined;
  const message = `${invalid.join(", ")}: not a whole number of milliseconds`;
  return refusal("invalid_envelope", message, { invalid });
}

/** A task that has ended stays as it is; who sends what it was told to send is told so (spec 5.5). */
function decideOnEnded(task: Task, input: Judged): Decision {
  const { ended } = task;
  const { type, causation_id: cause } = input.envelope;
  const isOwnCancel =
    ended?.rootOutcome !== undefined &&
    type === "task.cancelled" &&
    cause !== undefined &&
    (cause === ended.causation || cause === ended.correlation || cause === task.cancelRequested) &&
    isEntitledToCancel(task, input.source);
  return isOwnCancel
    ? { duplicate: { seq: ended.seq } }
    : { reject: alreadyEnded(task), ...lateBy(task, input) };
}

/** Its runner goes on with a task that has ended, or whose end is settled, or that is stopped. */
function lateBy(task: Task, { source }: Judged): { late?: string } {
  const isOver = task.ended !== undefined || closedBy(task)?.hard === true || isStopped(task);
  return isOver && source === task.owner ? { late: task.id } : {};
}

function decideOnLive(
  state: TaskState,
  settings: TaskSettings,
  task: Task,
  input: Judged,
): Decision {
  const { envelope, source } = input;
  const { type } = envelope;
  const refused =
    (source === settings.interruptionManager
      ? requestRefusal(task, envelope)
      : (authorityRefusal(task, type, source) ??
        instanceRefusal(task, envelope) ??
        causeRefusal(state, settings, task, input))) ??
    stoppedRefusal(task, type) ??
    offeredRefusal(task, type) ??
    parentRefusal(task, envelope) ??
    planIdRefusal(task, envelope) ??
    closingRefusal(task, type);
  if (refused) return { reject: refused, ...lateBy(task, input) };

  if (type === "task.cancel.requested") return { accept: envelope, verdict: { pending: true } };
  const to = stateAfter(type);
  if (to === undefined || !isAllowed(task.state, to)) {
    return { reject: illegal(task, to ?? type) };
  }
  if (!isTerminal(to) || task.liveCount === 0) return { accept: envelope };
  if (to === "completed") return { reject: activeChildren(task) };
  const plan = { id: envelope.id, kind: type, envelope, data: { task_id: task.id } };
  return { begin: plan, verdict: { pending: true } };
}

function illegal(task: Task, to: TaskStateName | string) {
  return refusal("task_error", `task ${task.id} cannot go from ${task.state} to ${to}`, {
    task_id: task.id,
    from: task.state,
    to,
  });
}

/** The link to a parent never changes (spec 5.5). */
function parentRefusal(task: Task, envelope: Envelope) {
  const named = parentIdOf(envelope);
  if (named === undefined || named === task.parent?.id) return undefined;
  return refusal("task_error", `task ${task.id} has another parent`, {
    task_id: task.id,
    parent_task_id: task.parent?.id ?? null,
  });
}

/** A plan is found by the id of the event that opened it, which may have been used long ago. */
function planIdRefusal(task: Task, envelope: Envelope) {
  if (!task.tenant.plans.has(envelope.id)) return undefined;
  return refusal("task_error", `event id ${envelope.id} names a plan that is under way`, {
    task_id: task.id,
    settling_by: envelope.id,
  });
}
