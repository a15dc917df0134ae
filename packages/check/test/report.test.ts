import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { HEADER } from "@harmovela/bus";
import { checkLog, createChecker, formatRecord, parseRecord, recordOf } from "../src/index.ts";
import { LogBuilder, STREAM } from "./log-builder.ts";

const OPTIONS = { domain: "tasks", stream: STREAM } as const;

describe("report", () => {
  it("keeps a bounded number of findings and counts the rest", () => {
    const log = new LogBuilder();
    for (let count = 0; count < 20; count += 1) log.submit("task_a");
    const report = checkLog(log.records(), { ...OPTIONS, maxFindings: 5 });
    assert.equal(report.findings.length, 5);
    assert.equal(report.findingsBeyond, 14);
    assert.equal(report.findingsByRule["task-reused"], 19);
  });

  it("gives each entry's findings when it is pushed, beyond the bound as well", () => {
    const log = new LogBuilder();
    for (let count = 0; count < 3; count += 1) log.submit("task_a");
    const checker = createChecker({ ...OPTIONS, maxFindings: 1 });
    const found = log.records().map((record) => checker.push(record).map(({ rule }) => rule));
    assert.deepEqual(found, [[], [], ["task-reused"], ["task-reused"]]);
  });

  it("names the task", () => {
    const log = new LogBuilder();
    log.task("started", "task_a");
    const [finding] = checkLog(log.records(), OPTIONS).findings;
    assert.equal(finding?.taskId, "task_a");
    assert.equal(finding?.subject, "hv.acme.log.tasks.agent:worker.-.task.started");
  });

  it("demands the end of plans only of a settled log", () => {
    const log = new LogBuilder();
    log.running("task_p");
    log.running("task_c", { parent: "task_p" });
    log.beginCancel("task_p");
    const report = checkLog(log.records(), OPTIONS);
    assert.deepEqual(report.findings, []);
    assert.equal(report.plansOpen, 1);
  });
});

describe("records", () => {
  it("go through a file line by line", () => {
    const log = new LogBuilder();
    log.submit("task_ü", { payload: { note: "a\nb" } });
    const records = log.records();
    assert.deepEqual(records.map(formatRecord).map(parseRecord), records);
  });

  it("that are none are refused", () => {
    const whole = { seq: 1, time: 2, subject: "s", headers: {}, body: "" };
    assert.ok(parseRecord(JSON.stringify(whole)));
    const faults = [{ seq: 1.5 }, { time: "2" }, { subject: 1 }, { headers: [] }, { body: {} }];
    for (const fault of [...faults, { headers: { "Hv-At": 1 } }]) {
      assert.equal(parseRecord(JSON.stringify({ ...whole, ...fault })), undefined);
    }
    for (const line of ["", "{", "null", "[]"]) assert.equal(parseRecord(line), undefined);
  });

  it("come from a bus with the headers that are set", () => {
    const headers = new Map([[HEADER.epoch, "1"]]);
    const record = recordOf({
      seq: 1,
      time: 2,
      subject: "hv.-.ctl.tasks.epoch",
      data: new Uint8Array([1]),
      header: (name) => headers.get(name as "Hv-Epoch") ?? "",
    });
    assert.deepEqual(record.headers, { "Hv-Epoch": "1" });
  });
});
