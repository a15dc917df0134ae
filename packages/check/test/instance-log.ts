/** Two processes of one agent and what they do with tasks, as the example logs say it. */
import { ready, session } from "./family-log.ts";
import type { Draft, LogBuilder } from "./log-builder.ts";

export const IN_S1 = { session_id: "s1" };

/** The worker's sessions s1, in which heartbeats are agreed, and s2. */
export function sessions(log: LogBuilder): void {
  for (const id of ["s1", "s2"]) {
    session(log, "opened", id, { source: "agent:worker" });
    ready(log, id, { heartbeat_interval_ms: 1_000 });
  }
}

/** task_t, which the worker has taken in s1. */
export function taken(log: LogBuilder): void {
  sessions(log);
  log.submit("task_t");
  log.task("started", "task_t", "agent:worker", IN_S1);
}

/** s1 is lost. */
export function lose(log: LogBuilder): Draft {
  log.wait(3_000);
  const error = { code: "session_timeout", message: "no heartbeat", retryable: true };
  return log.owe("lost:s1", "session.error", {
    ...IN_S1,
    payload: { session_id: "s1", error },
  });
}

/** The service fails task_t, or another one. */
export function fail(
  log: LogBuilder,
  cause: Draft | undefined,
  { id = "task_t", code = "session_timeout" } = {},
): Draft {
  return log.owe(`orphan:${id}`, "task.failed", {
    task_id: id,
    ...(cause === undefined ? {} : { causation_id: cause.id }),
    payload: {
      task_id: id,
      state: "failed",
      error: { code, message: "lost", retryable: true },
    },
  });
}
