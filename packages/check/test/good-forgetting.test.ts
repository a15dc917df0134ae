/** What is over longer ago than the retention may come back: the checker finds nothing. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { clean } from "./clean.ts";
import { del, offered } from "./delegation-log.ts";
import { answer, ask, budget, call, cost, session, settle } from "./family-log.ts";
import { LogBuilder } from "./log-builder.ts";

const RETENTION = 1_000;

function forgetful(retentionMs = RETENTION): LogBuilder {
  const log = new LogBuilder();
  log.epoch({ retentionMs });
  return log;
}

describe("a good log in which ids come back", () => {
  it("of an ended task and its child, right after the retention of the settings", () => {
    const log = forgetful();
    log.running("task_p");
    log.running("task_c", { parent: "task_p" });
    log.task("completed", "task_c");
    log.task("completed", "task_p");
    log.wait(RETENTION + 1);
    log.running("task_c");
    log.running("task_p", { parent: "task_c" });
    log.task("completed", "task_p");
    log.task("completed", "task_c");
    const { tasks, liveTasks } = clean(log);
    assert.deepEqual([tasks, liveTasks], [4, 0]);
  });

  it("after thirty days when the settings say nothing, and after the newest that they say", () => {
    const log = new LogBuilder();
    for (const wait of [30 * 86_400_000 + 1, 501]) {
      log.submit("task_a");
      log.task("failed", "task_a", "agent:boss");
      log.wait(wait);
      log.submit("task_a");
      log.task("failed", "task_a", "agent:boss");
      log.epoch({ retentionMs: 500 });
      log.wait(501);
    }
    clean(log);
  });

  it("a child that is forgotten is still one that its parent has had", () => {
    const log = forgetful();
    offered(log);
    del(log, "accepted", "task_c");
    log.running("task_g", { source: "agent:worker", parent: "task_c" });
    log.task("completed", "task_g");
    log.wait(RETENTION + 1);
    del(log, "rejected", "task_c");
    log.task("failed", "task_c", "agent:planner");
    log.task("completed", "task_p", "agent:planner");
    clean(log);
  });

  it("of delegations, with the keys of their requests and what their delegates asked for", () => {
    const log = forgetful();
    offered(log, { payload: { key: "k" } });
    const later = new Date(log.at + 10 * RETENTION).toISOString();
    del(log, "rejected", "task_c", { payload: { retry_after: later } });
    log.wait(RETENTION + 1);
    const again = { parent_task_id: "task_p", payload: { key: "k" } };
    del(log, "requested", "task_c", again);
    del(log, "accepted", "task_c");
    log.task("started", "task_c");
    log.task("completed", "task_c");
    log.wait(RETENTION + 1);
    del(log, "requested", "task_d", again);
    del(log, "rejected", "task_d");
    log.task("completed", "task_p", "agent:planner");
    clean(log);
  });

  it("of sessions, requests, calls, versions and budgets", () => {
    const log = forgetful();
    session(log, "closed", "s1");
    ask(log, "command.requested");
    settle(log, "command.accepted");
    ask(log, "query.requested");
    answer(log, "query.response", { payload: { snapshot_version: 9 } });
    call(log, "requested", "agent:a");
    budget(log);
    cost(log, 9);
    log.wait(RETENTION);
    call(log, "started");
    log.wait(1);
    session(log, "opened", "s1");
    ask(log, "command.requested", { payload: { negotiation_window_ms: 10 * RETENTION } });
    ask(log, "query.requested");
    answer(log, "query.response", { payload: { snapshot_version: 1 } });
    budget(log, "established", "agent:b");
    cost(log, 9);
    log.wait(RETENTION - 1);
    call(log, "progress");
    // The window of a request ends before the request is forgotten, and its refusal may be late.
    log.wait(2);
    settle(log, "command.rejected");
    clean(log);
  });
});
