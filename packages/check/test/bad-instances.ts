import type { BadLog } from "./bad-log.ts";
import { del, handOff, offered } from "./delegation-log.ts";
import { session } from "./family-log.ts";
import { fail, IN_S1, lose, sessions, taken } from "./instance-log.ts";

/** The rules about which process of an agent has a task, and what its loss means. */
export const badInstances: BadLog[] = [
  ...(["s2", "never opened", undefined] as const).map(
    (elsewhere): BadLog => ({
      rule: "task-instance",
      why: `work ${elsewhere === undefined ? "in no session" : `in ${elsewhere}`} on a task taken in s1`,
      build: (log) => {
        taken(log);
        const fields = elsewhere === undefined ? {} : { session_id: elsewhere };
        log.task("progress", "task_t", "agent:worker", fields);
        return log.last;
      },
    }),
  ),
  {
    rule: "task-instance",
    why: "a cascade by failure begins in another session",
    build: (log) => {
      taken(log);
      log.submit("task_c", { parent: "task_t" });
      const error = { code: "tool_error", message: "broke", retryable: false };
      const payload = { task_id: "task_t", error };
      const fields = { task_id: "task_t", session_id: "s2", payload };
      log.begin(log.draft("task.failed", "agent:worker", fields));
      return log.last;
    },
  },
  {
    rule: "task-instance",
    why: "work in another session than that of the acceptance, before the handoff",
    build: (log) => {
      sessions(log);
      offered(log);
      del(log, "accepted", "task_c", IN_S1);
      log.task("started", "task_c", "agent:worker", { session_id: "s2" });
      return log.last;
    },
  },
  {
    rule: "task-instance",
    why: "work in another session than that of the acceptance, after the handoff",
    build: (log) => {
      sessions(log);
      log.submit("task_c", { source: "agent:planner" });
      log.task("started", "task_c", "agent:planner");
      del(log, "requested", "task_c");
      del(log, "accepted", "task_c", IN_S1);
      handOff(log, "task_c");
      log.task("progress", "task_c", "agent:worker", { session_id: "s2" });
      return log.last;
    },
  },
  {
    rule: "task-instance",
    why: "given back in another session than that of the acceptance",
    build: (log) => {
      sessions(log);
      offered(log);
      del(log, "accepted", "task_c", IN_S1);
      del(log, "rejected", "task_c", { session_id: "s2" });
      return log.last;
    },
  },
  {
    rule: "orphan-cause",
    why: "the session of the task is live",
    build: (log) => {
      taken(log);
      fail(log, undefined);
      return log.last;
    },
  },
  {
    rule: "orphan-cause",
    why: "the session of the task was closed in good order",
    build: (log) => {
      taken(log);
      const closed = session(log, "closed", "s1", { source: "agent:worker" });
      fail(log, closed);
      return log.last;
    },
  },
  {
    rule: "orphan-cause",
    why: "the task was taken in no session",
    build: (log) => {
      sessions(log);
      log.running("task_t");
      fail(log, lose(log));
      return log.last;
    },
  },
  {
    rule: "orphan-cause",
    why: "another cause is named than the loss of the session",
    build: (log) => {
      taken(log);
      const { id } = lose(log);
      fail(log, { ...log.draft("session.error", "agent:worker"), id: `not ${id}` });
      return log.last;
    },
  },
  {
    rule: "orphan-cause",
    why: "the deployment keeps the tasks of lost sessions",
    build: (log) => {
      log.epoch({ orphanedTasks: "keep" });
      taken(log);
      fail(log, lose(log));
      return log.last;
    },
  },
  {
    rule: "orphan-error",
    why: "another error",
    build: (log) => {
      taken(log);
      fail(log, lose(log), { code: "internal_error" });
      return log.last;
    },
  },
  {
    rule: "plan-timer",
    why: "a task of a lost session fails in a subtree that is being cancelled",
    build: (log) => {
      log.submit("task_p");
      sessions(log);
      log.submit("task_t", { parent: "task_p" });
      log.task("started", "task_t", "agent:worker", IN_S1);
      log.beginCancel("task_p");
      fail(log, lose(log));
      return log.last;
    },
  },
];
