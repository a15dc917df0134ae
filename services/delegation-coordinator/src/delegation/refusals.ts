/** Refusals about delegations (spec 5.6): `protocol_error` for a party out of turn, `unauthorized` for a stranger. */
import type { Envelope } from "@harmovela/envelope";
import { type ErrorPayload, type JsonObject, reject } from "@harmovela/failure";
import { closedBy } from "../rules/closing.ts";
import { parentIdOf } from "../rules/identity.ts";
import { alreadyEnded, settling } from "../rules/refusals.ts";
import type { Task } from "../state.ts";
import { type Delegation, delegationOf, isParty, isPending } from "./state.ts";

/** The sender may not say this now, or not at all; it is told what stands. */
export function outOfTurn(delegation: Delegation, type: string, source: string): ErrorPayload {
  const { taskId, state } = delegation;
  return isParty(delegation, source)
    ? reject("protocol_error", `${type} has no place now: ${taskId} is ${state}`, about(delegation))
    : stranger(delegation, type, source);
}

export function stranger(delegation: Delegation, type: string, source: string): ErrorPayload {
  const message = `${source} may not send ${type} for task ${delegation.taskId}`;
  return reject("unauthorized", message, about(delegation));
}

export function notTheParties(delegation: Delegation): ErrorPayload {
  const message = `the delegation of ${delegation.taskId} has other parties`;
  return reject("protocol_error", message, about(delegation));
}

export function nothingRequested(taskId: string): ErrorPayload {
  return reject("protocol_error", `nobody has asked to delegate ${taskId}`, { task_id: taskId });
}

/** Who the parties are, how it stands and which event decided that. */
export function about(delegation: Delegation): JsonObject {
  const { taskId, state, delegatedBy, delegatedTo, owner, instance, opening, handoff } = delegation;
  const { id, type, seq } = (state === "handed_off" ? handoff : undefined) ?? opening;
  return {
    task_id: taskId,
    state,
    delegated_by: delegatedBy,
    delegated_to: delegatedTo ?? null,
    owner: delegation.task?.ended ? null : owner,
    ...(instance && !instance.isOver ? { session_id: instance.session } : {}),
    winner: { event_id: id, type, seq },
  };
}

/** The task has ended or is being ended, or the event names another parent than it has. */
export function standingRefusal(
  delegation: Delegation,
  envelope: Envelope,
): ErrorPayload | undefined {
  const { task, taskId, parentId } = delegation;
  if (task?.ended) return alreadyEnded(task);
  const closed = task && settlingRefusal(task);
  if (closed) return closed;
  const named = parentIdOf(envelope);
  if (named === undefined || named === parentId) return undefined;
  return reject("task_error", `task ${taskId} has another parent`, {
    task_id: taskId,
    parent_task_id: parentId ?? null,
  });
}

/** Nothing is delegated in a subtree that is being ended. */
export function settlingRefusal(task: Task): ErrorPayload | undefined {
  const plan = closedBy(task);
  return plan && settling(task, plan, `task ${task.id} is being ended`);
}

/** Who takes a task that is offered to it answers the offer, and not the task. */
export function offeredRefusal(task: Task, type: string): ErrorPayload | undefined {
  if (type !== "task.accepted" && type !== "task.started") return undefined;
  const delegation = task.owner === undefined ? delegationOf(task) : undefined;
  if (delegation === undefined || !isPending(delegation)) return undefined;
  const message = `${task.id} is taken with delegation.accepted`;
  return reject("protocol_error", message, about(delegation));
}
