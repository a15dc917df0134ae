/** Why the manager asks for something, by the entry of its log that it names (spec 5.7, 5.8). */
export type Reason =
  | "expired"
  | "checkpoint_missing"
  | "cancelled"
  | "compensation.requested"
  | "compensation.completed";

/** What keeps a task from going on. */
export interface Hold {
  /** Id of the entry since which it is stopped. */
  since: string;
  /** `ending`: it is to end, whatever is said of it. */
  why: "saved" | "force_stop" | "ending";
}

/** A task that undoes what another one did. */
export interface Compensation {
  /** Id of the request. */
  readonly id: string;
  readonly taskId: string;
  readonly original: string;
  readonly requester: string;
}

/** What the log of interruptions says, as far as it was read. */
export interface InterruptionView {
  /** Its beginning was not read. */
  readonly isLenient: boolean;
  hold(tenant: string, taskId: string): Hold | undefined;
  reason(tenant: string, taskId: string, entryId: string): Reason | undefined;
  compensation(tenant: string, taskId: string): Compensation | undefined;
}
