/** What goes on while a snapshot is written down, and how much of the time that may be (architecture, section 6). */
import assert from "node:assert/strict";
import { test } from "node:test";
import { HEADER, intakeSubject, logStream, MemoryServer, rpcSubject } from "@harmovela/bus";
import { type Decider, domainOf } from "@harmovela/envelope";
import { FakeClock, pass, settled } from "@harmovela/testkit";
import pino from "pino";
import {
  generateTokenKeys,
  type Host,
  instantPacking,
  openHost,
  openTokenKeys,
} from "../src/index.ts";
import { COUNTER_SERVICE, type CounterState, createCounterDecider } from "./counter-decider.ts";
import { envelope, TENANT } from "./harness.ts";

const START = Date.parse("2026-11-30T10:00:00Z");
const ENTRIES = 10;
/** Values in the state, so that writing it down takes several pieces. */
const BALLAST = 1_000_000;

interface HeavyState extends CounterState {
  ballast: number[];
}

function createHeavyDecider(): Decider<HeavyState> {
  const counter = createCounterDecider();
  const { snapshots } = counter;
  assert.ok(snapshots);
  return {
    initial: () => ({
      ...counter.initial(),
      ballast: Array.from({ length: BALLAST }, (_, index) => index),
    }),
    decide: (state, input, context) => counter.decide(state, input, context),
    evolve: (state, entry) => counter.evolve(state, entry),
    owed: (state, now, underWay) => counter.owed(state, now, underWay),
    snapshots: { version: snapshots.version, classes: snapshots.classes },
  };
}

class Scene {
  readonly clock = new FakeClock();
  readonly server = new MemoryServer({
    clock: this.clock,
    now: () => START + Math.floor(this.clock.monotonic()),
  });
  readonly bus = this.server.connect({ name: "sender" });
  /** How long each turn of the service takes to come. */
  lagMs = 0;

  async lead(): Promise<Host> {
    const clock = this.clock.openProcess(() => this.lagMs);
    const connect = (name: string) => this.server.connect({ name, clock, uplink: clock });
    const tokens = await openTokenKeys(await generateTokenKeys());
    const host = await settled(
      this.clock,
      openHost<HeavyState>({
        domain: "tasks",
        service: COUNTER_SERVICE,
        version: "1",
        instance: "i",
        decider: createHeavyDecider(),
        settings: {},
        observes: [],
        reads: {},
        issueToken: (_state, { now, asker }) => {
          const iat = Math.floor(now / 1_000);
          const issue = {
            jti: `j${now}`,
            tenant: "acme",
            iss: asker,
            sub: "agent:b",
            task_id: "t",
            iat,
            exp: iat + 60,
          };
          return { issue };
        },
        tokens,
        writer: connect("writer"),
        answerer: connect("answerer"),
        clock,
        logger: pino({ level: "silent" }),
        replicas: 1,
        replyPrefix: () => "_INBOX.",
        retentionMs: 30 * 86_400_000,
        snapshotEntries: ENTRIES,
        packing: instantPacking,
        leaseTtlMs: 60_000,
      }),
    );
    await settled(this.clock, host.untilLeading());
    return host;
  }

  async post(): Promise<void> {
    const sent = envelope("task.progress");
    const { type, source } = sent;
    const subject = intakeSubject({ tenant: TENANT, domain: domainOf(type), source, type });
    const data = Buffer.from(JSON.stringify(sent));
    await settled(this.clock, this.bus.store(subject, { [HEADER.replyTo]: "_INBOX.x" }, data));
  }

  async until(isSo: () => boolean): Promise<void> {
    for (let waited = 0; !isSo(); waited += 1) {
      assert.ok(waited < 10_000, "did not happen in time");
      await pass(this.clock, 100);
    }
  }
}

test("snapshots take a fiftieth of the time at most, however much is logged", async () => {
  const scene = new Scene();
  const host = await scene.lead();
  scene.lagMs = 50;
  const taken: { at: number; pauseMs: number }[] = [];
  for (let count = 0; count < 600; count += 1) {
    await scene.post();
    await pass(scene.clock, 100);
    const { snapshots = 0 } = host.status().counters;
    if (snapshots > taken.length) {
      const pauseMs = host.status().snapshot?.pauseMs ?? 0;
      taken.push({ at: scene.clock.monotonic(), pauseMs });
    }
  }
  assert.ok(taken.length >= 2, `${taken.length} snapshots`);
  for (const [index, { at }] of taken.entries()) {
    const before = taken[index - 1];
    if (before === undefined) continue;
    assert.ok(before.pauseMs >= 100, `${before.pauseMs} ms`);
    // Told up to one round late.
    assert.ok(at - before.at >= 50 * before.pauseMs - 1_000, `${at - before.at} ms after it`);
  }
  await scene.until(() => host.status().counters.accepted === 600);
});

test("no token is recorded while a snapshot is written down", async () => {
  const scene = new Scene();
  const host = await scene.lead();
  scene.lagMs = 200;
  for (let count = 0; count < ENTRIES; count += 1) await scene.post();
  const verb = "token";
  const subject = rpcSubject({ tenant: TENANT, source: "agent:a", domain: "tasks", verb });
  let answered = 0;
  let asked = 0;
  const stream = logStream("tasks");
  let [last, since, stillness] = [0, scene.clock.monotonic(), 0];
  // The log stands still for as long as the snapshot takes, though somebody asks all the time.
  for (; (host.status().counters.snapshots ?? 0) === 0; asked += 1) {
    assert.ok(asked < 1_000, "no snapshot");
    scene.bus.request(subject, {}, new Uint8Array(0), 600_000).then(
      ({ data }) => {
        if (Buffer.from(data).toString().includes('"token":')) answered += 1;
      },
      () => {},
    );
    await pass(scene.clock, 50);
    const { lastSeq = 0 } = (await settled(scene.clock, scene.bus.streamState(stream))) ?? {};
    const now = scene.clock.monotonic();
    stillness = Math.max(stillness, now - since);
    if (lastSeq !== last) [last, since] = [lastSeq, now];
  }
  const { pauseMs = 0 } = host.status().snapshot ?? {};
  assert.ok(pauseMs >= 1_500, `${pauseMs} ms`);
  assert.ok(stillness >= pauseMs - 200, `still for ${stillness} of ${pauseMs} ms`);
  await scene.until(() => answered === asked);
});
