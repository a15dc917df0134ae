/**
 * State of the task domain: a fold of its log.
 *
 * 1. A terminal task has no live descendant; hence live descendants exist exactly when a live child does.
 * 2. Ids come from agents, so tables are Maps (an id may be "__proto__").
 * 3. Scheduling structures (timers, ring, a plan's cursor, parked plans) only order the work; what is
 *    owed follows from tasks and plans alone.
 */
import type { Envelope, Instant } from "@harmovela/envelope";
import type { DelegationBook, DelegationTimer } from "./delegation/state.ts";
import { createFamilyState, type FamilyState } from "./families/state.ts";
import { Heap } from "./heap.ts";
import { Ring } from "./ring.ts";
import type { TaskStateName, TerminalType } from "./rules/transitions.ts";
import type { TaskSettings } from "./settings.ts";

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
  deadline: DeadlineTimer | undefined;
  lastSeq: number;
  lastAt: Instant;
  ended: Ending | undefined;
  /** The plan whose root this task is. */
  plan: PlanState | undefined;
  /** The request that asks this task's runner to stop. */
  cancelRequested: string | undefined;
  /** A planned event already named this task's own planned end as its cause. */
  endPromised: boolean;
  childCount: number;
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
}

export interface GraceTimer {
  readonly kind: "grace";
  readonly due: Instant;
  readonly order: number;
  readonly plan: PlanState;
  index: number;
}

export type Timer = DeadlineTimer | GraceTimer | DelegationTimer;

/** A task of a lost instance whose failure waits while a plan is under way. */
export interface Orphan {
  readonly kind: "orphan";
  readonly task: Task;
  readonly instance: InstanceState;
}

/** A process of an agent that has taken tasks: one of the agent's sessions. */
export interface InstanceState {
  readonly kind: "instance";
  readonly session: string;
  /** What it has, while its session is live. */
  readonly tasks: Set<Task>;
  /** Its session has ended. */
  isOver: boolean;
  /** Present when its tasks are to fail with it. */
  lost: LostInstance | undefined;
  ringNext: RingMember | undefined;
  ringPrev: RingMember | undefined;
}

export interface LostInstance {
  /** Id and time of the `session.error`. */
  readonly by: string;
  readonly at: Instant;
  /** Tasks that may still be owed their failure; whatever has become of one shows when it is met. */
  readonly pending: Task[];
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
  /** Tasks without runner that have no live child any more. */
  ready: Task[];
  /** The parent last named as a cause, and the id of its planned end: siblings share it. */
  cited: Task | undefined;
  citedId: string;
  /** Plans above that wait for this one. */
  waiters: PlanState[];
  /** Requests' plans below that this one has overtaken. */
  dormant: PlanState[];
  /** What must not be owed while this plan is under way. */
  suspended: (Timer | Orphan)[];
  ringNext: RingMember | undefined;
  ringPrev: RingMember | undefined;
}

export interface TenantState {
  readonly name: string;
  readonly tasks: Map<string, Task>;
  readonly plans: Map<string, PlanState>;
  /** One string object for each agent name. */
  readonly names: Map<string, string>;
  /** By session; those whose session is live. */
  readonly instances: Map<string, InstanceState>;
  readonly delegations: DelegationBook;
}

export interface TaskState {
  readonly tenants: Map<string, TenantState>;
  readonly timers: Heap<Timer>;
  readonly ring: Ring<RingMember>;
  /** Obligations that could not be met, as `<tenant> <id>`. */
  readonly settled: Set<string>;
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
    settled: new Set(),
    gentleCount: 0,
    families: createFamilyState(settings),
  };
}

export function findTask(state: TaskState, tenant: string, id: string): Task | undefined {
  return state.tenants.get(tenant)?.tasks.get(id);
}

export function settledKey(tenant: string, id: string): string {
  return `${tenant} ${id}`;
}
