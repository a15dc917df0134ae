/** The coordinator is away while the manager asks it: each request waits for it in its intake, once. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { intakeStream } from "@harmovela/bus";
import type { Envelope } from "@harmovela/envelope";
import { startNatsServer } from "@harmovela/testkit";
import { untilBothSettled } from "./both-logs.ts";
import { eventually } from "./deadline.ts";
import { Fleet } from "./fleet.ts";
import { envelope, Sender } from "./sender.ts";
import { eventsOf, readStream } from "./stored-log.ts";

const BOSS = "agent:boss";
const WORKER = "agent:worker";
const MANAGER = "service:interruption-manager";
/** Of each kind: graces that end, interruptions that are cancelled, tasks that are undone. */
const TASKS = 20;
const DEADLINE_MS = 30_000;
const decoder = new TextDecoder();

test("a coordinator that is down: each request is in its intake once, and comes true", async (t) => {
  await using server = await startNatsServer();
  const { url } = server;
  await using sender = await Sender.open(url, "acme");
  await using coordinators = await Fleet.open({ url, leaseTtlMs: 600 });
  await using managers = await Fleet.open({ url, leaseTtlMs: 600, domain: "interruptions" });
  const first = coordinators.start();
  await first.until("leading");
  await managers.start().until("leading");
  const say = async (source: string, type: string, id: string, more = {}): Promise<void> => {
    const answer = await sender.send(envelope(source, type, id, more));
    assert.equal(answer.type, "event.acknowledged", `${type} ${id} ${JSON.stringify(answer)}`);
  };
  const all = (prefix: string) => Array.from({ length: TASKS }, (_, index) => `${prefix}-${index}`);
  const [silent, unwanted, done] = [all("silent"), all("unwanted"), all("done")];
  await Promise.all(
    [...silent, ...unwanted, ...done].map(async (id) => {
      await say(BOSS, "task.submitted", id, { target: WORKER });
      await say(WORKER, "task.started", id);
    }),
  );
  await Promise.all(done.map((id) => say(WORKER, "task.completed", id)));
  await Promise.all(
    unwanted.map(async (id) => {
      await say(BOSS, "interruption.requested", id, { interruption_policy: "drain_then_stop" });
      await say(WORKER, "interruption.acknowledged", id);
    }),
  );
  await first.kill();
  const downAt = Date.now();
  const texts = { reason: "wrong", description: "take it back" };
  await Promise.all([
    ...silent.map((id) =>
      say(BOSS, "interruption.requested", id, { payload: { grace_period_ms: 200 } }),
    ),
    ...unwanted.map((id) =>
      say(BOSS, "interruption.cancelled", id, { payload: { reason: "not needed" } }),
    ),
    ...done.map((id) =>
      say(BOSS, "compensation.requested", `undo-${id}`, { compensation_id: id, payload: texts }),
    ),
  ]);
  const asked = await eventually(DEADLINE_MS, "everything is asked for", async () => {
    const intake = await readStream(sender.bus, intakeStream("tasks"));
    const requests = intake
      .map(({ data }) => JSON.parse(textOf(data)) as Envelope)
      .filter(({ source }) => source === MANAGER);
    return requests.length >= 3 * TASKS ? requests : undefined;
  });
  // The manager is not held up by that.
  const answer = await sender.send(envelope(BOSS, "interruption.requested", "nobody"));
  assert.equal(answer.payload.error?.code, "task_error");
  coordinators.start();
  const { tasks } = await untilBothSettled(sender.bus, DEADLINE_MS);
  const downMs = Date.now() - downAt;
  const ids = (await readStream(sender.bus, intakeStream("tasks")))
    .map(({ data }) => JSON.parse(textOf(data)) as Envelope)
    .filter(({ source }) => source === MANAGER)
    .map(({ id }) => id);
  assert.equal(new Set(ids).size, ids.length, "a request is in the intake twice");
  assert.equal(ids.length, 3 * TASKS);
  assert.deepEqual(new Set(asked.map(({ id }) => id)), new Set(ids));
  const granted = eventsOf(tasks).filter(({ envelope: { source } }) => source === MANAGER);
  assert.deepEqual(
    new Set(granted.map(({ envelope: { type, task_id } }) => `${type} ${task_id}`)),
    new Set([
      ...silent.map((id) => `task.failed ${id}`),
      ...unwanted.map((id) => `task.cancelled ${id}`),
      ...done.map((id) => `task.submitted undo-${id}`),
    ]),
  );
  assert.equal(granted.length, 3 * TASKS);
  assert.deepEqual([...coordinators.failures, ...managers.failures], []);
  t.diagnostic(`${server.version}: ${ids.length} requests over ${downMs} ms without a coordinator`);
});

const textOf = (data: Uint8Array | string): string =>
  typeof data === "string" ? data : decoder.decode(data);
