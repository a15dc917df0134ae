/**
 * `delegation.requested`: a task is offered to somebody, a new one under a parent or one that there
 * is (spec 5.6).
 *
 * R1 A task that there is may be offered by its owner alone, and to one agent at a time.
 *    One that names nobody is open to whoever accepts it first.
 * R2 The same key of the same delegator under the same parent never makes two tasks.
 */
import type { DecideContext, Decision, Envelope, Judged } from "@harmovela/envelope";
import { isId } from "@harmovela/envelope";
import { type ErrorPayload, reject } from "@harmovela/failure";
import { reservedRefusal } from "../interruptions/requests.ts";
import { parentIdOf, payloadObject } from "../rules/identity.ts";
import { alreadyEnded } from "../rules/refusals.ts";
import type { TaskSettings } from "../settings.ts";
import { findTask, type Task, type TaskState } from "../state.ts";
import { parentRefusal } from "../submission.ts";
import { shownTokenRefusal } from "./handoff.ts";
import { delegateNamed } from "./parties.ts";
import { about, outOfTurn, settlingRefusal } from "./refusals.ts";
import { type Delegation, findDelegation, keyOf, ownerOf } from "./state.ts";

/** Tasks named in a cycle; the count beside them is exact. */
const CYCLE_NAMED_MAX = 20;

export function decideRequest(
  state: TaskState,
  settings: TaskSettings,
  input: Judged,
  id: string,
  ctx: DecideContext,
): Decision {
  const { envelope, tenant, source } = input;
  const delegatedTo = delegateNamed(envelope);
  const invalid = invalidRequest(envelope, id);
  if (invalid) return { reject: invalid };
  const task = findTask(state, tenant, id);
  const again = sameKey(state, input, task);
  if (again) return again;
  const delegation = findDelegation(state, tenant, id);
  const refused =
    shownTokenRefusal(state, settings, input, delegation, ctx.now) ??
    (task ? existingRefusal(state, input, task) : newRefusal(state, settings, input, id)) ??
    tooEarly(delegation, delegatedTo, ctx);
  if (refused) return { reject: refused };
  return { accept: completed(envelope, source, delegatedTo) };
}

/** Observers need not know how a request says who gives and who takes. */
function completed(envelope: Envelope, source: string, to: string | undefined): Envelope {
  const { delegated_by, delegated_to } = envelope;
  if (delegated_by !== undefined && delegated_to === to) return envelope;
  return {
    ...envelope,
    delegated_by: source,
    ...(to === undefined ? {} : { delegated_to: to }),
  };
}

function invalidRequest(envelope: Envelope, id: string): ErrorPayload | undefined {
  const { delegated_by: by, source } = envelope;
  const key = keyIn(envelope);
  if (key !== undefined && !isId(key)) {
    const details = { path: "payload.key" };
    return reject("invalid_envelope", "payload.key must be a string of 1 to 128 bytes", details);
  }
  if (by === undefined || by === source) return undefined;
  const details = { task_id: id, delegated_by: by };
  return reject("unauthorized", "nobody delegates in another's name", details);
}

/** The optional key under which a delegator retries. */
export function keyIn(envelope: Envelope): unknown {
  const payload = payloadObject(envelope);
  return payload && Object.hasOwn(payload, "key") ? payload.key : undefined;
}

/** R2. */
function sameKey(
  state: TaskState,
  { envelope, tenant, source }: Judged,
  task: Task | undefined,
): Decision | undefined {
  const key = keyIn(envelope);
  if (typeof key !== "string") return undefined;
  const parentId = parentIdOf(envelope) ?? task?.parent?.id;
  const known = state.tenants.get(tenant)?.delegations.byKey.get(keyOf(parentId, source, key));
  return known && { duplicate: { seq: known.seq, outcome: { task_id: known.taskId } } };
}

/** R1. A loser of a race is told which event won. */
function existingRefusal(
  state: TaskState,
  { envelope, tenant, source }: Judged,
  task: Task,
): ErrorPayload | undefined {
  const { type } = envelope;
  if (task.ended) return alreadyEnded(task);
  const cycle = cycleRefusal(state, tenant, envelope, task);
  if (cycle) return cycle;
  const delegation = findDelegation(state, tenant, task.id);
  if (ownerOf(task) !== source) {
    if (delegation) return outOfTurn(delegation, type, source);
    const details = { task_id: task.id, owner: ownerOf(task) };
    return reject("unauthorized", `${source} does not own task ${task.id}`, details);
  }
  const closed = settlingRefusal(task);
  if (closed) return closed;
  const isLive =
    delegation?.task === task && !["rejected", "handed_off"].includes(delegation.state);
  return isLive ? outOfTurn(delegation, type, source) : undefined;
}

/** A delegate that said when to ask again is not asked before, for this task (spec 5.6). */
function tooEarly(
  delegation: Delegation | undefined,
  delegatedTo: string | undefined,
  { now }: DecideContext,
): ErrorPayload | undefined {
  if (delegation?.state !== "rejected" || delegation.delegatedTo !== delegatedTo) return undefined;
  const { retryAfter } = delegation;
  if (retryAfter === undefined || retryAfter <= now) return undefined;
  return reject("protocol_error", `${delegatedTo} asked not to be asked again yet`, {
    ...about(delegation),
    retry_after_ms: retryAfter - now,
  });
}

/** The parent of a task never changes; a parent below the task would be its own ancestor (spec 5.5). */
function cycleRefusal(
  state: TaskState,
  tenant: string,
  envelope: Envelope,
  task: Task,
): ErrorPayload | undefined {
  const named = parentIdOf(envelope);
  if (named === undefined || named === task.parent?.id) return undefined;
  const path: string[] = [task.id];
  let length = 1;
  for (let at = findTask(state, tenant, named); at; at = at.parent) {
    length += 1;
    if (path.length < CYCLE_NAMED_MAX) path.push(at.id);
    if (at !== task) continue;
    const details = { task_id: task.id, parent_task_id: named, cycle: path, cycle_length: length };
    return reject("task_error", `task ${named} stands below ${task.id}`, details);
  }
  return reject("task_error", `task ${task.id} has another parent`, {
    task_id: task.id,
    parent_task_id: task.parent?.id ?? null,
  });
}

function newRefusal(
  state: TaskState,
  settings: TaskSettings,
  input: Judged,
  id: string,
): ErrorPayload | undefined {
  const { envelope, tenant, source } = input;
  const parentId = parentIdOf(envelope);
  if (parentId === id) {
    const details = { task_id: id, parent_task_id: id, cycle: [id, id], cycle_length: 2 };
    return reject("task_error", `task ${id} cannot be its own parent`, details);
  }
  const refused =
    reservedRefusal(state.tenants.get(input.tenant), input, id) ??
    parentRefusal(state, settings, input, id);
  if (refused || parentId === undefined || !settings.authenticated) return refused;
  const parent = findTask(state, tenant, parentId);
  if (parent && mayDelegateUnder(parent, source)) return undefined;
  const details = { task_id: id, parent_task_id: parentId };
  return reject("unauthorized", `${source} has no part in task ${parentId}`, details);
}

/** Owner, submitter or target of the parent, or an owner of an ancestor (spec 5.6). */
function mayDelegateUnder(parent: Task, source: string): boolean {
  if (parent.submitter === source || parent.target === source) return true;
  for (let at: Task | undefined = parent; at; at = at.parent) {
    if (at.owner === source || ownerOf(at) === source) return true;
  }
  return false;
}
