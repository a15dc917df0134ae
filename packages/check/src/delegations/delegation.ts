import type { Instance } from "../tasks/context.ts";
import type { Task } from "../tasks/task.ts";

export type DelegationState = "requested" | "accepted" | "rejected" | "handed_off" | "escalated";

/** The delegation of one task as the log tells it (spec 5.6). */
export interface Delegation {
  readonly id: string;
  /** None once it is rejected and has no say about the task any more. */
  task: Task | undefined;
  state: DelegationState;
  delegatedBy: string;
  /** None while it is open to whoever accepts it first. */
  delegatedTo: string | undefined;
  /** The session in which it was accepted, when that is the delegate's own. */
  acceptedIn: Instance | undefined;
  /** Whose the task is: the delegator's, from a handoff on the delegate's. */
  owner: string;
  /** Under what a retry of the request finds it. */
  readonly key: string | undefined;
  /** When the request was logged. */
  readonly at: number;
  /** Before this time nobody may find the offer expired. */
  readonly deadline: number | undefined;
  /** The delegate took a task that nobody ran, and leaves it when it rejects. */
  hasTaken: boolean;
  /** For whom the task was before. */
  readonly targetBefore: string | undefined;
  /** Until when this delegate is not asked again. */
  retryAfter: number | undefined;
  /** First met in the middle of its life: what came before is unknown. */
  readonly isAdopted: boolean;
  /** Tokens issued for the parties in force. */
  issued: string[];
}
