/** A log with a limit: before it is full nothing new is begun, and what was begun ends (architecture, section 4). */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type JetStreamBus, logStream, logStreamSpec } from "@harmovela/bus";
import type { Decider, Envelope } from "@harmovela/envelope";
import { type JsonObject, reject } from "@harmovela/failure";
import { startNatsServer } from "@harmovela/testkit";
import { hurriedClock } from "./altered.ts";
import { type CounterState, createCounterDecider } from "./counter-decider.ts";
import { envelope, eventually, openCounter, openSender, readLog, type Sender } from "./harness.ts";

const MAX_BYTES = 400_000;
const SHARE = 0.8;
/** A report of so many bytes. */
const report = () => envelope("task.progress", { payload: { text: "x".repeat(4_000) } });

async function bytesOf(bus: JetStreamBus): Promise<number> {
  return (await bus.streamState(logStream("tasks")))?.bytes ?? 0;
}

function failureOf({ payload }: Envelope): JsonObject {
  const { error } = payload as { error: JsonObject };
  return error;
}

async function fill(sender: Sender, upTo: number): Promise<void> {
  while ((await bytesOf(sender.bus)) < upTo) {
    assert.equal((await sender.send(report())).type, "event.acknowledged");
  }
}

test("from four fifths on nothing new is begun; what was begun goes on and ends; room lets in again", async () => {
  await using server = await startNatsServer();
  await using sender = await openSender(server.url);
  await sender.bus.provision(logStreamSpec("tasks", { maxBytes: MAX_BYTES }));
  await using counter = await openCounter(server.url, { clock: hurriedClock });
  await counter.host.untilLeading();
  const begin = () => envelope("task.submitted", { task_id: "t" });
  const begun = begin();
  assert.equal((await sender.send(begun)).type, "event.acknowledged");
  await fill(sender, MAX_BYTES * SHARE);
  const { alarms } = counter.host.status();

  const late = begin();
  const refusal = await sender.send(late);
  assert.equal(refusal.type, "event.rejected");
  const { code, retryable, details } = failureOf(refusal);
  assert.equal(code, "internal_error");
  assert.equal(retryable, true);
  assert.equal((details as JsonObject).reason, "log_full");
  assert.ok(Number((details as JsonObject).retry_after_ms) > 0);
  assert.ok(alarms.length === 0 || alarms.some(({ alarm }) => alarm.includes("room")));
  assert.ok(counter.host.status().alarms.some(({ alarm }) => alarm.includes("room")));

  // A flood of such refusals takes no room worth mentioning.
  const before = await bytesOf(sender.bus);
  for (let count = 0; count < 100; count += 1) {
    assert.equal((await sender.send(begin())).type, "event.rejected");
  }
  assert.ok((await bytesOf(sender.bus)) - before < 20_000);
  assert.equal(counter.host.status().counters.rejected, 101);

  // What services ask for follows from what was judged; and what was judged before is told again.
  const asked = envelope("task.submitted", { source: "service:other" });
  assert.equal((await sender.send(asked)).type, "event.acknowledged");
  const again = await sender.send(begun);
  assert.equal((again.payload as JsonObject).duplicate, true);

  // What was begun goes on, and so does what the service owes: a plan of three steps.
  assert.equal((await sender.send(report())).type, "event.acknowledged");
  assert.equal((await sender.send(envelope("task.completed"))).type, "event.acknowledged");
  await eventually(async () => {
    const log = await readLog(sender.bus);
    const steps = log.filter(({ cause, kind }) => kind === "event" && "owed" in cause);
    return steps.length >= 4 ? true : undefined;
  });

  // What the operator gives room to is judged, under the id that was refused.
  await sender.bus.nats.request(
    `$JS.API.STREAM.UPDATE.${logStream("tasks")}`,
    JSON.stringify({ ...(await configOf(sender.bus)), max_bytes: 10 * MAX_BYTES }),
  );
  await eventually(async () => {
    const { type } = await sender.send(late);
    return type === "event.acknowledged" ? true : undefined;
  });
});

test("who is refused for another reason is in the log, whatever the refusal says", async () => {
  await using server = await startNatsServer();
  await using sender = await openSender(server.url);
  const base = createCounterDecider();
  const decider: Decider<CounterState> = {
    ...base,
    decide: () => ({ reject: reject("task_error", "no", { reason: "log_full" }) }),
  };
  await using counter = await openCounter(server.url, { decider });
  await counter.host.untilLeading();
  const refused = envelope("task.submitted");
  assert.equal((await sender.send(refused)).type, "event.rejected");
  const log = await readLog(sender.bus);
  const causes = log.flatMap((entry) =>
    entry.kind === "event" ? [entry.envelope.causation_id] : [],
  );
  assert.deepEqual(causes, [refused.id]);
});

test("a log that an operator gave a limit to is taken as it is", async () => {
  await using server = await startNatsServer();
  await using sender = await openSender(server.url);
  await sender.bus.provision(logStreamSpec("tasks", { maxBytes: MAX_BYTES }));
  await using counter = await openCounter(server.url);
  await counter.host.untilLeading();
  assert.equal((await sender.bus.streamState(logStream("tasks")))?.maxBytes, MAX_BYTES);
  await assert.rejects(
    sender.bus.provision(logStreamSpec("tasks", { maxBytes: 2 * MAX_BYTES })),
    { code: "stream_mismatch" },
    "who asks for another one is told",
  );
});

async function configOf(bus: JetStreamBus): Promise<JsonObject> {
  const answer = await bus.nats.request(`$JS.API.STREAM.INFO.${logStream("tasks")}`);
  return answer.json<{ config: JsonObject }>().config;
}
