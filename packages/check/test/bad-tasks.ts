import type { BadLog } from "./bad-log.ts";

/** One log per rule of single tasks, their owners, trees and deadlines. */
export const badTasks: BadLog[] = [
  {
    rule: "task-id",
    why: "a task event without a task",
    build: (log) => {
      log.send("task.progress", "agent:worker");
      return log.last;
    },
  },
  {
    rule: "task-state",
    why: "progress claims to be completed",
    also: ["payload-invalid"],
    build: (log) => {
      log.running("task_a");
      log.task("progress", "task_a", "agent:worker", {
        payload: { task_id: "task_a", state: "completed" },
      });
      return log.last;
    },
  },
  ...(
    [
      [[], "completed"],
      [[], "progress"],
      [["accepted"], "accepted"],
      [["accepted"], "progress"],
      [["started"], "started"],
      [["started"], "accepted"],
      [["started", "blocked"], "completed"],
      [["started", "blocked"], "output"],
      [["started", "blocked"], "blocked"],
      [["started", "progress"], "started"],
      [["started", "output"], "started"],
    ] as const
  ).map(
    ([before, then]): BadLog => ({
      rule: "task-transition",
      why: `${then} after ${before.at(-1) ?? "submitted"}`,
      build: (log) => {
        log.submit("task_a");
        for (const name of before) log.task(name, "task_a");
        log.task(then, "task_a");
        return log.last;
      },
    }),
  ),
  ...(["completed", "failed", "cancelled", "timed_out"] as const).map(
    (end): BadLog => ({
      rule: "task-terminal",
      why: `progress after ${end}`,
      build: (log) => {
        log.running("task_a");
        const error = { code: "task_timeout", message: "late", retryable: true };
        log.task(end, "task_a", "agent:worker", { payload: { task_id: "task_a", error } });
        log.task("progress", "task_a");
        return log.last;
      },
    }),
  ),
  {
    rule: "task-reused",
    why: "a live id is submitted again",
    build: (log) => {
      log.submit("task_a");
      log.submit("task_a");
      return log.last;
    },
  },
  {
    rule: "task-reused",
    why: "an ended id is submitted again",
    build: (log) => {
      log.submit("__proto__");
      log.task("cancelled", "__proto__", "agent:boss");
      log.submit("__proto__");
      return log.last;
    },
  },
  {
    rule: "task-unknown",
    why: "a task nobody submitted",
    build: (log) => {
      log.task("started", "constructor");
      return log.last;
    },
  },
  {
    rule: "task-unknown",
    why: "a task of another tenant",
    build: (log) => {
      log.submit("task_a");
      log.tenant = "other";
      log.task("started", "task_a");
      return log.last;
    },
  },
  {
    rule: "task-live-descendants",
    why: "a parent completes before its child",
    build: (log) => {
      log.running("task_p");
      log.running("task_c", { parent: "task_p" });
      log.task("completed", "task_p");
      return log.last;
    },
  },
  {
    rule: "task-live-descendants",
    why: "a cascade that goes root first",
    build: (log) => {
      log.running("task_p");
      log.running("task_c", { parent: "task_p" });
      log.finish(log.beginCancel("task_p"));
      return log.last;
    },
  },
  {
    rule: "task-live-descendants",
    why: "a cascade that cancels an inner task before its leaf",
    build: (log) => {
      log.running("task_p");
      log.running("task_c", { parent: "task_p" });
      log.running("task_g", { parent: "task_c" });
      const plan = log.beginCancel("task_p");
      log.step(plan, "task_c", plan.id);
      return log.last;
    },
  },
  {
    rule: "task-target",
    why: "started by another than the target",
    build: (log) => {
      log.submit("task_a", { target: "agent:chosen" });
      log.task("started", "task_a");
      return log.last;
    },
  },
  {
    rule: "task-owner",
    why: "two live owners",
    build: (log) => {
      log.submit("task_a");
      log.task("accepted", "task_a", "agent:one");
      log.task("started", "task_a", "agent:two");
      return log.last;
    },
  },
  {
    rule: "task-owner",
    why: "a stranger fails a task that nobody has",
    build: (log) => {
      log.submit("task_a", { target: "agent:chosen" });
      const error = { code: "task_error", message: "no", retryable: false };
      log.task("failed", "task_a", "agent:stranger", { payload: { task_id: "task_a", error } });
      return log.last;
    },
  },
  {
    rule: "task-entitlement",
    why: "a child's owner cancels the parent",
    build: (log) => {
      log.running("task_p");
      log.submit("task_c", { parent: "task_p", source: "agent:worker" });
      log.task("started", "task_c", "agent:helper");
      log.task("cancel.requested", "task_p", "agent:helper");
      return log.last;
    },
  },
  {
    rule: "task-entitlement",
    why: "a stranger begins a cascade",
    build: (log) => {
      log.running("task_p");
      log.running("task_c", { parent: "task_p" });
      log.beginCancel("task_p", "agent:stranger");
      return log.last;
    },
  },
  {
    rule: "parent-unknown",
    why: "the parent is not there",
    build: (log) => {
      log.submit("task_c", { parent: "task_p" });
      return log.last;
    },
  },
  {
    rule: "parent-unknown",
    why: "the parent is of another tenant",
    build: (log) => {
      log.submit("task_p");
      log.tenant = "other";
      log.submit("task_c", { parent: "task_p" });
      return log.last;
    },
  },
  {
    rule: "parent-terminal",
    why: "the parent has ended",
    build: (log) => {
      log.running("task_p");
      log.task("completed", "task_p");
      log.submit("task_c", { payload: { parent_task_id: "task_p" } });
      return log.last;
    },
  },
  {
    rule: "parent-changed",
    why: "a later event names another parent",
    build: (log) => {
      log.running("task_p");
      log.running("task_q");
      log.submit("task_c", { parent: "task_p" });
      log.task("started", "task_c", "agent:worker", { parent_task_id: "task_q" });
      return log.last;
    },
  },
  {
    rule: "parent-cycle",
    why: "a task is its own parent",
    build: (log) => {
      log.submit("task_a", { parent: "task_a" });
      return log.last;
    },
  },
  {
    rule: "tree-depth",
    why: "one beyond the default",
    build: (log) => {
      log.submit("task_0");
      for (let depth = 1; depth <= 1_001; depth += 1) {
        log.submit(`task_${depth}`, { parent: `task_${depth - 1}` });
      }
      return log.last;
    },
  },
  {
    rule: "tree-depth",
    why: "one beyond the setting of the epoch",
    build: (log) => {
      log.epoch({ maxDepth: 1 });
      log.submit("task_p");
      log.submit("task_c", { parent: "task_p" });
      log.submit("task_g", { parent: "task_c" });
      return log.last;
    },
  },
  {
    rule: "timeout-early",
    why: "a moment before the tighter limit",
    build: (log) => {
      log.submit("task_a", { payload: { timeout_ms: 500, deadline_ms: 300 } });
      log.wait(299).timeOut("task_a");
      return log.last;
    },
  },
  {
    rule: "timeout-early",
    why: "a cascade by a deadline that has not passed",
    build: (log) => {
      log.running("task_p", { payload: { timeout_ms: 500 } });
      log.running("task_c", { parent: "task_p" });
      log.wait(100).timeOut("task_p");
      const envelope = log.items.pop()?.envelope;
      if (envelope) log.begin(envelope, "owed:deadline:task_p");
      return log.last;
    },
  },
  {
    rule: "timeout-undeclared",
    why: "no deadline was declared",
    build: (log) => {
      log.running("task_a");
      log.wait(1_000_000).timeOut("task_a");
      return log.last;
    },
  },
  {
    rule: "timeout-error",
    why: "another error",
    build: (log) => {
      log.submit("task_a", { payload: { timeout_ms: 10 } });
      const error = { code: "internal_error", message: "late", retryable: true };
      log.wait(10).timeOut("task_a", { payload: { task_id: "task_a", error } });
      return log.last;
    },
  },
];
