import type { BadLog } from "./bad-log.ts";
import { accepted, del, handOff, inMs, offered } from "./delegation-log.ts";
import type { LogBuilder } from "./log-builder.ts";

/** task_c is at work with the planner, then offered to the worker and accepted. */
function midway(log: LogBuilder): void {
  log.submit("task_c", { source: "agent:planner" });
  log.task("started", "task_c", "agent:planner");
  del(log, "requested", "task_c");
  del(log, "accepted", "task_c");
}

/** The rules of tasks where a delegation has made the task, or moved it. */
export const badDelegatedTasks: BadLog[] = [
  {
    rule: "task-id",
    why: "an offer of nothing",
    build: (log) => {
      del(log, "requested", "task_c", { task_id: undefined });
      return log.last;
    },
  },
  {
    rule: "task-owner",
    why: "work by the old owner after a handoff",
    build: (log) => {
      midway(log);
      log.task("progress", "task_c", "agent:planner");
      handOff(log, "task_c");
      log.task("progress", "task_c", "agent:planner");
      return log.last;
    },
  },
  {
    rule: "task-owner",
    why: "work by the delegate before the handoff",
    build: (log) => {
      midway(log);
      log.task("progress", "task_c", "agent:worker");
      return log.last;
    },
  },
  {
    rule: "task-owner",
    why: "work by a delegate that gave the task back",
    build: (log) => {
      accepted(log);
      log.submit("task_c", { source: "agent:planner" });
      log.task("started", "task_c");
      del(log, "rejected", "task_c");
      log.task("progress", "task_c");
      return log.last;
    },
  },
  {
    rule: "task-owner",
    why: "work by the planner on a task that was given back and nobody took",
    build: (log) => {
      accepted(log);
      log.submit("task_c", { source: "agent:planner" });
      log.task("started", "task_c");
      del(log, "rejected", "task_c");
      log.task("progress", "task_c", "agent:planner");
      return log.last;
    },
  },
  ...(["requested", "accepted", "handed off"] as const).map(
    (state): BadLog => ({
      rule: "task-live-descendants",
      why: `a parent ends while a child is ${state}`,
      build: (log) => {
        offered(log);
        if (state !== "requested") del(log, "accepted", "task_c");
        if (state === "handed off") handOff(log, "task_c");
        log.task("completed", "task_p", "agent:planner");
        return log.last;
      },
    }),
  ),
  {
    rule: "task-live-descendants",
    why: "a parent ends over a child that was given back and has had a child",
    build: (log) => {
      accepted(log);
      log.task("started", "task_c");
      log.submit("task_g", { source: "agent:worker", parent: "task_c" });
      log.task("cancelled", "task_g", "agent:worker");
      del(log, "rejected", "task_c");
      log.task("completed", "task_p", "agent:planner");
      return log.last;
    },
  },
  {
    rule: "task-unknown",
    why: "work on an offer that was rejected and left nothing",
    build: (log) => {
      offered(log);
      del(log, "rejected", "task_c");
      log.task("started", "task_c");
      return log.last;
    },
  },
  {
    rule: "task-reused",
    why: "a delegated task is submitted a second time",
    build: (log) => {
      accepted(log);
      log.submit("task_c", { source: "agent:planner" });
      log.submit("task_c", { source: "agent:planner" });
      return log.last;
    },
  },
  {
    rule: "task-terminal",
    why: "a handoff of a task that has ended",
    build: (log) => {
      accepted(log);
      log.task("cancelled", "task_c", "agent:planner");
      handOff(log, "task_c");
      return log.last;
    },
  },
  {
    rule: "task-terminal",
    why: "a task that has ended is offered",
    build: (log) => {
      log.running("task_c");
      log.task("completed", "task_c");
      del(log, "requested", "task_c", { from: "agent:worker", to: "agent:other" });
      return log.last;
    },
  },
  {
    rule: "task-terminal",
    why: "an answer about an ended task that nobody offered",
    build: (log) => {
      log.running("task_c");
      log.task("completed", "task_c");
      del(log, "accepted", "task_c");
      return log.last;
    },
  },
  {
    rule: "parent-terminal",
    why: "an offer under a parent that has ended",
    build: (log) => {
      log.running("task_p");
      log.task("completed", "task_p");
      del(log, "requested", "task_c", { parent_task_id: "task_p" });
      return log.last;
    },
  },
  {
    rule: "parent-unknown",
    why: "an offer under nothing",
    build: (log) => {
      del(log, "requested", "task_c", { parent_task_id: "task_p" });
      return log.last;
    },
  },
  {
    rule: "parent-changed",
    why: "an answer names another parent",
    build: (log) => {
      offered(log);
      log.submit("task_q");
      del(log, "accepted", "task_c", { parent_task_id: "task_q" });
      return log.last;
    },
  },
  {
    rule: "parent-cycle",
    why: "an offer of a task under itself",
    build: (log) => {
      del(log, "requested", "task_c", { parent_task_id: "task_c" });
      return log.last;
    },
  },
  {
    rule: "timeout-early",
    why: "a delegated task before the deadline of its offer",
    build: (log) => {
      accepted(log, { payload: { deadline: inMs(500) } });
      log.wait(499).timeOut("task_c");
      return log.last;
    },
  },
  {
    rule: "timeout-undeclared",
    why: "a task by the deadline of an offer that was given back",
    build: (log) => {
      log.submit("task_c", { source: "agent:planner" });
      del(log, "requested", "task_c", { payload: { deadline: inMs(500) } });
      del(log, "accepted", "task_c");
      del(log, "rejected", "task_c");
      log.wait(600).timeOut("task_c");
      return log.last;
    },
  },
  {
    rule: "owed-type",
    why: "the service accepts an offer by itself",
    also: ["expiry-reason", "expiry-early"],
    build: (log) => {
      offered(log);
      log.owe("offer:task_c", "delegation.accepted", { task_id: "task_c" });
      return log.last;
    },
  },
  {
    rule: "submission-entitlement",
    why: "a stranger submits a delegated task",
    build: (log) => {
      accepted(log);
      log.submit("task_c", { source: "agent:stranger" });
      return log.last;
    },
  },
];
