/** Folds the events of delegations; `decide` has judged them, so nothing is judged again. */
import {
  type Envelope,
  type EventEntry,
  isHarness,
  type TokenIssuedEntry,
} from "@harmovela/envelope";
import { giveTo, instanceOf, takeBack } from "../instances.ts";
import { parentIdOf, taskIdOf, textOf } from "../rules/identity.ts";
import { bounded } from "../rules/text.ts";
import { REASON_LENGTH_MAX } from "../settings.ts";
import type { Task, TaskState } from "../state.ts";
import {
  insertTask,
  makeRoom,
  nameIn,
  removeTask,
  replaceDeadline,
  setDeadline,
} from "../tasks.ts";
import { rememberToken } from "../tokens/memory.ts";
import { deadlineOf, instantOf } from "./deadline.ts";
import { proofOf } from "./handoff.ts";
import { arm, disarm, retire, voidTokens } from "./offer.ts";
import { delegateNamed } from "./parties.ts";
import { keyIn } from "./request.ts";
import { type Delegation, findDelegation, isPending, keyOf, type Retry } from "./state.ts";

/** What is wrong with an entry, when something is. Other families and echoes change nothing. */
export function evolveDelegation(state: TaskState, entry: EventEntry): string | undefined {
  const { envelope, tenant } = entry;
  if (!envelope.type.startsWith("delegation.") || isHarness(envelope.source)) return undefined;
  const id = taskIdOf(envelope);
  if (id === undefined) return "a delegation of no task";
  if (envelope.type === "delegation.requested") return open(state, entry, id);
  const delegation = findDelegation(state, tenant, id);
  if (delegation === undefined) return `no delegation of ${id}`;
  if (delegation.task?.ended) return `task ${id} has ended`;
  delegation.lastSeq = entry.seq;
  delegation.lastAt = entry.at;
  if (delegation.task) delegation.task.lastAt = entry.at;
  switch (envelope.type) {
    case "delegation.accepted":
      return accept(state, delegation, envelope);
    case "delegation.rejected":
      return rejectOffer(state, delegation, entry);
    case "delegation.escalated":
      return escalate(state, delegation, entry);
    case "delegation.handoff.completed":
      return handOff(state, delegation, entry);
    default:
      return `unknown type ${envelope.type}`;
  }
}

function open(state: TaskState, entry: EventEntry, id: string): string | undefined {
  const { envelope, seq, at } = entry;
  const delegatedTo = envelope.delegated_to;
  const known = makeRoom(state.tenants.get(entry.tenant)?.tasks.get(id));
  const task = known ?? insertTask(state, entry, id, delegatedTo);
  if (typeof task === "string") return task;
  const { tenant } = task;
  const before = tenant.delegations.byTask.get(id);
  if (before) retire(before, seq, task);
  // One that was rejected is on its way already.
  if (before && before.state !== "rejected") {
    state.over.push({ kind: "offer", at, tenant, delegation: before });
  }
  const retry = retryOf(envelope, { taskId: id, seq, parentId: task.parent?.id });
  const delegation: Delegation = {
    taskId: id,
    tenant: tenant.name,
    namesTenant: envelope.tenant_id !== undefined,
    task,
    parentId: task.parent?.id,
    state: "requested",
    delegatedBy: nameIn(tenant, envelope.source),
    delegatedTo: delegatedTo === undefined ? undefined : nameIn(tenant, delegatedTo),
    instance: undefined,
    owner: nameIn(tenant, envelope.source),
    opening: { id: envelope.id, type: envelope.type, seq },
    openedAt: at,
    attempt: (before?.attempt ?? 0) + 1,
    key: retry && (keyIn(envelope) as string),
    retry,
    deadline: deadlineOf(envelope, at),
    timer: undefined,
    targetBefore: known ? known.target : undefined,
    hasTaken: false,
    shelved: undefined,
    reason: undefined,
    retryAfter: undefined,
    handoff: undefined,
    cameBy: before && cameBy(before),
    former: before?.former ?? [],
    issued: [],
    issuedCount: before?.issuedCount ?? 0,
    lastSeq: seq,
    lastAt: at,
  };
  tenant.delegations.byTask.set(id, delegation);
  if (retry) tenant.delegations.byKey.set(retry.key, retry);
  if (task.owner === undefined) task.target = delegation.delegatedTo;
  task.lastAt = at;
  arm(state, delegation);
  return undefined;
}

/** What brought the task to the one who offers it again. */
function cameBy({ state, delegatedBy, delegatedTo, handoff, cameBy }: Delegation) {
  const jti = state === "handed_off" ? handoff?.jti : undefined;
  if (jti === undefined || delegatedTo === undefined) return cameBy;
  return { delegatedBy, delegatedTo, jti };
}

function retryOf(
  envelope: Envelope,
  { taskId, seq, parentId }: { taskId: string; seq: number; parentId: string | undefined },
): Retry | undefined {
  const key = keyIn(envelope);
  if (typeof key !== "string") return undefined;
  return { key: keyOf(parentIdOf(envelope) ?? parentId, envelope.source, key), taskId, seq };
}

function accept(state: TaskState, delegation: Delegation, envelope: Envelope): string | undefined {
  const { task } = delegation;
  if (task === undefined || !isPending(delegation)) return `${delegation.state} to accepted`;
  disarm(state, delegation);
  delegation.state = "accepted";
  delegation.instance = instanceOf(state, task.tenant, envelope);
  delegation.delegatedTo ??= nameIn(task.tenant, envelope.source);
  if (task.owner === undefined) {
    delegation.hasTaken = true;
    run(state, delegation, task);
  }
  if (task.state === "submitted") task.state = "accepted";
  return undefined;
}

/** The delegate works on the task from now on, and has until the deadline. */
function run(state: TaskState, delegation: Delegation, task: Task): void {
  const { deadline: due, opening } = delegation;
  task.owner = delegation.delegatedTo;
  giveTo(state, task, delegation.instance);
  if (due === undefined || delegation.shelved !== undefined) return;
  delegation.shelved = task.deadline ?? "none";
  setDeadline(state, task, { due, order: opening.seq, causation: opening.id });
}

function rejectOffer(
  state: TaskState,
  delegation: Delegation,
  { envelope, seq, at }: EventEntry,
): string | undefined {
  const { task } = delegation;
  if (task === undefined || ["rejected", "handed_off"].includes(delegation.state)) {
    return `${delegation.state} to rejected`;
  }
  disarm(state, delegation);
  voidTokens(delegation, task, seq);
  delegation.state = "rejected";
  state.over.push({ kind: "offer", at, tenant: task.tenant, delegation });
  const reason = textOf(envelope, "reason");
  delegation.reason = reason === undefined ? undefined : bounded(reason, REASON_LENGTH_MAX);
  delegation.retryAfter = instantOf(envelope, "retry_after");
  if (delegation.hasTaken && task.owner === delegation.delegatedTo) leave(state, delegation, task);
  if (task.owner === undefined) {
    task.target = delegation.targetBefore;
    // One that has had children is the delegator's to offer again or to end.
    if (!task.isSubmitted && task.childCount === 0) removeTask(state, task);
  }
  // A task that goes on with somebody whom only the delegation put there still is its owner's.
  if (task.owner === undefined || task.owner === delegation.owner) delegation.task = undefined;
  return undefined;
}

/** The delegate gives back what nobody ran before it, and its deadline goes with it. */
function leave(state: TaskState, delegation: Delegation, task: Task): void {
  task.owner = undefined;
  takeBack(state, task);
  delegation.hasTaken = false;
  const { shelved } = delegation;
  if (shelved === undefined) return;
  delegation.shelved = undefined;
  const before = shelved === "none" ? undefined : shelved;
  if (task.deadline?.causation === delegation.opening.id) replaceDeadline(state, task, before);
}

function escalate(
  state: TaskState,
  delegation: Delegation,
  { envelope, seq }: EventEntry,
): string | undefined {
  const { task } = delegation;
  const to = delegateNamed(envelope);
  if (task === undefined || delegation.state === "rejected") {
    return `${delegation.state} to escalated`;
  }
  retire(delegation, seq, task);
  delegation.state = "escalated";
  delegation.delegatedBy = nameIn(task.tenant, envelope.delegated_by ?? envelope.source);
  delegation.delegatedTo = to === undefined ? undefined : nameIn(task.tenant, to);
  delegation.opening = { id: envelope.id, type: envelope.type, seq };
  delegation.handoff = undefined;
  delegation.cameBy = undefined;
  delegation.hasTaken = false;
  if (task.owner === undefined) task.target = delegation.delegatedTo;
  arm(state, delegation);
  return undefined;
}

function handOff(
  state: TaskState,
  delegation: Delegation,
  { envelope, seq }: EventEntry,
): string | undefined {
  const { task, delegatedTo } = delegation;
  if (task === undefined || delegatedTo === undefined || delegation.state !== "accepted") {
    return `${delegation.state} to handed_off`;
  }
  const { tokens } = task.tenant.delegations;
  const proof = proofOf(envelope);
  if (proof) rememberToken(tokens, proof, seq, envelope.id);
  voidTokens(delegation, task, seq);
  const { id, type } = envelope;
  delegation.state = "handed_off";
  delegation.handoff = { id, type, seq, jti: proof?.jti };
  delegation.cameBy = undefined;
  delegation.owner = delegatedTo;
  run(state, delegation, task);
  return undefined;
}

/** A token was issued; what is wrong with the entry, when something is. */
export function evolveIssue(state: TaskState, entry: TokenIssuedEntry): string | undefined {
  const { body, tenant, at } = entry;
  const delegation = findDelegation(state, tenant, body.task_id);
  if (delegation?.task === undefined) return `no delegation of ${body.task_id}`;
  const alive = delegation.issued.filter(({ exp }) => exp > at);
  delegation.issued = [...alive, { jti: body.jti, exp: body.exp * 1000 }];
  delegation.issuedCount += 1;
  delegation.lastSeq = entry.seq;
  return undefined;
}
