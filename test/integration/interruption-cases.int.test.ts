/**
 * Failures that users of similar systems reported, by the names of the reports, and traps in the
 * specification: here those of interruptions and compensations, against both services and a real server.
 * What these wrote is held to every rule at the end.
 */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Report } from "@harmovela/check";
import type { JsonObject } from "@harmovela/failure";
import { startNatsServer } from "@harmovela/testkit";
import { eventually } from "../chaos/deadline.ts";
import { Fleet } from "../chaos/fleet.ts";
import { Sender } from "../chaos/sender.ts";
import { cli } from "./cli-process.ts";
import {
  acknowledged,
  BOSS,
  codeOf,
  isExpiry,
  payloadOf,
  requested,
  resumed,
  Stack,
  saved,
  say,
  Tenant,
  WORKER,
} from "./interruption-support.ts";

const DAY_MS = 86_400_000;

describe("interruptions", () => {
  let stack: Stack;
  before(async () => {
    stack = await Stack.open();
  });
  after(() => stack[Symbol.asyncDispose]());

  test("H1 a grace of 25 days, or of a century, does not pass at once", async () => {
    const tenant = await stack.tenant("h1");
    const graces = { days: 25 * DAY_MS, edge: 2 ** 31, century: 36_525 * DAY_MS };
    for (const [id, grace_period_ms] of Object.entries(graces)) {
      await tenant.running(id);
      await tenant.given(requested(id, { grace_period_ms }));
    }
    await tenant.running("short");
    await tenant.given(requested("short", { grace_period_ms: 50 }));
    await tenant.until("task.failed", "short");
    for (const id of Object.keys(graces)) await tenant.given(acknowledged(id), saved(id));
    const expired = (await tenant.events("interruptions")).filter(({ envelope }) =>
      isExpiry(envelope),
    );
    assert.deepEqual(
      expired.map(({ envelope }) => envelope.task_id),
      ["short"],
    );
    await tenant.settled();
  });

  test("H3 a grace of nothing stops at once; what is no number of milliseconds is no grace", async () => {
    const tenant = await stack.tenant("h3");
    await tenant.running("t");
    for (const grace_period_ms of [-1, 1.5, "5000", null, 2 ** 53]) {
      await tenant.refused(requested("t", { grace_period_ms }), "invalid_envelope");
    }
    assert.deepEqual(await tenant.told("interruptions", "t"), []);
    await tenant.given(say("task.progress", "t"));
    const asked = requested("t", { grace_period_ms: 0 });
    await tenant.given(asked);
    const failed = await tenant.until("task.failed", "t");
    assert.equal(codeOf(failed), "interruption_timeout");
    const details = await tenant.refused(say("task.progress", "t"), "task_error");
    assert.deepEqual((details.winner as JsonObject).event_id, failed.id);
    const expired = await tenant.until("interruption.requested", "t", isExpiry);
    assert.equal(failed.causation_id, expired.id);
    assert.equal(expired.causation_id, asked.id);
    await tenant.settled();
  });

  test("H5 a worker whose clock is ten minutes off is neither late nor early", async () => {
    const tenant = await stack.tenant("h5");
    for (const [id, minutes] of [
      ["behind", -10],
      ["ahead", 10],
    ] as const) {
      const stamp = new Date(Date.now() + minutes * 60_000).toISOString();
      const off = { created_at: stamp, checkpoint_at: stamp };
      await tenant.running(id);
      await tenant.given(
        requested(id, { grace_period_ms: 60_000 }),
        acknowledged(id, off),
        saved(id, "ck", off),
        resumed(id, "ck"),
      );
      await tenant.given(requested(id, { grace_period_ms: 50 }), acknowledged(id, off));
      const failed = await tenant.until("task.failed", id);
      const details = await tenant.refused(saved(id, "late", off), "task_error");
      assert.equal((details.winner as JsonObject).event_id, failed.id);
    }
    await tenant.settled();
  });

  test("A13 says stopped and still runs: refused, counted and shown, and the task is over", async () => {
    const tenant = await stack.tenant("a13");
    await tenant.stopped("t");
    const details = await tenant.refused(say("task.progress", "t"), "task_error");
    const [asked] = await tenant.events("interruptions");
    assert.equal(details.interruption, asked?.envelope.id);
    assert.equal(details.policy, "save_and_stop");
    assert.equal(details.state, "saved");
    await tenant.given(resumed("t"), requested("t", { grace_period_ms: 50 }), acknowledged("t"));
    const failed = await tenant.until("task.failed", "t");
    for (const name of ["progress", "output", "completed"]) {
      const refusal = await tenant.refused(say(`task.${name}`, "t"), "task_error");
      assert.equal((refusal.winner as JsonObject).event_id, failed.id);
    }
    const status = stack.services[0]?.host.status();
    assert.ok(
      status?.alarms.some(({ alarm }) => alarm.includes(WORKER) && alarm.includes("a13")),
      JSON.stringify(status?.alarms),
    );
    await tenant.settled();
  });

  test("A15 a stopped child does not keep a cancel of its parent waiting", async () => {
    const tenant = await stack.tenant("a15");
    await tenant.running("p");
    await tenant.stopped("c", { by: WORKER, parent_task_id: "p" });
    await tenant.given(
      say("task.cancel.requested", "p", { by: BOSS, payload: { grace_period_ms: 600_000 } }),
    );
    const ended = await tenant.until("task.cancelled", "c");
    await tenant.given(say("task.cancelled", "p", { by: BOSS }));
    const closed = await tenant.until("interruption.cancelled", "c");
    assert.equal(closed.causation_id, ended.id);
    assert.equal(payloadOf(closed).task_state, "cancelled");
    await tenant.refused(resumed("c"), "task_error");
    await tenant.settled();
  });

  test("A15 nor does a cascade", async () => {
    const tenant = await stack.tenant("a15-at-once");
    await tenant.running("p");
    await tenant.stopped("c", { by: WORKER, parent_task_id: "p" });
    await tenant.given(say("task.cancelled", "p", { by: BOSS }));
    const ended = await tenant.until("task.cancelled", "c");
    assert.equal((await tenant.until("interruption.cancelled", "c")).causation_id, ended.id);
    await tenant.until("task.cancelled", "p");
    const order = (await tenant.events("tasks")).map(
      ({ envelope: { type, task_id } }) => `${type} ${task_id}`,
    );
    assert.deepEqual(order.slice(-2), ["task.cancelled c", "task.cancelled p"]);
    await tenant.settled();
  });

  test("trap 2: what a compensation undoes is said once", async () => {
    const tenant = await stack.tenant("trap2");
    await tenant.running("t");
    await tenant.given(say("task.completed", "t"));
    const texts = { reason: "wrong", description: "take it back" };
    const asked = (original_task: string) =>
      say("compensation.requested", "undo", {
        by: BOSS,
        compensation_id: "t",
        target: WORKER,
        payload: { ...texts, original_task },
      });
    await tenant.refused(asked("task_original_01"), "invalid_envelope");
    await tenant.given(asked("t"));
    const made = await tenant.until("task.submitted", "undo");
    assert.equal(made.compensation_id, "t");
    assert.equal(made.parent_task_id, undefined);
    await tenant.given(say("task.started", "undo"));
    await tenant.given(say("compensation.completed", "undo", { compensation_id: "t" }));
    await tenant.until("task.completed", "undo");
    await tenant.settled();
  });

  test("trap 9: a forced stop without a checkpoint is no fresh start", async () => {
    const tenant = await stack.tenant("trap9");
    await tenant.running("t");
    await tenant.given(requested("t", {}, { interruption_policy: "force_stop" }));
    await tenant.refused(say("task.progress", "t"), "task_error");
    const none = say("interruption.resumed", "t", { by: BOSS });
    const details = await tenant.refused(none, "checkpoint_missing");
    assert.deepEqual(details.checkpoints, []);
    const failed = await tenant.until("task.failed", "t");
    assert.equal(codeOf(failed), "checkpoint_missing");
    await tenant.refused(say("task.progress", "t"), "task_error");
    await tenant.settled();
  });

  test("trap 10: a task that has ended does not fail for want of a checkpoint", async () => {
    const tenant = await stack.tenant("trap10");
    await tenant.stopped("t");
    await tenant.given(say("task.cancelled", "t", { by: BOSS }));
    const details = await tenant.refused(resumed("t", "ck_none"), "task_error");
    const ended = await tenant.until("task.cancelled", "t");
    assert.deepEqual((details.winner as JsonObject).event_id, ended.id);
    await tenant.settled();
    const ends = (await tenant.told("tasks", "t")).filter((type) => /failed|cancelled/.test(type));
    assert.deepEqual(ends, ["task.cancelled"]);
  });

  test("what nobody submitted is neither interrupted nor undone", async () => {
    const tenant = await stack.tenant("unknown");
    const details = await tenant.refused(requested("t"), "task_error");
    assert.equal(details.task_id, "t");
    const payload = { reason: "r", description: "d" };
    const undo = say("compensation.requested", "u", { compensation_id: "t", payload });
    await tenant.refused(undo, "task_error");
    await tenant.settled();
  });
});

describe("the checker", () => {
  test("reads the logs of a live server together, and what it saved of them", async () => {
    await using stack = await Stack.open();
    const tenant = await stack.tenant("checked");
    await tenant.stopped("t");
    await tenant.refused(say("task.progress", "t"), "task_error");
    const folder = mkdtempSync(join(tmpdir(), "harmovela-check-"));
    try {
      const live = await cli(["check", "--server", stack.server.url, "--save", folder, "--json"]);
      assert.equal(live.stderr, "");
      const found = JSON.parse(live.stdout) as Record<string, Report>;
      assert.deepEqual(Object.keys(found), ["HV_LOG_TASKS", "HV_LOG_INTERRUPTIONS"]);
      assert.equal(found.HV_LOG_INTERRUPTIONS?.openInterruptions, 1);
      for (const { findings } of Object.values(found)) assert.deepEqual(findings, []);
      const files = Object.keys(found).map((stream) => join(folder, `${stream}.ndjson`));
      const [tasks = "", stops = ""] = files;
      // Work that is in the log although its task was stopped.
      writeFileSync(tasks, withWork(readFileSync(tasks, "utf8"), "t"));
      const broken = await cli(["check", "--file", tasks, "--file", stops]);
      assert.equal(broken.code, 1);
      assert.match(broken.stdout, /stopped-work: 1/);
      // What the other log says is not known then.
      assert.equal((await cli(["check", "--file", tasks])).code, 0);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

/** The saved log with its newest refusal turned into the work that it refuses. */
function withWork(log: string, id: string): string {
  const lines = log.trimEnd().split("\n");
  const last = lines.findLastIndex((line) => line.includes("event.rejected"));
  const record = JSON.parse(lines[last] ?? "") as { subject: string; body: string; seq: number };
  const { delivery } = JSON.parse(record.body) as { delivery: object };
  const work = { ...say("task.progress", id), delivery };
  record.subject = `hv.checked.log.tasks.${WORKER}.-.task.progress`;
  record.body = JSON.stringify(work);
  lines[last] = JSON.stringify(record);
  return `${lines.join("\n")}\n`;
}

describe("interruptions when processes die and clocks jump", () => {
  test("H7 killed with two dozen tasks to stop: each goes on, or failed for a true reason", async () => {
    await using server = await startNatsServer();
    await using sender = await Sender.open(server.url, "h7");
    const tenant = new Tenant(sender);
    await using coordinators = await Fleet.open({ url: server.url, leaseTtlMs: 600 });
    await using managers = await Fleet.open({
      domain: "interruptions",
      url: server.url,
      leaseTtlMs: 600,
    });
    const first = [coordinators.start(), managers.start()];
    for (const each of first) await each.until("leading");
    const ids = Array.from({ length: 24 }, (_, index) => `t${index}`);
    await Promise.all(ids.map((id) => tenant.running(id)));
    const grace_period_ms = 4_000;
    await Promise.all(ids.map((id) => tenant.given(requested(id, { grace_period_ms }))));
    const inTime = ids.slice(0, 12);
    await Promise.all(inTime.map((id) => tenant.given(acknowledged(id), saved(id))));
    for (const each of first) await each.kill();
    const second = [coordinators.start(), managers.start()];
    for (const each of second) await each.until("leading");
    for (const id of inTime) {
      await tenant.given(resumed(id), say("task.completed", id));
    }
    for (const id of ids.slice(12)) {
      assert.equal(codeOf(await tenant.until("task.failed", id)), "interruption_timeout");
    }
    await tenant.settled();
    assert.deepEqual([...coordinators.failures, ...managers.failures], []);
  });

  test("H9 a wall clock that jumps an hour ends no grace early, and makes none last", async () => {
    await using server = await startNatsServer();
    await using sender = await Sender.open(server.url, "h9");
    const tenant = new Tenant(sender);
    await using coordinators = await Fleet.open({ url: server.url, leaseTtlMs: 600 });
    await using managers = await Fleet.open({
      domain: "interruptions",
      url: server.url,
      leaseTtlMs: 600,
    });
    const hour = 3_600_000;
    await coordinators.start().until("leading");
    const manager = managers.start(undefined, [0, hour, -hour]);
    await manager.until("leading");
    for (const id of ["early", "late"]) {
      await tenant.running(id);
      await tenant.given(requested(id, { grace_period_ms: 60_000 }));
    }
    for (const jump of [1, 2]) {
      manager.signal("SIGUSR2");
      await eventually(10_000, `jump ${jump}`, () =>
        manager.wallClock.length > jump ? true : undefined,
      );
      const id = jump === 1 ? "early" : "late";
      await tenant.given(acknowledged(id), saved(id));
      await tenant.running(`short${jump}`);
      await tenant.given(requested(`short${jump}`, { grace_period_ms: 100 }));
      await tenant.until("task.failed", `short${jump}`);
    }
    await tenant.settled();
    assert.deepEqual([...coordinators.failures, ...managers.failures], []);
  });
});
