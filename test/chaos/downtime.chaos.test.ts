/** A service that is down while answers come in: what was in time counts (architecture, section 5). */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as pass } from "node:timers/promises";
import { startNatsServer } from "@harmovela/testkit";
import { eventually } from "./deadline.ts";
import { Fleet } from "./fleet.ts";
import { envelope, Sender } from "./sender.ts";
import { assertGreen, eventsOf, readRecords } from "./stored-log.ts";

const TENANT = "acme";
const WORKERS = 40;
const TIMEOUT_MS = 3_000;

test("down for three timeouts: only the workers that were silent time out, once each", async (t) => {
  await using server = await startNatsServer();
  await using sender = await Sender.open(server.url, TENANT);
  await using fleet = await Fleet.open({ url: server.url, leaseTtlMs: 600 });
  const tasks = Array.from({ length: WORKERS }, (_, number) => `task-${number}`);
  const first = fleet.start();
  await first.until("leading");
  // The first of many pays for connections and code that is not warm.
  await sender.send(envelope("agent:planner", "task.submitted", "warm"));
  await sender.send(envelope("agent:planner", "task.cancelled", "warm"));
  const payload = { timeout_ms: TIMEOUT_MS };
  const receipts = await Promise.all(
    tasks.map(async (task) => {
      const submission = envelope("agent:planner", "task.submitted", task, { payload });
      const receivedAt = await sender.post(submission);
      await sender.post(envelope(`agent:${task}`, "task.started", task));
      return receivedAt;
    }),
  );
  await eventually(TIMEOUT_MS, "all have started", async () => {
    const events = eventsOf(await readRecords(sender.bus));
    const started = events.filter(({ envelope: { type } }) => type === "task.started");
    return started.length === WORKERS ? true : undefined;
  });
  await first.kill();
  const reports = new Map<string, number>();
  await Promise.all(
    tasks.map(async (task, number) => {
      if (number % 2 === 1) return;
      reports.set(task, await sender.post(envelope(`agent:${task}`, "task.completed", task)));
    }),
  );
  assert.equal(reports.size, WORKERS / 2);
  assert.ok(
    [...reports].every(([task, at]) => at < (receipts[tasks.indexOf(task)] ?? 0) + TIMEOUT_MS),
    "the reports were in time",
  );
  // The outage itself.
  await pass(3 * TIMEOUT_MS);
  const downUntil = performance.now();
  fleet.start();
  const ends = await eventually(20_000, "every task has ended", async () => {
    const events = eventsOf(await readRecords(sender.bus)).filter(
      ({ envelope: { type, task_id } }) =>
        /^task\.(completed|timed_out)$/.test(type) && task_id !== "warm",
    );
    return events.length >= WORKERS ? events : undefined;
  });
  const endedMs = performance.now() - downUntil;
  const records = await readRecords(sender.bus);
  const report = assertGreen(records);
  assert.equal(report.liveTasks, 0);
  assert.equal(ends.length, WORKERS);
  for (const task of tasks) {
    const own = ends.filter(({ envelope: { task_id } }) => task_id === task);
    assert.deepEqual(
      own.map(({ envelope: { type } }) => type),
      [reports.has(task) ? "task.completed" : "task.timed_out"],
      task,
    );
  }
  t.diagnostic(
    `${server.version}: ${reports.size} in time, ${WORKERS - reports.size} timed out, ` +
      `all ended ${(endedMs / 1000).toFixed(1)} s after the start`,
  );
});
