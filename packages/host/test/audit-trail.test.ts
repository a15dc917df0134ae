/** The record of what was judged, on a bus that loses answers: each entry once, whoever writes and whatever fails. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  AUDIT_STREAM,
  auditStreamSpec,
  type Bus,
  controlSubject,
  encodeControlBody,
  encodeFrame,
  logStreamSpec,
  logSubject,
  MemoryServer,
} from "@harmovela/bus";
import { type Envelope, formatInstant, type LogEntry } from "@harmovela/envelope";
import { FakeClock, pass, settled } from "@harmovela/testkit";
import pino from "pino";
import { Alarms } from "../src/alarms.ts";
import { AuditTrail } from "../src/audit/trail.ts";
import { Counters } from "../src/counters.ts";
import { assertRecorded, readAudit } from "./audit-log.ts";

const NOW = 1_700_000_000_000;
const TENANTS = ["acme", "beta", "a b"];

class World {
  readonly clock = new FakeClock();
  readonly server = new MemoryServer({
    clock: this.clock,
    now: () => NOW + this.clock.monotonic(),
  });
  readonly bus: Bus = this.server.connect({ name: "one" });
  readonly counters = new Counters("tasks");
  readonly alarms = new Alarms(pino({ level: "silent" }), this.counters);
  readonly entries: LogEntry[] = [];

  static async open(): Promise<World> {
    const world = new World();
    await world.run(world.bus.provision(logStreamSpec("tasks")));
    await world.run(world.bus.provision(auditStreamSpec()));
    await world.log(1, 1);
    return world;
  }

  run<T>(promise: Promise<T>): Promise<T> {
    return settled(this.clock, promise);
  }

  trail(
    position: number,
    bus: Bus = this.bus,
    pendingMax = 1_000,
    incarnation = "first",
  ): AuditTrail {
    const { clock, counters, alarms } = this;
    const parts = { bus, clock, counters, alarms, incarnation };
    return new AuditTrail({ ...parts, domain: "tasks", position, pendingMax });
  }

  /** Stores entries under the leadership `epoch`, which the first of them begins when it is new. */
  async log(count: number, epoch: number): Promise<LogEntry[]> {
    const made: LogEntry[] = [];
    for (let n = 0; n < count; n += 1) {
      const seq = this.entries.length + 1;
      const frame = { seq, cause: { in: seq }, at: NOW, epoch, prev: seq - 1, seen: {} };
      const tenant = TENANTS[seq % TENANTS.length] ?? "";
      const entry: LogEntry =
        seq === epoch
          ? { ...frame, tenant: "-", kind: "epoch", body: { epoch } }
          : { ...frame, tenant, kind: "event", envelope: said(seq) };
      const isEvent = entry.kind === "event";
      const subject = isEvent
        ? logSubject({ tenant, domain: "tasks", source: "agent:a", type: "task.progress" })
        : controlSubject(undefined, "tasks", "epoch");
      const data = isEvent
        ? Buffer.from(JSON.stringify(entry.envelope))
        : encodeControlBody(entry as never);
      this.entries.push(entry);
      made.push(entry);
      const stored = this.bus.store(subject, encodeFrame(entry), data);
      if (n === count - 1 || n % 50 === 0) await this.run(stored);
      else stored.catch(assert.fail);
    }
    return made;
  }

  async assertRecorded(): Promise<void> {
    assertRecorded(await this.run(readAudit(this.bus)), this.entries);
    assert.deepEqual(this.alarms.all(), []);
  }
}

const said = (n: number): Envelope => ({
  spec_version: "0.2",
  id: `evt_${n}`,
  type: "task.progress",
  source: "agent:a",
  created_at: formatInstant(NOW),
  task_id: `t${n}`,
  payload: { note: "not for the record" },
});

test("what was stored before, and what comes then; a second later at most, and nothing of a payload", async () => {
  const world = await World.open();
  await world.log(50, 1);
  const trail = world.trail(world.entries.length);
  for (const entry of await world.log(50, 1)) trail.stored(entry);
  await pass(world.clock, 1_100);
  await world.assertRecorded();
  const audit = await world.run(readAudit(world.bus));
  assert.doesNotMatch(JSON.stringify(audit), /not for the record/);
  await world.run(trail.close(1_000));
});

test("a leader that dies in the middle, again and again: its successor goes on, once and without a gap", async () => {
  const world = await World.open();
  let trail = world.trail(0);
  for (let round = 0; round < 30; round += 1) {
    const made = await world.log(7, 1);
    for (const entry of made) trail.stored(entry);
    // Some die with a batch that nobody has heard of, some while the server is writing it.
    await pass(world.clock, (round * 137) % 1_300);
    if (round % 2 === 0)
      world.server.faults.partition("one", round % 4 === 0 ? "lost" : "delivered");
    trail.abandon();
    world.server.faults.heal("one");
    trail = world.trail(world.entries.length);
  }
  await pass(world.clock, 20_000);
  await world.run(trail.close(5_000));
  await world.assertRecorded();
});

test("two that think they lead, and answers that are lost", async () => {
  const world = await World.open();
  let stores = 0;
  world.server.faults.onArrival = ({ stream }) => {
    if (stream !== AUDIT_STREAM) return undefined;
    stores += 1;
    if (stores % 5 === 0) return { kind: "unanswered" };
    return stores % 7 === 0 ? { kind: "lost" } : undefined;
  };
  const [one, other] = [world.trail(0), world.trail(0, world.server.connect({ name: "other" }))];
  for (let round = 0; round < 20; round += 1) {
    for (const entry of await world.log(10, 1)) {
      one.stored(entry);
      other.stored(entry);
    }
    await pass(world.clock, 900);
  }
  await pass(world.clock, 120_000);
  world.server.faults.onArrival = undefined;
  await world.run(one.close(60_000));
  await world.run(other.close(60_000));
  await world.assertRecorded();
});

test("more than it holds is read from the log when there is time", async () => {
  const world = await World.open();
  const trail = world.trail(0, world.bus, 100);
  await pass(world.clock, 10);
  world.server.faults.onArrival = ({ stream }) =>
    stream === AUDIT_STREAM ? { kind: "lost" } : undefined;
  for (const entry of await world.log(700, 1)) trail.stored(entry);
  world.server.faults.onArrival = undefined;
  for (const entry of await world.log(10, 1)) trail.stored(entry);
  await pass(world.clock, 30_000);
  await world.run(trail.close(5_000));
  await world.assertRecorded();
});

test("what is given up while a batch grows is not taken for recorded", async () => {
  const world = await World.open();
  const trail = world.trail(world.entries.length, world.bus, 100);
  await pass(world.clock, 100);
  const [first, ...others] = await world.log(150, 1);
  if (first !== undefined) trail.stored(first);
  await pass(world.clock, 100);
  for (const entry of others) trail.stored(entry);
  await pass(world.clock, 5_000);
  await world.run(trail.close(5_000));
  await world.assertRecorded();
});

test("a log that was made anew is recorded anew, whatever is recorded of the one before", async () => {
  const world = await World.open();
  await world.log(20, 1);
  const before = world.trail(world.entries.length);
  await pass(world.clock, 2_000);
  await world.run(before.close(1_000));
  const anew = world.trail(world.entries.length, world.bus, 1_000, "second");
  await pass(world.clock, 2_000);
  await world.run(anew.close(1_000));
  const twice = [...world.entries, ...world.entries];
  assertRecorded(await world.run(readAudit(world.bus)), twice);
});

test("an entry that is foreign to every fold is none of it", async () => {
  const world = await World.open();
  await world.log(3, 1);
  const forged = said(99);
  const headers = { ...encodeFrame({ cause: { in: 9 }, at: NOW, epoch: 1, prev: 1, seen: {} }) };
  const subject = logSubject({
    tenant: "acme",
    domain: "tasks",
    source: "agent:a",
    type: "task.x",
  });
  await world.run(world.bus.store(subject, headers, Buffer.from(JSON.stringify(forged))));
  const trail = world.trail(5);
  await pass(world.clock, 2_000);
  await world.run(trail.close(1_000));
  await world.assertRecorded();
});

test("what is gone from the log is said to be missing, and the rest is recorded", async () => {
  const world = await World.open();
  const trail = world.trail(world.entries.length);
  await pass(world.clock, 2_000);
  await world.run(trail.close(1_000));
  await world.log(20, 1);
  await world.run(world.bus.trim("HV_LOG_TASKS", 15));
  const later = world.trail(world.entries.length);
  await pass(world.clock, 2_000);
  await world.run(later.close(1_000));
  assertRecorded(await world.run(readAudit(world.bus)), world.entries.slice(14));
  assert.match(world.alarms.all()[0]?.alarm ?? "", /lacks the entries 2 to 14/);
});
