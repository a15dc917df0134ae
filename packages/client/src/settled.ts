/** How a task ended. */
import type { Envelope } from "@harmovela/envelope";
import type { Observed } from "./lane.ts";

export type TerminalState = "completed" | "failed" | "cancelled" | "timed_out";

export interface Settled {
  taskId: string;
  state: TerminalState;
  /** The event that ended it, as logged. */
  envelope: Envelope;
  cursor: string;
  /** Who ended it: the event's source. */
  by: string;
}

const STATES: ReadonlyMap<string, TerminalState> = new Map([
  ["task.completed", "completed"],
  ["task.failed", "failed"],
  ["task.cancelled", "cancelled"],
  ["task.timed_out", "timed_out"],
]);

/** Undefined when the entry ends no task (spec 5.4). */
export function toSettled(taskId: string, { envelope, cursor }: Observed): Settled | undefined {
  const state = STATES.get(envelope.type);
  return state && { taskId, state, envelope, cursor, by: envelope.source };
}

export function isTerminalState(state: unknown): boolean {
  return [...STATES.values()].some((terminal) => terminal === state);
}
