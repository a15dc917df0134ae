/** Field case H9: the broker's clock is set forward and back while timers run (architecture, section 5). */
import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeEntry, HEADER, intakeSubject, logStream, MemoryServer } from "@harmovela/bus";
import { domainOf, type LogEntry } from "@harmovela/envelope";
import { FakeClock, pass, settled } from "@harmovela/testkit";
import pino from "pino";
import { openHost } from "../src/index.ts";
import { COUNTER_SERVICE, createCounterDecider } from "./counter-decider.ts";
import { envelope, TENANT } from "./harness.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const START = Date.parse("2026-11-30T10:00:00Z");

class Scene {
  readonly clock = new FakeClock();
  step = 0;
  readonly server = new MemoryServer({
    clock: this.clock,
    now: () => START + Math.floor(this.clock.monotonic()) + this.step,
  });
  readonly bus = this.server.connect({ name: "sender" });

  pass(ms: number): Promise<void> {
    return pass(this.clock, ms);
  }

  /** Another replica leads; nobody closes it, as its time stands still with the scene's. */
  async lead(): Promise<{ kill: () => void }> {
    const clock = this.clock.openProcess();
    const connect = (name: string) => this.server.connect({ name, clock, uplink: clock });
    const host = await settled(
      this.clock,
      openHost({
        domain: "tasks",
        service: COUNTER_SERVICE,
        version: "1",
        instance: `i${this.clock.monotonic()}`,
        decider: createCounterDecider(),
        settings: {},
        observes: [],
        reads: {},
        writer: connect("writer"),
        answerer: connect("answerer"),
        clock,
        logger: pino({ level: "silent" }),
        replicas: 1,
        replyPrefix: () => "_INBOX.",
        retentionMs: 30 * 24 * HOUR_MS,
        leaseTtlMs: 1_500,
      }),
    );
    await settled(this.clock, host.untilLeading());
    return { kill: () => clock.kill() };
  }

  async submit(task: string, timeoutMs: number): Promise<void> {
    const sent = envelope("task.submitted", { task_id: task, payload: { timeout_ms: timeoutMs } });
    const { type, source } = sent;
    const subject = intakeSubject({ tenant: TENANT, domain: domainOf(type), source, type });
    const data = new TextEncoder().encode(JSON.stringify(sent));
    await settled(this.clock, this.bus.store(subject, { [HEADER.replyTo]: "_INBOX.x" }, data));
    await this.pass(100);
  }

  async log(): Promise<LogEntry[]> {
    const stream = logStream("tasks");
    const state = await settled(this.clock, this.bus.streamState(stream));
    const log: LogEntry[] = [];
    for (let seq = 1; seq <= (state?.lastSeq ?? 0); seq += 1) {
      const message = await settled(this.clock, this.bus.read(stream, seq));
      const entry = message && decodeEntry(message);
      if (entry) log.push(entry);
    }
    return log;
  }

  async timedOut(): Promise<string[]> {
    return (await this.log()).flatMap((entry) =>
      entry.kind === "event" && entry.envelope.type === "task.timed_out"
        ? [String(entry.envelope.task_id)]
        : [],
    );
  }
}

test("H9: set back by an hour, no timer fires early and none stands still", async () => {
  const scene = new Scene();
  await scene.lead();
  await scene.submit("before", 30 * MINUTE_MS);
  scene.step = -HOUR_MS;
  await scene.pass(5 * MINUTE_MS);
  await scene.submit("after", 10 * MINUTE_MS);
  await scene.pass(9 * MINUTE_MS);
  assert.deepEqual(await scene.timedOut(), [], "nine minutes are not ten");
  await scene.pass(2 * MINUTE_MS);
  assert.deepEqual(await scene.timedOut(), ["after"]);
  // It may be late by the five minutes in which nothing was heard, and by no more.
  await scene.pass(20 * MINUTE_MS);
  assert.deepEqual(await scene.timedOut(), ["after", "before"]);
});

test("H9: a leader that takes over after the step goes on from what was decided", async () => {
  const scene = new Scene();
  const first = await scene.lead();
  await scene.submit("long", 20 * MINUTE_MS);
  first.kill();
  scene.step = -HOUR_MS;
  await scene.lead();
  await scene.pass(5 * MINUTE_MS);
  await scene.submit("short", 10 * MINUTE_MS);
  await scene.pass(9 * MINUTE_MS);
  assert.deepEqual(await scene.timedOut(), []);
  await scene.pass(2 * MINUTE_MS);
  assert.deepEqual(await scene.timedOut(), ["short"]);
  await scene.pass(10 * MINUTE_MS);
  assert.deepEqual(await scene.timedOut(), ["short", "long"]);
});

test("H9: set back and right again, no timer fires early", async () => {
  const scene = new Scene();
  await scene.lead();
  await scene.submit("before", 30 * MINUTE_MS);
  scene.step = -HOUR_MS;
  await scene.submit("meanwhile", 20 * MINUTE_MS);
  await scene.pass(MINUTE_MS);
  scene.step = 0;
  await scene.submit("after", 10 * MINUTE_MS);
  await scene.pass(9 * MINUTE_MS);
  assert.deepEqual(await scene.timedOut(), []);
  await scene.pass(2 * MINUTE_MS);
  assert.deepEqual(await scene.timedOut(), ["after"]);
  await scene.pass(20 * MINUTE_MS);
  assert.deepEqual(await scene.timedOut(), ["after", "meanwhile", "before"]);
});

test("H9: set forward and back again, time in the log never falls and timers go on", async () => {
  const scene = new Scene();
  await scene.lead();
  await scene.submit("believed", 30 * MINUTE_MS);
  scene.step = HOUR_MS;
  await scene.submit("ahead", 10 * MINUTE_MS);
  assert.deepEqual(await scene.timedOut(), ["believed"], "a clock set forward is believed");
  scene.step = 0;
  await scene.submit("back", 10 * MINUTE_MS);
  await scene.pass(9 * MINUTE_MS);
  assert.deepEqual(await scene.timedOut(), ["believed"]);
  await scene.pass(2 * MINUTE_MS);
  assert.deepEqual(await scene.timedOut(), ["believed", "ahead", "back"]);
  const times = (await scene.log()).map(({ at }) => at);
  assert.deepEqual(
    times,
    times.toSorted((a, b) => a - b),
  );
});
