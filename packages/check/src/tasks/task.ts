import type { Delegation } from "../delegations/delegation.ts";
import type { OpenPlan } from "../plan-book.ts";
import type { Instance } from "./context.ts";
import type { TaskState } from "./table.ts";

/** A task as the log tells it. */
export interface Task {
  readonly id: string;
  state: TaskState;
  readonly parent: Task | undefined;
  readonly depth: number;
  /** Children that are not terminal; by the ordering rule none means no live descendant. */
  liveChildren: number;
  /** Children that it ever had, those aside that were taken out again. */
  children: number;
  readonly submitter: string | undefined;
  target: string | undefined;
  /** Whether somebody submitted it; a delegation makes tasks too (spec 5.6). */
  isSubmitted: boolean;
  /** The task that it undoes, when a compensation made it (spec 5.8). */
  readonly compensates: string | undefined;
  /** The delegation that has a say about it. */
  delegation: Delegation | undefined;
  owner: string | undefined;
  /** The session of the owner that has it, when it was taken or resumed in one of its own (spec 5.1). */
  heldIn: Instance | undefined;
  /** Resumed by somebody else: the first process of its owner that works on it has it (spec 5.7). */
  isFree: boolean;
  /** Sequence of the entry that gave it its owner. */
  ownedAt: number;
  /** When it is to time out by its submission; undefined when that declared nothing. */
  due: number | undefined;
  /** When it is to time out by the offer under which somebody works on it (spec 5.6). */
  offerDue: number | undefined;
  /** First met in the middle of its life: what came before is unknown. */
  readonly isAdopted: boolean;
  /** Whether `state` is what the log says; false for an adopted task until its first move. */
  isStateKnown: boolean;
  /** Id of the event that ended it. */
  endedBy: string | undefined;
  /** The begun plan that it is the root of. */
  plan: OpenPlan | undefined;
  /** The cancel requests that it is the root of. */
  gentle: GentlePlan[] | undefined;
  /** The newest cancel request sent to it: the plan that asked. */
  requestedBy: string | undefined;
  /** The id that its cascaded children say it ends by, and the plan under which they do. */
  promisedEnd: { plan: string; id: string } | undefined;
}

/** A `task.cancel.requested`: the gate is closed, the grace runs (spec 5.4). */
export interface GentlePlan {
  id: string;
  root: Task;
  /** Sequence of the request. */
  seq: number;
  /** Subject of the request. */
  subject: string;
  /** End of the grace. */
  due: number;
  /** An obligation of it failed: nobody need finish it. */
  isAbandoned: boolean;
}

/** Whose a task is: before anybody took it, whoever submitted it (spec 5.6). */
export function ownerOf(task: Task): string | undefined {
  return task.delegation?.owner ?? task.owner ?? task.submitter;
}

/** The nearest begun plan at or above a task that holds its subtree closed. */
export function coveringRoot(task: Task | undefined): Task | undefined {
  for (let at = task; at !== undefined; at = at.parent) {
    if (at.plan !== undefined && !at.plan.isAbandoned) return at;
  }
  return undefined;
}

export function isAtOrAbove(root: Task, task: Task): boolean {
  for (let at: Task | undefined = task; at !== undefined; at = at.parent) {
    if (at === root) return true;
  }
  return false;
}

/** A cancel request at or above a task that nobody has given up. */
export function gentleAbove(task: Task): GentlePlan | undefined {
  for (let at: Task | undefined = task; at !== undefined; at = at.parent) {
    const standing = at.gentle?.find(({ isAbandoned }) => !isAbandoned);
    if (standing !== undefined) return standing;
  }
  return undefined;
}
