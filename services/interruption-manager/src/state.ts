/**
 * State of the domain `interruptions`: a fold of its log and of that of `tasks`.
 *
 * 1. A task has at most one open interruption; it is stopped while that is saved or a forced stop.
 * 2. Task state is the coordinator's. What it is asked to do is a request, owed by an entry of this log.
 * 3. Ids come from agents, so tables are Maps.
 * 4. Rings, heaps and places of walks only order the work; what is owed follows from the rest alone.
 */
import {
  createSessionBook,
  type Envelope,
  Fifo,
  Heap,
  type HeapItem,
  type Instant,
  Ring,
  type RingItem,
  type SessionBook,
} from "@harmovela/envelope";
import type { ManagerSettings } from "./settings.ts";

/** What a task is to this service: the fold of its events in the log of `tasks`. */
export interface TaskRecord {
  readonly id: string;
  readonly tenant: TenantState;
  /** Known by its interruption alone, or by its compensation (section 11, C40). */
  isExternal: boolean;
  /** False: a delegation or a compensation has made it, and its submission may still come. */
  isSubmitted: boolean;
  parent: TaskRecord | undefined;
  submitter: string | undefined;
  /** Who may take it; while it is offered, the delegate. */
  target: string | undefined;
  owner: string | undefined;
  namesTenant: boolean;
  /** Named like the event that led to it. */
  state: string;
  ended: TaskEnd | undefined;
  offer: Offer | undefined;
  /** The process of the owner that has it; none: any of them. */
  instance: Instance | undefined;
  /** Position of its resumption for whichever process of the owner is first to go on with it. */
  leftBy: number | undefined;
  /** Of the ring of its instance: as long as nothing stops it. */
  ringNext: TaskRecord | undefined;
  ringPrev: TaskRecord | undefined;
  /** Children that it ever had, offers that left nothing behind aside. */
  childCount: number;
  liveCount: number;
  firstLive: TaskRecord | undefined;
  lastLive: TaskRecord | undefined;
  prevLive: TaskRecord | undefined;
  nextLive: TaskRecord | undefined;
  open: Interruption | undefined;
  /** The last ones that are over, oldest first. */
  past: Interruption[] | undefined;
  /** By id, oldest first. */
  checkpoints: Map<string, Checkpoint> | undefined;
  /** The request for its subtree that is under way. */
  plan: TreePlan | undefined;
  /** Ends that the coordinator is asked for. */
  asked: Request[] | undefined;
}

/** The event that ended a task, or took back the offer that it was. */
export interface TaskEnd {
  readonly id: string;
  readonly type: string;
  readonly seq: number;
  readonly at: Instant;
}

/** The delegation that has a say about a task (spec 5.6). */
export interface Offer {
  state: "requested" | "accepted" | "rejected" | "handed_off" | "escalated";
  delegatedBy: string;
  delegatedTo: string | undefined;
  /** Whose the task is until it is handed off. */
  owner: string;
  instance: Instance | undefined;
  readonly targetBefore: string | undefined;
  hasTaken: boolean;
}

/** A process of an agent that has taken tasks: one of the agent's sessions (spec 5.1). */
export interface Instance extends RingItem<Work> {
  readonly kind: "instance";
  readonly session: string;
  readonly tenant: TenantState;
  /** What it has and nothing stops; of one that is over, what still has to be interrupted. */
  readonly tasks: Ring<TaskRecord>;
  /** What ended its session. */
  endedBy: { readonly id: string; readonly type: string; readonly at: Instant } | undefined;
}

export type Policy = "drain_then_stop" | "save_and_stop" | "force_stop";

/** One interruption of a task (spec 5.7); in the heap while its grace runs. */
export interface Interruption extends HeapItem {
  /** Of the request that opened it. */
  readonly id: string;
  readonly task: TaskRecord;
  readonly policy: Policy;
  readonly requestedBy: string;
  readonly at: Instant;
  readonly reason: string | undefined;
  /** None under a forced stop. */
  readonly graceMs: number | undefined;
  /** It follows from a grace that passed without a checkpoint. */
  readonly isExpiry: boolean;
  /** The tree request from which it came. */
  readonly treeOf: string | undefined;
  /** The subtree that was stopped with it. */
  tree: Tree | undefined;
  /** It goes on with the root of its tree. */
  resume: TreeResume | undefined;
  state: "requested" | "acknowledged" | "saved";
  acknowledged: { readonly id: string; readonly at: Instant } | undefined;
  saved: { readonly id: string; readonly at: Instant; readonly checkpoint: string } | undefined;
  closed: Closing | undefined;
}

/** What ended an interruption. */
export interface Closing {
  readonly id: string;
  readonly type: string;
  readonly by: string;
  readonly at: Instant;
  readonly checkpoint: string | undefined;
}

/** Whom a tree request stops, leaves first; with the ids of weaker requests that it replaced. */
export interface Tree {
  readonly ids: readonly string[];
  readonly members: readonly TaskRecord[];
}

/** What was saved (spec 5.7). */
export interface Checkpoint {
  readonly id: string;
  readonly at: Instant;
  readonly bytes: number | undefined;
  readonly location: string | undefined;
  readonly digest: string | undefined;
  readonly owner: string;
  readonly interruption: string;
  readonly seq: number;
}

/** A begun request for a subtree: its members one by one, the root's own event last. */
export interface TreePlan extends RingItem<Work> {
  readonly kind: "tree";
  readonly id: string;
  readonly root: TaskRecord;
  readonly envelope: Envelope;
  readonly policy: Policy;
  readonly graceMs: number | undefined;
  readonly at: Instant;
  readonly tree: Tree;
  readonly treeOf: string | undefined;
  place: number;
  /** Plans above that wait for this one. */
  readonly waiters: Set<TreePlan>;
}

/** A subtree that goes on: parents before their children. */
export interface TreeResume extends RingItem<Work> {
  readonly kind: "resume";
  /** Of the `interruption.resumed` of the root. */
  readonly id: string;
  readonly tenant: TenantState;
  readonly at: Instant;
  /** What was saved when the root went on. */
  readonly stopped: readonly Interruption[];
  /** So many of them are not over yet. */
  left: number;
  place: number;
}

/** What has steps to take. */
export type Work = Instance | TreePlan | TreeResume;

/** What the coordinator is asked for; in the heap while it waits for another attempt. */
export interface Request extends HeapItem {
  readonly id: string;
  readonly tenant: TenantState;
  readonly task: TaskRecord | undefined;
  readonly compensation: Compensation | undefined;
  readonly envelope: Envelope;
  readonly attempt: number;
}

/** A task that undoes another one (spec 5.8). */
export interface Compensation {
  /** Of the `compensation.requested`. */
  readonly id: string;
  readonly tenant: TenantState;
  readonly taskId: string;
  readonly original: string;
  readonly requestedBy: string;
  readonly at: Instant;
  readonly reason: string;
  /** Of original and reason. */
  readonly key: string;
  request: Request | undefined;
  /** The task, as soon as it is there. */
  task: TaskRecord | undefined;
  /** Why there will be no task. */
  refused: { readonly code: string; readonly at: Instant } | undefined;
  completed: { readonly id: string; readonly by: string; readonly at: Instant } | undefined;
}

/** One string object for each name that is in use; the rarely used ones go when there are many. */
export interface Names {
  recent: Map<string, string>;
  before: Map<string, string>;
}

export interface TenantState {
  readonly name: string;
  readonly names: Names;
  readonly tasks: Map<string, TaskRecord>;
  /** By task, the longest open first. */
  readonly open: Map<string, Interruption>;
  readonly plans: Map<string, TreePlan>;
  readonly resumes: Map<string, TreeResume>;
  /** By session; those whose session is live. */
  readonly instances: Map<string, Instance>;
  /** By the id of the compensation task. */
  readonly compensations: Map<string, Compensation>;
  /** By the id of what is undone. */
  readonly compensationsOf: Map<string, Set<Compensation>>;
  /** The newest of each original and reason. */
  readonly compensationByKey: Map<string, Compensation>;
}

/** What has ended and is kept for some time yet. */
export type Over = { readonly at: Instant; readonly tenant: TenantState } & (
  | { readonly kind: "task"; readonly task: TaskRecord }
  | { readonly kind: "interruption"; readonly interruption: Interruption }
  | { readonly kind: "compensation"; readonly compensation: Compensation }
);

export interface ManagerState {
  readonly sessions: SessionBook;
  readonly tenants: Map<string, TenantState>;
  readonly graces: Heap<Interruption>;
  /** Open interruptions of tasks that have ended, by tenant and id of the event that closes them. */
  readonly endings: Map<string, Interruption>;
  readonly ring: Ring<Work>;
  /** By tenant and id. */
  readonly requests: Map<string, Request>;
  /** Those that may be sent, the oldest first. */
  readonly ready: Set<Request>;
  /** Those that wait for another attempt. */
  readonly retries: Heap<Request>;
  /** What is remembered for a while, in the order in which it ended. */
  readonly over: Fifo<Over>;
  /** Timers made so far; it orders what is due at the same time. */
  count: number;
}

export function createState({ retentionMs }: ManagerSettings): ManagerState {
  return {
    sessions: createSessionBook({ retentionMs }),
    tenants: new Map(),
    graces: new Heap(),
    endings: new Map(),
    ring: new Ring(),
    requests: new Map(),
    ready: new Set(),
    retries: new Heap(),
    over: new Fifo(),
    count: 0,
  };
}

export function openTenant(state: ManagerState, name: string): TenantState {
  let tenant = state.tenants.get(name);
  if (tenant === undefined) {
    tenant = {
      name,
      names: { recent: new Map(), before: new Map() },
      tasks: new Map(),
      open: new Map(),
      plans: new Map(),
      resumes: new Map(),
      instances: new Map(),
      compensations: new Map(),
      compensationsOf: new Map(),
      compensationByKey: new Map(),
    };
    state.tenants.set(name, tenant);
  }
  return tenant;
}

export function findTask(state: ManagerState, tenant: string, id: string): TaskRecord | undefined {
  return state.tenants.get(tenant)?.tasks.get(id);
}

/** Nobody works on it until it is resumed (spec 5.7). */
export function isStopped({ state, policy }: Interruption): boolean {
  return state === "saved" || policy === "force_stop";
}

/** The key of what belongs to one event of a tenant. */
export function keyOf(tenant: string, id: string): string {
  return `${tenant} ${id}`;
}
