/** Logs that keep every rule: the checker finds nothing. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { checkLog } from "../src/index.ts";
import { clean } from "./clean.ts";
import { LogBuilder, STREAM } from "./log-builder.ts";

const failure = { code: "task_error", message: "it broke", retryable: false };

describe("a good log", () => {
  it("of one task through every state", () => {
    const log = new LogBuilder();
    log.submit("task_a", { target: "agent:worker" });
    for (const name of ["accepted", "started", "blocked", "started", "progress", "progress"]) {
      log.wait(10).task(name, "task_a");
    }
    for (const name of ["output", "output", "blocked", "progress", "completed"]) {
      log.task(name, "task_a", "agent:worker", { payload: { state: name } });
    }
    const report = clean(log);
    assert.equal(report.tasks, 1);
    assert.equal(report.liveTasks, 0);
    assert.equal(report.events, 12);
  });

  it("of a task id that is only in the payload", () => {
    const log = new LogBuilder();
    log.send("task.submitted", "agent:boss", { payload: { task_id: "task_a" } });
    log.send("task.started", "agent:worker", { payload: { task_id: "task_a" } });
    assert.equal(clean(log).liveTasks, 1);
  });

  it("of a cascade over a chain of 1,000 below its root", () => {
    const log = new LogBuilder();
    log.running("task_0");
    for (let depth = 1; depth <= 1_000; depth += 1) {
      log.running(`task_${depth}`, { parent: `task_${depth - 1}` });
    }
    const plan = log.beginCancel("task_0");
    const ends = new Map([["task_0", plan.id]]);
    for (let depth = 1; depth <= 1_000; depth += 1) ends.set(`task_${depth}`, log.derivedId());
    for (let depth = 1_000; depth > 0; depth -= 1) {
      const id = ends.get(`task_${depth}`);
      log.step(plan, `task_${depth}`, ends.get(`task_${depth - 1}`) ?? "", { id });
    }
    log.finish(plan);
    const report = clean(log);
    assert.equal(report.liveTasks, 0);
    assert.equal(report.plansDischarged, 1);
  });

  it("of a failing parent whose leaves end by themselves in mid cascade", () => {
    const log = new LogBuilder();
    log.running("task_p");
    log.running("task_c", { parent: "task_p" });
    log.running("task_g", { parent: "task_c" });
    log.running("task_d", { parent: "task_p" });
    const payload = { task_id: "task_p", error: failure };
    const plan = log.begin(
      log.draft("task.failed", "agent:worker", { task_id: "task_p", payload }),
    );
    log.task("completed", "task_d");
    log.task("completed", "task_g");
    log.task("completed", "task_c");
    log.finish(plan);
    assert.equal(clean(log).liveTasks, 0);
  });

  it("of a deadline with and without descendants, over a change of leaders", () => {
    const log = new LogBuilder();
    log.running("task_p", { payload: { timeout_ms: 200 } });
    log.running("task_c", { parent: "task_p" });
    log.submit("task_a", { payload: { deadline_ms: 300, timeout_ms: 3_155_760_000_000 } });
    log.wait(200).timeOut("task_p");
    const envelope = log.items.pop()?.envelope;
    assert.ok(envelope);
    log.begin(envelope, "owed:deadline:task_p");
    log.epoch();
    log.step(envelope, "task_c", envelope.id);
    log.epoch();
    log.finish(envelope);
    log.wait(100).timeOut("task_a");
    const report = clean(log);
    assert.equal(report.liveTasks, 0);
    assert.equal(report.control.epoch, 3);
  });

  it("of an outer plan that waits for an inner one", () => {
    const log = new LogBuilder();
    log.running("task_p");
    log.running("task_c", { parent: "task_p" });
    log.running("task_g", { parent: "task_c" });
    log.running("task_d", { parent: "task_p" });
    const inner = log.beginCancel("task_c", "agent:worker");
    const outer = log.beginCancel("task_p");
    log.step(outer, "task_d", outer.id);
    log.step(inner, "task_g", inner.id);
    log.finish(inner);
    log.finish(outer);
    assert.equal(clean(log).plansDischarged, 2);
  });

  it("of a gentle cancel: asked root first, work goes on, the rest is forced leaves first", () => {
    const log = new LogBuilder();
    log.running("task_p");
    log.running("task_c", { parent: "task_p" });
    log.running("task_g", { parent: "task_c" });
    log.submit("task_idle", { parent: "task_p" });
    log.running("task_d", { parent: "task_p" });
    const payload = { task_id: "task_p", grace_period_ms: 1_000 };
    const plan = log.task("cancel.requested", "task_p", "agent:boss", { payload });
    log.ask(plan, "task_c");
    log.ask(plan, "task_g");
    log.gentleStep(plan, "task_idle", false);
    log.ask(plan, "task_d");
    log.wait(500).task("progress", "task_g");
    log.task("completed", "task_d");
    const [endOfC, endOfP] = [log.derivedId(), log.derivedId()];
    log.wait(500).gentleStep(plan, "task_g", true, { cause: endOfC });
    log.gentleStep(plan, "task_c", true, { cause: endOfP, id: endOfC });
    log.gentleStep(plan, "task_p", true, { id: endOfP });
    assert.equal(clean(log).liveTasks, 0);
  });

  it("of a gentle cancel with grace 0, one by default, and one that a hard cancel overtakes", () => {
    const log = new LogBuilder();
    for (const [id, grace] of [["task_0", 0] as const, ["task_1", undefined] as const]) {
      log.running(id);
      const payload = { task_id: id, grace_period_ms: grace };
      const plan = log.task("cancel.requested", id, "agent:boss", { payload });
      log.wait(grace ?? 5_000).gentleStep(plan, id, true);
    }
    log.running("task_p");
    log.running("task_c", { parent: "task_p" });
    const gentle = log.task("cancel.requested", "task_p", "agent:boss");
    log.ask(gentle, "task_c");
    const hard = log.beginCancel("task_p");
    log.step(hard, "task_c", hard.id);
    log.finish(hard);
    assert.equal(clean(log).liveTasks, 0);
  });

  it("with refusals, positions, counts, foreign messages and several tenants with equal ids", () => {
    const log = new LogBuilder();
    log.foreign();
    log.submit("task_p");
    log.foreign({ "Hv-Epoch": "7" });
    log.refuse("evt_refused");
    log.refuse("evt_later", {
      payload: { error: { code: "internal_error", message: "busy", retryable: true } },
    });
    log.send("environment.observed", "sensor:s", { id: "evt_later" });
    log.control("position", { intake: log.intake });
    log.control("refused", { counts: { "agent:noisy": 4_000 }, total: 4_000 });
    log.control("intake_gap", { from: 10, to: 20 });
    log.control("skipped", { seq: 2 });
    log.tenant = "other";
    log.submit("task_p");
    log.send("event.rejected", "agent:worker", {
      causation_id: "evt_1",
      payload: { error: { code: "task_error", message: "no", retryable: false } },
    });
    const report = clean(log);
    assert.equal(report.foreign, 2);
    assert.equal(report.refusals, 2);
    assert.equal(report.tenants, 2);
    assert.equal(report.tasks, 2);
  });

  it("in which another service asks for a cancel", () => {
    const log = new LogBuilder();
    log.running("task_a", { target: "agent:worker" });
    log.send("task.cancelled", "service:interruption-manager", {
      id: log.derivedId(),
      task_id: "task_a",
    });
    assert.equal(clean(log).liveTasks, 0);
  });

  it("in which an obligation of a plan failed: the plan need not end", () => {
    const log = new LogBuilder();
    log.running("task_p");
    log.running("task_c", { parent: "task_p" });
    const plan = log.beginCancel("task_p");
    log.push({
      cause: `owed:${plan.id}`,
      kind: "obligation_failed",
      body: { id: plan.id, reason: "too large" },
    });
    log.task("progress", "task_c");
    assert.equal(clean(log).plansOpen, 0);
  });

  it("in which an id comes back after the memory that is promised", () => {
    const log = new LogBuilder();
    log.send("environment.observed", "sensor:s", { id: "evt_same" });
    log.wait(24 * 3_600_000).send("environment.observed", "sensor:s", { id: "evt_same" });
    clean(log);
  });

  it("whose begun envelope carries stamps that the sender made up", () => {
    const log = new LogBuilder();
    log.running("task_p");
    log.running("task_c", { parent: "task_p" });
    const plan = log.begin(
      log.draft("task.cancelled", "agent:boss", {
        task_id: "task_p",
        delivery: { cursor: "mine:1", mode: "replayable" },
      }),
    );
    log.step(plan, "task_c", plan.id);
    log.finish(plan);
    clean(log);
  });

  it("of another domain: its stamps and frames, no task rules", () => {
    const log = new LogBuilder();
    const fact = { fact_id: "fact_1", value: 1 };
    log.send(
      "memory.fact.added",
      "agent:a",
      { payload: fact },
      { subject: "hv.acme.log.beliefs.agent:a.-.memory.fact.added" },
    );
    const records = log.records().map((record) => ({
      ...record,
      subject: record.subject.replace(".ctl.tasks.", ".ctl.beliefs."),
    }));
    const report = checkLog(records, { domain: "beliefs", stream: STREAM });
    assert.deepEqual(report.findings, []);
    assert.equal(report.events, 1);
  });

  it("that begins in the middle, when it is read leniently", () => {
    const log = new LogBuilder();
    log.running("task_p");
    log.running("task_c", { parent: "task_p" });
    log.task("progress", "task_c");
    log.submit("task_g", { parent: "task_c" });
    log.task("cancelled", "task_g", "agent:boss");
    log.task("completed", "task_c");
    log.task("completed", "task_p");
    const tail = log.records().slice(4);
    const options = { domain: "tasks", stream: STREAM } as const;
    const report = checkLog(tail, { ...options, lenient: true });
    assert.deepEqual(report.findings, []);
    assert.equal(report.foreign, 0);
    assert.equal(report.liveTasks, 0);
    const strict = checkLog(tail, options);
    assert.equal(strict.foreign, tail.length);
    assert.equal(strict.findings[0]?.rule, "record-order");
  });
});
