/** What only the memory bus can show: the same calls give the same run, and faults do what they say. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type AppendFailure,
  type ArrivalFault,
  type Bus,
  logStreamSpec,
  logSubject,
  type MemoryBus,
  MemoryServer,
} from "@harmovela/bus";
import { FakeClock } from "@harmovela/testkit";

const spec = logStreamSpec("tasks");
const subject = logSubject({ tenant: "acme", domain: "tasks", source: "a", type: "task.created" });
const text = (data: Uint8Array): string => new TextDecoder().decode(data);
const bytes = (data: string): Uint8Array => new TextEncoder().encode(data);

interface World {
  clock: FakeClock;
  server: MemoryServer;
  /** Runs until nothing is due within `ms`; promises settle in between. */
  run(ms?: number): Promise<void>;
}

async function world(): Promise<World> {
  const clock = new FakeClock();
  const server = new MemoryServer({ clock, now: () => 1_700_000_000_000 + clock.monotonic() });
  const run = async (ms = 0): Promise<void> => {
    const end = clock.monotonic() + ms;
    // The clock moves only to where something is due.
    clock.after(ms, () => {});
    for (;;) {
      await new Promise((resolve) => setImmediate(resolve));
      const next = clock.untilNext;
      if (next === undefined || clock.monotonic() + next > end) return;
      clock.runNext();
    }
  };
  const made = server.connect({ name: "maker" }).provision(spec);
  await run();
  await made;
  return { clock, server, run };
}

function chain(bus: Bus, last = 0) {
  const acked: number[] = [];
  const failures: AppendFailure[] = [];
  const appender = bus.openAppender({
    stream: spec.name,
    last,
    ackTimeoutMs: 1_000,
    onAcked: (seq) => acked.push(seq),
    onFailure: (failure) => failures.push(failure),
  });
  const append = (...texts: string[]): void => {
    for (const entry of texts) appender.append(subject, {}, bytes(entry));
  };
  return { appender, acked, failures, append };
}

async function stored({ server, run }: World): Promise<string[]> {
  const reader = server.connect({ name: "auditor" }).openReader(spec.name, {
    after: 0,
    onReady: () => {},
  });
  await run();
  const texts = reader.take(1_000).map((message) => text(message.data));
  await reader.close();
  return texts;
}

/** The second append is answered late, the fourth not at all, and so on. */
function faulty(): () => ArrivalFault | undefined {
  const kinds: (ArrivalFault | undefined)[] = [
    undefined,
    { kind: "late", ms: 50 },
    undefined,
    { kind: "unanswered" },
  ];
  let count = 0;
  return () => kinds[count++ % kinds.length];
}

test("the same calls give the same run", async () => {
  const runs: string[] = [];
  for (let n = 0; n < 2; n++) {
    const w = await world();
    const trace: string[] = [];
    w.server.faults.onArrival = faulty();
    const bus = w.server.connect({ name: "a" });
    bus.subscribe("hv.*.ev.>", (message) => {
      trace.push(
        `${w.clock.monotonic()} seen ${text(message.data)} ${message.header("Nats-Sequence")}`,
      );
    });
    const { append, acked, failures, appender } = chain(bus);
    append("1", "2", "3", "4", "5");
    await w.run(5_000);
    trace.push(JSON.stringify({ acked, failures, last: appender.last }), ...(await stored(w)));
    trace.push(bus.newInbox());
    runs.push(trace.join("\n"));
  }
  assert.equal(runs[0], runs[1]);
  assert.match(runs[0] ?? "", /seen 1 1/);
});

test("an unanswered append is stored and its fate unknown; a lost one is not stored", async () => {
  for (const kind of ["unanswered", "lost"] as const) {
    const w = await world();
    const { append, acked, failures, appender } = chain(w.server.connect({ name: "a" }));
    append("1");
    await w.run();
    w.server.faults.onArrival = () => ({ kind });
    append("2");
    await w.run(999);
    assert.equal(failures.length, 0);
    await w.run(1);
    assert.deepEqual([failures[0]?.reason, failures[0]?.seq], ["unknown", 2]);
    assert.deepEqual([acked, appender.isDead], [[1], true]);
    assert.deepEqual(await stored(w), kind === "lost" ? ["1"] : ["1", "2"]);
  }
});

test("a late answer holds back the report of what follows, not the storing", async () => {
  const w = await world();
  const { append, acked } = chain(w.server.connect({ name: "a" }));
  const faults: (ArrivalFault | undefined)[] = [undefined, { kind: "late", ms: 300 }];
  w.server.faults.onArrival = () => faults.shift();
  append("1", "2", "3");
  await w.run(299);
  assert.deepEqual(acked, [1]);
  await w.run(1);
  assert.deepEqual(acked, [1, 3]);
  assert.deepEqual(await stored(w), ["1", "2", "3"]);
});

test("a refused append says the number", async () => {
  const w = await world();
  const { append, failures } = chain(w.server.connect({ name: "a" }));
  w.server.faults.onArrival = () => ({ kind: "refused", apiCode: 10077, description: "full" });
  append("1");
  await w.run();
  assert.deepEqual(failures, [{ reason: "refused", seq: 1, apiCode: 10077, message: "full" }]);
});

test("what a cut-off client had sent is lost or arrives, and is not answered either way", async () => {
  for (const inFlight of ["lost", "delivered"] as const) {
    const w = await world();
    const bus: MemoryBus = w.server.connect({ name: "a" });
    const { append, acked, failures } = chain(bus);
    append("1", "2");
    w.server.faults.partition("a", inFlight);
    assert.equal(bus.isConnected, false);
    await w.run(2_000);
    assert.deepEqual([acked, failures[0]?.reason], [[], "unknown"]);
    const refused = assert.rejects(bus.streamState(spec.name), { code: "timeout" });
    await w.run(6_000);
    await refused;
    w.server.faults.heal("a");
    assert.equal(bus.isConnected, true);
    assert.deepEqual(await stored(w), inFlight === "lost" ? [] : ["1", "2"]);
  }
});

test("a stalled leader's appends are refused when they arrive after its successor's", async () => {
  const w = await world();
  const old = chain(w.server.connect({ name: "old" }));
  old.append("old 1");
  await w.run();
  w.server.faults.hold("old");
  old.append("old 2", "old 3", "old 4");
  const successor = chain(w.server.connect({ name: "new" }), 1);
  successor.append("epoch");
  await w.run(500);
  assert.deepEqual(successor.acked, [2]);
  w.server.faults.release("old");
  await w.run();
  assert.deepEqual([old.failures[0]?.reason, old.failures[0]?.seq], ["conflict", 2]);
  successor.append("new");
  await w.run();
  assert.deepEqual(await stored(w), ["old 1", "epoch", "new"]);
});

test("a trimmed, a recreated and a restarted server are seen as such", async () => {
  const w = await world();
  const bus = w.server.connect({ name: "a" });
  const { append } = chain(bus);
  append("1", "2", "3");
  await w.run();
  w.server.faults.trim(spec.name, 3);
  assert.deepEqual(await stored(w), ["3"]);
  const before = bus.streamState(spec.name);
  await w.run();
  assert.deepEqual([(await before)?.firstSeq, (await before)?.lastSeq], [3, 3]);
  w.server.faults.restart();
  assert.deepEqual(await stored(w), ["3"]);
  w.server.faults.deleteStream(spec.name);
  const after = bus.provision(spec);
  await w.run();
  assert.equal((await after).lastSeq, 0);
  assert.notEqual((await after).created, (await before)?.created);
});

test("messages past the age limit are gone", async () => {
  const w = await world();
  const bus = w.server.connect({ name: "a" });
  const aged = { ...spec, name: "AGED", subjects: ["aged.>"], maxAgeMs: 1_000 };
  const { republish: _, ...plain } = aged;
  const made = bus.provision(plain);
  await w.run();
  await made;
  bus.publish("aged.a", {}, bytes("1"));
  await w.run(600);
  bus.publish("aged.a", {}, bytes("2"));
  await w.run(600);
  const state = bus.streamState("AGED");
  await w.run();
  assert.deepEqual([(await state)?.firstSeq, (await state)?.messages], [2, 1]);
});

test("two leases of one key are never held at once by what their holders know", async () => {
  const w = await world();
  const heard: string[] = [];
  const open = (name: string) =>
    w.server.connect({ name }).openLease({
      key: "tasks",
      holder: name,
      ttlMs: 3_000,
      onAcquired: () => heard.push(`${name} acquired`),
      onLost: () => heard.push(`${name} lost`),
    });
  const first = open("a");
  await w.run(10);
  const second = open("b");
  await w.run(20_000);
  assert.deepEqual(heard, ["a acquired"]);
  w.server.faults.partition("a");
  await w.run(1_999);
  assert.deepEqual(heard, ["a acquired", "a lost"], "told at two thirds, before it is free");
  assert.equal(first.isHeld, false);
  await w.run(2_000);
  assert.deepEqual(heard, ["a acquired", "a lost", "b acquired"]);
  w.server.faults.heal("a");
  await w.run(10_000);
  assert.deepEqual([first.isHeld, second.isHeld], [false, true]);
  const closing = second.close();
  await w.run(1_000);
  await closing;
  assert.equal(first.isHeld, true);
});
