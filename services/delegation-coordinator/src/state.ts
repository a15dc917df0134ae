/**
 * State of the task domain: a fold of its log.
 *
 * 1. A terminal task has no live descendant; hence live descendants exist exactly when a live child does.
 * 2. Ids come from agents, so tables are Maps (an id may be "__proto__").
 * 3. Scheduling structures (timers, ring, a plan's cursor, parked plans) only order the work; what is
 *    owed follows from tasks and plans alone.
 */
import { type Envelope, Fifo, type Instant } from "@harmovela/envelope";
import type { Delegation, DelegationBook, DelegationTimer } from "./delegation/state.ts";
import { createFamilyState, type FamilyState } from "./families/state.ts";
import { Heap } from "./heap.ts";
import type { Compensation, Hold } from "./interruptions/state.ts";
import { Ring } from "./ring.ts";
import type { TaskStateName, TerminalType } from "./rules/transitions.ts";
import type { TaskSettings } from "./settings.ts";
import type { KnownToken } from "./tokens/memory.ts";

/** The event that ended a task. */
export interface Ending {
  id: string;
  type: TerminalType;
  seq: number;
  at: Instant;
  by: string;
  causation: string | undefined;
  correlation: string | undefined;
  reason: string | undefined;
  /** Of a cascade: how its root ends. */
  rootOutcome: string | undefined;
  rootTask: string | undefined;
  forced: boolean;
}

export interface Task {
  readonly id: string;
  readonly tenant: TenantState;
  readonly parent: Task | undefined;
  readonly depth: number;
  readonly submitter: string;
  /** Who may take it; while it is offered, the delegate. */
  target: string | undefined;
  session: string | undefined;
  /** The submission named its tenant, so derived events do. */
  readonly namesTenant: boolean;
  /** False: a delegation has made it, and its submission may still come. */
  isSubmitted: boolean;
  submittedSeq: number;
  state: TaskStateName;
  owner: string | undefined;
  /** The process of the owner that has it; none: any of them (spec 5.1). */
  instance: InstanceState | undefined;
  /** Resumed by somebody else: the first process of its owner that works on it has it (spec 5.7). */
  isFree: boolean;
  /** The plan under which the failure sleeps that the loss of its instance owes. */
  asleepUnder: PlanState | undefined;
  /** Of the ring of its instance. */
  ringNext: Task | undefined;
  ringPrev: Task | undefined;
  deadline: DeadlineTimer | undefined;
  lastSeq: number;
  lastAt: Instant;
  ended: Ending | undefined;
  /** Its interruption, while there is one. */
  hold: Hold | undefined;
  /** The plan whose root this task is. */
  plan: PlanState | undefined;
  /** The request that asks this task's runner to stop. */
  cancelRequested: string | undefined;
  /** A planned event already named this task's own planned end as its cause. */
  endPromised: boolean;
  /** Children that it ever had, offers that left nothing behind aside. */
  childCount: number;
  /** So many of them have ended and are no longer remembered. */
  forgottenCount: number;
  liveCount: number;
  firstChild: Task | undefined;
  lastChild: Task | undefined;
  prevSibling: Task | undefined;
  nextSibling: Task | undefined;
  firstLive: Task | undefined;
  lastLive: Task | undefined;
  prevLive: Task | undefined;
  nextLive: Task | undefined;
  /** The last log positions that concern it. */
  entries: number[];
  entryCount: number;
}

export interface DeadlineTimer {
  readonly kind: "deadline";
  readonly due: Instant;
  readonly order: number;
  readonly task: Task;
  /** The submission that set it. */
  readonly causation: string;
  index: number;
  heldBy: PlanState | undefined;
  /** What it owes could not be written: it never fires again. */
  isGivenUp: boolean;
}

export interface GraceTimer {
  readonly kind: "grace";
  readonly due: Instant;
  readonly order: number;
  readonly plan: PlanState;
  index: number;
  heldBy: PlanState | undefined;
}

export type Timer = DeadlineTimer | GraceTimer | DelegationTimer;

/** A process of an agent that has taken tasks: one of the agent's sessions. */
export interface InstanceState {
  readonly kind: "instance";
  readonly session: string;
  /**
   * What it has, the newest last. Of one that was lost: whose failure may be owed, but for what sleeps
   * under a plan.
   */
  readonly tasks: Ring<Task>;
  /** Its session has ended. */
  isOver: boolean;
  /** Its session has ended because nobody was heard in it. */
  lost: LostInstance | undefined;
  ringNext: RingMember | undefined;
  ringPrev: RingMember | undefined;
}

/** Id and time of the `session.error`. */
export interface LostInstance {
  readonly by: string;
  readonly at: Instant;
}

/** What has steps to take. */
export type RingMember = PlanState | InstanceState;

/**
 * How a subtree ends. `hard`: the outcome is fixed, leaves first (a `begun` entry, or a cancel request
 * whose grace has passed). Not hard: runners were asked to stop and may still end by themselves.
 */
export interface PlanState {
  readonly id: string;
  readonly root: Task;
  readonly kind: TerminalType;
  /** A begun plan: the event that ends it. A request's plan: the request. */
  readonly envelope: Envelope;
  readonly at: Instant;
  readonly seq: number;
  /** Present in a request's plan. */
  readonly grace: GraceTimer | undefined;
  readonly graceMs: number;
  hard: boolean;
  /** Where the walk to the next leaf goes on. */
  cursor: Task;
  /** The next task of the walk that asks runners to stop. */
  next: Task | undefined;
  /** Live tasks without runner that have no live child any more. */
  readonly ready: Set<Task>;
  /** The id of the parent last named as a cause, and that of its planned end: siblings share it. */
  cited: string | undefined;
  citedId: string;
  /** Plans above that wait for this one. */
  readonly waiters: Set<PlanState>;
  waitsFor: PlanState | undefined;
  /** Requests' plans below that this one has overtaken. */
  readonly dormant: Set<PlanState>;
  overtakenBy: PlanState | undefined;
  /** Timers that must not fire while this plan is under way. */
  readonly suspended: Set<Timer>;
  /** Tasks of lost instances that must not fail by themselves while this plan is under way. */
  readonly orphans: Set<Task>;
  ringNext: RingMember | undefined;
  ringPrev: RingMember | undefined;
}

/** One string object for each name that is in use; the rarely used ones go when there are many. */
export interface Names {
  recent: Map<string, string>;
  before: Map<string, string>;
}

export interface TenantState {
  readonly name: string;
  readonly tasks: Map<string, Task>;
  readonly plans: Map<string, PlanState>;
  readonly names: Names;
  /** By session; those whose session is live. */
  readonly instances: Map<string, InstanceState>;
  readonly delegations: DelegationBook;
  /** By the task that undoes another one. */
  readonly compensations: Map<string, Compensation>;
}

/** A task that has ended, an offer that was refused or has given way to another, or a compensation that was asked for. */
export type Over = { readonly at: Instant; readonly tenant: TenantState } & (
  | { readonly kind: "task"; readonly task: Task }
  | { readonly kind: "offer"; readonly delegation: Delegation }
  | { readonly kind: "compensation"; readonly compensation: Compensation }
);

export interface TaskState {
  readonly tenants: Map<string, TenantState>;
  readonly timers: Heap<Timer>;
  readonly ring: Ring<RingMember>;
  /** What is remembered for a while, in the order in which it ended. */
  readonly over: Fifo<Over>;
  /** Handoff tokens that are remembered, of all tenants, by when they are forgotten. */
  readonly tokens: Heap<KnownToken>;
  /** Plans of requests under way, all tenants together. */
  gentleCount: number;
  /** Sessions, subscriptions, commands, queries, tool calls and budgets. */
  readonly families: FamilyState;
}

export function createState(settings: TaskSettings): TaskState {
  return {
    tenants: new Map(),
    timers: new Heap(),
    ring: new Ring(),
    over: new Fifo(),
    tokens: new Heap(),
    gentleCount: 0,
    families: createFamilyState(settings),
  };
}

export function findTask(state: TaskState, tenant: string, id: string): Task | undefined {
  return state.tenants.get(tenant)?.tasks.get(id);
}
