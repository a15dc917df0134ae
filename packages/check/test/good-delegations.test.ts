/** Delegations that keep every rule: the checker finds nothing. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { checkLog } from "../src/index.ts";
import { clean } from "./clean.ts";
import { accepted, del, expire, handOff, inMs, issue, offered } from "./delegation-log.ts";
import { LogBuilder, STREAM } from "./log-builder.ts";

describe("a good log of delegations", () => {
  it("offered, accepted, handed off with a token, done", () => {
    const log = new LogBuilder();
    accepted(log);
    log.task("started", "task_c");
    issue(log, "j1");
    issue(log, "j2");
    handOff(log, "task_c", "j1");
    log.task("completed", "task_c");
    log.task("completed", "task_p", "agent:planner");
    const report = clean(log);
    assert.equal(report.tasks, 2);
    assert.equal(report.liveTasks, 0);
    assert.equal(report.control.token_issued, 2);
  });

  it("a rejected offer leaves nothing: its parent may end, its id may come back", () => {
    const log = new LogBuilder();
    offered(log);
    del(log, "rejected", "task_c");
    log.task("completed", "task_p", "agent:planner");
    log.submit("task_c", { source: "agent:other" });
    log.task("cancelled", "task_c", "agent:other");
    const report = clean(log);
    assert.equal(report.liveTasks, 0);
    assert.equal(report.tasks, 2);
  });

  it("a submission fills in what a delegation has made, and the task outlives a rejection", () => {
    const log = new LogBuilder();
    accepted(log);
    log.submit("task_c", { source: "agent:planner", payload: { timeout_ms: 900 } });
    log.task("started", "task_c");
    del(log, "rejected", "task_c");
    del(log, "requested", "task_c", { to: "agent:other" });
    del(log, "accepted", "task_c", { to: "agent:other" });
    log.task("progress", "task_c", "agent:other");
    log.wait(900).timeOut("task_c");
    assert.equal(clean(log).liveTasks, 1);
  });

  it("an owner works until the handoff, and the delegate delegates on", () => {
    const log = new LogBuilder();
    log.submit("task_c", { source: "agent:planner" });
    log.task("started", "task_c", "agent:planner");
    del(log, "requested", "task_c");
    del(log, "accepted", "task_c");
    log.task("progress", "task_c", "agent:planner");
    handOff(log, "task_c");
    log.task("output", "task_c");
    const on = { from: "agent:worker", to: "agent:other" };
    del(log, "requested", "task_c", on);
    del(log, "accepted", "task_c", on);
    log.task("output", "task_c");
    handOff(log, "task_c", undefined, {
      source: "agent:worker",
      delegated_by: "agent:worker",
      delegated_to: "agent:other",
    });
    log.task("completed", "task_c", "agent:other");
    assert.equal(clean(log).liveTasks, 0);
  });

  it("escalated by either party, in its own name or the other's, before and after the handoff", () => {
    const log = new LogBuilder();
    offered(log);
    del(log, "escalated", "task_c", { to: "agent:chief" });
    del(log, "accepted", "task_c", { to: "agent:chief" });
    handOff(log, "task_c", "j1", { delegated_to: "agent:chief" });
    log.task("started", "task_c", "agent:chief");
    del(log, "escalated", "task_c", { by: "agent:chief", to: "agent:boss" });
    log.task("progress", "task_c", "agent:chief");
    del(log, "rejected", "task_c", { to: "agent:boss" });
    log.task("completed", "task_c", "agent:chief");
    assert.equal(clean(log).liveTasks, 1);
  });

  it("taken from a supervisor that does not answer, by whose the task is", () => {
    const log = new LogBuilder();
    offered(log);
    del(log, "accepted", "task_c");
    handOff(log, "task_c");
    const own = { from: "agent:worker", to: "agent:chief" };
    del(log, "escalated", "task_c", { to: "agent:ghost" });
    del(log, "escalated", "task_c", { ...own, to: "agent:idler" });
    del(log, "accepted", "task_c", { ...own, to: "agent:idler" });
    del(log, "escalated", "task_c", own);
    del(log, "accepted", "task_c", own);
    handOff(log, "task_c", undefined, {
      source: "agent:worker",
      delegated_by: "agent:worker",
      delegated_to: "agent:chief",
    });
    log.task("started", "task_c", "agent:chief");
    clean(log);
  });

  it("open to whoever accepts first, with the parties left out", () => {
    const log = new LogBuilder();
    const nobody = { delegated_to: undefined };
    offered(log, nobody);
    const unnamed = { delegated_by: undefined, delegated_to: undefined };
    del(log, "accepted", "task_c", { by: "agent:first", ...unnamed });
    handOff(log, "task_c", undefined, unnamed);
    log.task("started", "task_c", "agent:first");
    assert.equal(clean(log).liveTasks, 2);
  });

  it("expired in time, asked again in time, and timed out when accepted and not done", () => {
    const log = new LogBuilder();
    offered(log, { payload: { deadline: inMs(500), key: "k" } });
    log.wait(500);
    expire(log, "task_c");
    const again = { parent_task_id: "task_p", payload: { deadline: inMs(900) } };
    del(log, "requested", "task_c", again);
    del(log, "rejected", "task_c", { payload: { retry_after: inMs(600) } });
    log.wait(100);
    del(log, "requested", "task_c", again);
    del(log, "accepted", "task_c");
    log.wait(300).timeOut("task_c");
    del(log, "requested", "task_past", { payload: { deadline: inMs(-10) } });
    expire(log, "task_past");
    assert.equal(clean(log).liveTasks, 1);
  });

  it("children that were offered end with the cascade", () => {
    const log = new LogBuilder();
    accepted(log);
    del(log, "requested", "task_d", { parent_task_id: "task_p" });
    const plan = log.beginCancel("task_p", "agent:planner");
    log.step(plan, "task_d", plan.id);
    log.step(plan, "task_c", plan.id);
    log.finish(plan);
    assert.equal(clean(log).liveTasks, 0);
  });

  it("an echo of the runtime changes nothing", () => {
    const log = new LogBuilder();
    offered(log);
    del(log, "rejected", "task_c", { by: "harness:main" });
    del(log, "accepted", "task_other", { by: "harness:main" });
    del(log, "accepted", "task_c");
    clean(log);
  });

  it("a jti comes back when its token has long expired, and in another tenant", () => {
    const log = new LogBuilder();
    accepted(log);
    handOff(log, "task_c", "j1");
    log.wait(661_000);
    del(log, "requested", "task_d");
    del(log, "accepted", "task_d");
    const late = { jti: "j1", exp: log.at + 1_000 };
    handOff(log, "task_d", undefined, { handoff_proof: late });
    log.tenant = "other";
    del(log, "requested", "task_c");
    del(log, "accepted", "task_c");
    handOff(log, "task_c", undefined, { handoff_proof: late });
    clean(log);
  });

  it("that begins in the middle, when it is read leniently", () => {
    const log = new LogBuilder();
    accepted(log);
    log.task("started", "task_c");
    issue(log, "j1");
    handOff(log, "task_c", "j1");
    log.task("completed", "task_c");
    log.task("completed", "task_p", "agent:planner");
    const records = log.records();
    for (let cut = 1; cut < records.length; cut += 1) {
      const options = { domain: "tasks", stream: STREAM, lenient: true } as const;
      assert.deepEqual(checkLog(records.slice(cut), options).findings, [], `from ${cut}`);
    }
  });
});
