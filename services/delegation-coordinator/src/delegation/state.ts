/**
 * State of delegations (spec 5.6), by the id of the delegated task.
 *
 * D1 A task has one owner at any time. Whose it is changes with a handoff and nothing else.
 * D2 A rejection is remembered for a while, so that a party out of turn is told from a stranger.
 */
import type { Instant } from "@harmovela/envelope";
import type { DeadlineTimer, InstanceState, PlanState, Task, TaskState } from "../state.ts";
import { createTokenMemory, type TokenMemory } from "../tokens/memory.ts";

export type DelegationStateName =
  | "requested"
  | "accepted"
  | "rejected"
  | "handed_off"
  | "escalated";

/** An event that decided something; what a loser is told. */
export interface Decisive {
  readonly id: string;
  readonly type: string;
  readonly seq: number;
}

export interface Delegation {
  readonly taskId: string;
  readonly tenant: string;
  readonly namesTenant: boolean;
  /** None once it is rejected and has left nothing behind. */
  task: Task | undefined;
  readonly parentId: string | undefined;
  state: DelegationStateName;
  delegatedBy: string;
  /** Also where status queries go (spec 5.6). None while it is open to whoever accepts first. */
  delegatedTo: string | undefined;
  /** Of several processes of one name, which has accepted. */
  instance: InstanceState | undefined;
  /** Whose the task is (D1). */
  owner: string;
  /** The request or escalation in force. */
  opening: Decisive;
  readonly openedAt: Instant;
  /** How many times this task was offered. */
  readonly attempt: number;
  readonly key: string | undefined;
  /** What a retry by its key finds. */
  readonly retry: Retry | undefined;
  /** Until when it must be accepted, and the work be done. */
  readonly deadline: Instant | undefined;
  timer: DelegationTimer | undefined;
  /** For whom the task was before. */
  readonly targetBefore: string | undefined;
  /** The delegate took a task that nobody ran, and leaves it when it rejects. */
  hasTaken: boolean;
  /** The task's own deadline while the delegation's stands in for it. */
  shelved: DeadlineTimer | "none" | undefined;
  reason: string | undefined;
  retryAfter: Instant | undefined;
  /** The handoff in force, and the token it used. */
  handoff: (Decisive & { jti: string | undefined }) | undefined;
  /** The handoff by which the task came to its owner, where the owner has offered it again since. */
  cameBy: CameBy | undefined;
  /** Parties that were replaced, the last ones. */
  former: { delegatedBy: string; delegatedTo: string | undefined }[];
  /** Tokens issued for the parties in force. */
  issued: { jti: string; exp: Instant }[];
  /** Tokens ever issued for this task. */
  issuedCount: number;
  lastSeq: number;
  lastAt: Instant;
}

/** A handoff that stands behind an offer. */
export interface CameBy {
  readonly delegatedBy: string;
  readonly delegatedTo: string;
  readonly jti: string;
}

/** Fires when nobody has accepted in time. */
export interface DelegationTimer {
  readonly kind: "delegation";
  readonly due: Instant;
  readonly order: number;
  readonly delegation: Delegation;
  index: number;
  heldBy: PlanState | undefined;
}

/** With what a retry by key is answered. */
export interface Retry {
  /** Of the delegator, under the parent (`keyOf`). */
  readonly key: string;
  readonly taskId: string;
  readonly seq: number;
}

/** Of one tenant. Ids come from agents, so every table is a Map. */
export interface DelegationBook {
  readonly byTask: Map<string, Delegation>;
  readonly byKey: Map<string, Retry>;
  readonly tokens: TokenMemory;
}

export function createDelegationBook(
  tenant: string,
  tokens: TokenMemory["oldest"],
): DelegationBook {
  return { byTask: new Map(), byKey: new Map(), tokens: createTokenMemory(tenant, tokens) };
}

export function findDelegation(
  state: TaskState,
  tenant: string,
  taskId: string,
): Delegation | undefined {
  return state.tenants.get(tenant)?.delegations.byTask.get(taskId);
}

/** The delegation that has a say about a task; a rejected one has none. */
export function delegationOf(task: Task): Delegation | undefined {
  const found = task.tenant.delegations.byTask.get(task.id);
  return found?.task === task ? found : undefined;
}

/** Offered, and not accepted yet. */
export function isPending({ state }: Delegation): boolean {
  return state === "requested" || state === "escalated";
}

/** Whose a task is (D1): before anybody took it, whoever submitted it. */
export function ownerOf(task: Task): string {
  return delegationOf(task)?.owner ?? task.owner ?? task.submitter;
}

/** One delegator under one parent; lengths keep the parts apart. */
export function keyOf(parentId: string | undefined, delegatedBy: string, key: string): string {
  return `${parentId?.length ?? "-"}:${parentId ?? ""}${delegatedBy.length}:${delegatedBy}${key}`;
}

/** Whether an agent is or was a party. */
export function isParty(delegation: Delegation, agent: string): boolean {
  return [delegation, ...delegation.former].some(
    ({ delegatedBy, delegatedTo }) => delegatedBy === agent || delegatedTo === agent,
  );
}
