/**
 * What the log of `interruptions` says about tasks, as far as they move by it (spec 5.7, 5.8). It is
 * judged by the service that writes it; here it is only known.
 *
 * L1 A task that is stopped does no work until it is resumed. Its own state does not change by it.
 * L2 What that service asks for is granted when an entry of its log says so, once named as the cause.
 */
import type { Instant } from "@harmovela/envelope";
import type { Task } from "../state.ts";

/** The stream in which positions of these entries count. */
export const INTERRUPTION_LOG = "HV_LOG_INTERRUPTIONS";

/** Consequences that are not asked for yet, for one task; the newest ones. */
export const DUE_MAX = 16;

/** The interruption in force. */
export interface Hold {
  /** The `interruption.requested`. */
  readonly id: string;
  readonly policy: string;
  state: "requested" | "acknowledged" | "saved" | "resumed" | "cancelled";
  /** From where on no work is legal (L1); none while it still drains. */
  since: { readonly seq: number; readonly at: Instant } | undefined;
  checkpoint: string | undefined;
  /** What may be asked for, and the entries that say so (L2). */
  due: readonly { readonly type: string; readonly id: string }[];
  /** The newest events of the task's interruptions: its end may name one as its cause. */
  said: readonly string[];
}

/** Events of a task's interruptions that are remembered while one is in force. */
export const SAID_MAX = 16;

/** A task that undoes another one. */
export interface Compensation {
  readonly taskId: string;
  readonly original: string;
  readonly requester: string;
  /** The `compensation.requested`, and the `compensation.completed`. */
  readonly id: string;
  completedBy: string | undefined;
  /** There is a task of that id, and with it this is forgotten. */
  isMade: boolean;
  /** It was submitted in the name of the request. */
  isRequested: boolean;
}

/** No work is legal (L1). */
export function isStopped({ hold }: Task): boolean {
  return hold?.since !== undefined;
}

/** Somebody is there who can be asked to stop: nobody took it, or it stands still. */
export function hasRunner(task: Task): boolean {
  return task.owner !== undefined && !isStopped(task);
}
