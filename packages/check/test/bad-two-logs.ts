/** Two logs that break a rule together, and what they are written with. */
import type { RuleId } from "../src/index.ts";
import { sessions } from "./instance-log.ts";
import { type TwoLogs, WORKER } from "./stop-log.ts";

export interface BadLogs {
  rule: RuleId;
  why: string;
  in: "tasks" | "stops";
  isSettled?: boolean;
  /** Writes the logs; the sequence of the entry that must be named. */
  build(logs: TwoLogs): number;
}

/** The last positions of both logs when they are written. */
function last(logs: TwoLogs, build: (logs: TwoLogs) => void): { tasks: number; stops: number } {
  build(logs);
  return { tasks: logs.tasks.last, stops: logs.stops.last };
}

/** Shows in the log of interruptions, at the entry that is written last. */
export function bad(rule: RuleId, why: string, build: (logs: TwoLogs) => void): BadLogs {
  return { rule, why, in: "stops", build: (logs) => last(logs, build).stops };
}

/** Shows in the log of tasks, at the entry that is written last. */
export function badTask(rule: RuleId, why: string, build: (logs: TwoLogs) => void): BadLogs {
  return { rule, why, in: "tasks", build: (logs) => last(logs, build).tasks };
}

/** Logs at rest in which something is missing; the entry that nothing has followed. */
export function open(rule: RuleId, why: string, build: (logs: TwoLogs) => number): BadLogs {
  return { rule, why, in: "stops", isSettled: true, build };
}

/** A grace that ends within a test. */
export const GRACE = { payload: { grace_period_ms: 1_000 } };

/** t, which the worker has taken in its session s1; s2 is its other one. */
export function taken(logs: TwoLogs): void {
  sessions(logs.tasks);
  logs.tasks.submit("t");
  logs.tasks.task("started", "t", WORKER, { session_id: "s1" });
}
