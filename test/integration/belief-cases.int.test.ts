/**
 * Beliefs through agents, two trackers and a real server. K1 to K11: failures that users of similar systems
 * reported, by the names of the reports. What the trackers wrote is held to every rule at the end.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { createTracker } from "@harmovela/belief-tracker";
import { connectBus, logStream } from "@harmovela/bus";
import { createChecker, recordOf } from "@harmovela/check";
import {
  type Agent,
  type BeliefNews,
  type BeliefWatch,
  connect,
  RejectedError,
} from "@harmovela/client";
import type { Envelope } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import { openService, type RunningService } from "@harmovela/host";
import { type NatsServer, startNatsServer } from "@harmovela/testkit";
import pino from "pino";

const DEADLINE_MS = 30_000;

let server: NatsServer;
const trackers: RunningService[] = [];
const agents: Agent[] = [];

before(async () => {
  server = await startNatsServer();
  for (let count = 0; count < 2; count += 1) {
    const config = { servers: server.url, version: "0.0.0", logger: pino({ level: "silent" }) };
    trackers.push(await openService({ ...createTracker(), observes: [] }, config));
    await trackers[0]?.host.untilLeading();
  }
});

after(async () => {
  for (const agent of agents) await agent.close();
  for (const tracker of trackers) await tracker.close();
  await server[Symbol.asyncDispose]();
});

async function open(name: string, tenant: string): Promise<Agent> {
  const agent = await connect({ servers: server.url, tenant, agent: name });
  agents.push(agent);
  return agent;
}

/** The next news of this kind; fails instead of hanging. */
async function until(watch: BeliefWatch, change: BeliefNews["change"]): Promise<BeliefNews> {
  const timer = setTimeout(() => void watch.close(), DEADLINE_MS);
  try {
    for (;;) {
      const { value, done } = await watch.next();
      assert.ok(!done, `nobody says ${change}`);
      if (value.change === change) return value;
    }
  } finally {
    clearTimeout(timer);
  }
}

async function reasons(agent: Agent, key: string): Promise<string[]> {
  const { useable, reasons: doubts } = await agent.beliefs.useable(key);
  assert.equal(useable, doubts.length === 0);
  return doubts.map(({ reason }) => reason);
}

const payloadOf = ({ payload }: Envelope): JsonObject => payload as JsonObject;
const soon = (ms: number): Date => new Date(Date.now() + ms);

describe("agent.beliefs", () => {
  test("a contradiction is heard of, decided by a third agent, and over", async () => {
    const one = await open("agent:one", "conflict");
    const other = await open("agent:other", "conflict");
    const judge = await open("agent:judge", "conflict");
    await using watch = judge.beliefs.watch("memory:gate");
    await watch.ready;
    await one.beliefs.assert("memory:gate", { gate: "A", floor: 1 }, { confidence: 0.95 });
    await other.beliefs.assert("memory:gate", { floor: 1, gate: "A" });
    assert.deepEqual(await reasons(judge, "memory:gate"), []);
    const mine = await other.beliefs.assert("memory:gate", { gate: "B", floor: 1 });
    const { envelope } = await until(watch, "contradicted");
    assert.deepEqual(
      (payloadOf(envelope).claims as JsonObject[]).map(({ source, confidence }) => [
        source,
        confidence,
      ]),
      [
        ["agent:one", 0.95],
        ["agent:other", undefined],
      ],
    );
    assert.deepEqual(await reasons(judge, "memory:gate"), ["contradicted", "contradicted"]);
    await judge.beliefs.revise(mine, { gate: "B", floor: 2 });
    await until(watch, "revised");
    assert.deepEqual(await reasons(judge, "memory:gate"), ["revised", "revised"]);
    await other.beliefs.retract(mine);
    await until(watch, "retracted");
  });

  test("a watch that begins late knows what a revision is about", async () => {
    const one = await open("agent:one", "late");
    const belief = await one.beliefs.assert("context:tree", ["a"]);
    await using watch = one.beliefs.watch("context:tree");
    await watch.ready;
    const revised = await one.beliefs.revise(belief.id, ["a", "b"], { reason: "a file is new" });
    assert.equal(revised.key, "context:tree");
    const { envelope } = await until(watch, "revised");
    assert.deepEqual(payloadOf(envelope), {
      previous: '["a"]',
      corrected: '["a","b"]',
      reason: "a file is new",
    });
    await one.beliefs.retract("context:tree");
    await until(watch, "retracted");
    assert.deepEqual(await reasons(one, "context:tree"), ["withdrawn"]);
  });

  test("only the asserting side retracts; another key is none", async () => {
    const one = await open("agent:one", "authority");
    const other = await open("agent:other", "authority");
    const belief = await one.beliefs.assert("memory:f", 1);
    await assert.rejects(
      other.beliefs.retract(belief),
      (error) => error instanceof RejectedError && error.code === "unauthorized",
    );
    await assert.rejects(one.beliefs.assert("weather", 1), { code: "invalid_argument" });
    assert.deepEqual(await reasons(one, "memory:unheard"), ["unknown"]);
  });
});

describe("field cases of beliefs", () => {
  test("K1 durations have one grammar; nothing becomes zero silently", async () => {
    const agent = await open("agent:k1", "k1");
    const from = "2028-01-31T00:00:00.000Z";
    const ends: Record<string, string> = {
      P1W: "2028-02-07T00:00:00.000Z",
      P3W3D: "2028-02-24T00:00:00.000Z",
      PT36H: "2028-02-01T12:00:00.000Z",
      P1M: "2028-02-29T00:00:00.000Z",
      PT1M: "2028-01-31T00:01:00.000Z",
      P1Y: "2029-01-31T00:00:00.000Z",
      "PT0.5S": "2028-01-31T00:00:00.500Z",
      P0D: from,
    };
    for (const [span, end] of Object.entries(ends)) {
      const options = { staleAfter: span, envelope: { created_at: from } };
      const { id } = await agent.beliefs.assert(`memory:${span}`, 1, options);
      const { result } = await agent.read("beliefs", "get", { event_id: id });
      assert.equal((result as JsonObject).valid_until, end, span);
    }
    for (const span of ["P", "PT", "-P1D", "+P1D", "p1d", "1D", "P1Y-2M", "P1.5D", "P1H", "soon"]) {
      const fields = { stale_after: span, payload: { fact_id: "f", value: 1 } };
      await assert.rejects(
        agent.publish({ type: "memory.fact.added", ...fields }, { validate: false }),
        { code: "invalid_envelope" },
        span,
      );
    }
    assert.deepEqual(await reasons(agent, "memory:f"), ["unknown"]);
  });

  test("K3 what cannot be read as a time is refused, and never lasts for ever", async () => {
    const agent = await open("agent:k3", "k3");
    for (const until of [
      "soon",
      "2026-02-30T00:00:00Z",
      "2026-06-30T23:59:60Z",
      "2026-06-30T23:59:59",
    ]) {
      const fields = { valid_until: until, payload: { fact_id: "f", value: 1 } };
      await assert.rejects(
        agent.publish({ type: "memory.fact.added", ...fields }, { validate: false }),
        { code: "invalid_envelope" },
        until,
      );
    }
    assert.deepEqual(await reasons(agent, "memory:f"), ["unknown"]);
  });

  test("K5 a window ends without any traffic: said once, not before", async () => {
    const agent = await open("agent:k5", "k5");
    await using watch = agent.beliefs.watch("memory:f");
    await watch.ready;
    const belief = await agent.beliefs.assert("memory:f", 1, { staleAfter: "PT0.3S" });
    const { envelope } = await until(watch, "stale");
    const { valid_until: end, detected_at: detected, resource } = payloadOf(envelope);
    assert.equal(envelope.causation_id, belief.id);
    assert.equal(envelope.valid_until, end);
    assert.equal(resource, "memory:f");
    assert.ok(Date.parse(String(detected)) >= Date.parse(String(end)));
    assert.deepEqual(await reasons(agent, "memory:f"), ["stale"]);
  });

  test("K7 what was retracted is never given as current, nor what rests on it", async () => {
    const memory = await open("memory:main", "k7");
    const agent = await open("agent:k7", "k7");
    const fact = await memory.beliefs.assert("memory:f", 1);
    const first = await agent.beliefs.assert("memory:g", 2, { restsOn: [fact] });
    await agent.beliefs.assert("memory:h", 3, { restsOn: [first] });
    assert.deepEqual(await reasons(agent, "memory:h"), []);
    await using watch = agent.beliefs.watch("memory:h");
    await watch.ready;
    await memory.beliefs.retract(fact, { reason: "the sensor was broken" });
    const { envelope } = await until(watch, "unknown");
    assert.equal(envelope.belief_status, "unknown");
    assert.deepEqual(await reasons(agent, "memory:f"), ["withdrawn"]);
    assert.deepEqual(await reasons(agent, "memory:g"), ["awaiting_re_evaluation"]);
    assert.deepEqual(await reasons(agent, "memory:h"), ["awaiting_re_evaluation"]);
    await agent.beliefs.assert("memory:g", 2, { restsOn: [] });
    assert.deepEqual(await reasons(agent, "memory:g"), []);
  });

  test("K9 whichever tracker answers, what one has heard the other knows", async () => {
    const memory = await open("memory:main", "k9");
    const reader = await open("agent:k9", "k9");
    await using watch = reader.beliefs.watch("memory:f");
    await watch.ready;
    const fact = await memory.beliefs.assert("memory:f", 1);
    await until(watch, "asserted");
    await memory.beliefs.retract(fact);
    await until(watch, "retracted");
    for (let count = 0; count < 30; count += 1) {
      assert.deepEqual(await reasons(reader, "memory:f"), ["withdrawn"]);
    }
    const answered = trackers.map(({ host }) => host.status().counters.reads ?? 0);
    assert.ok(
      answered.every((reads) => reads > 0),
      `both have answered: ${answered}`,
    );
  });

  test("K11 a window is shortened into the past and extended again; a late change is none", async () => {
    const agent = await open("agent:k11", "k11");
    const stranger = await open("agent:stranger", "k11");
    await using watch = agent.beliefs.watch("memory:f");
    await watch.ready;
    const end = soon(3_600_000);
    const { id } = await agent.beliefs.assert("memory:f", 1, {
      validUntil: end,
      staleAfter: "PT3H",
    });
    const change = (by: Agent, next: Date, previous: Date, at = new Date()) =>
      by.publish({
        type: "freshness.window.changed",
        created_at: at.toISOString(),
        payload: {
          resource: "memory:f",
          previous_valid_until: previous.toISOString(),
          new_valid_until: next.toISOString(),
        },
      });
    await assert.rejects(change(stranger, soon(-1), end), { code: "unauthorized" });
    const past = soon(-10_000);
    await change(agent, past, end);
    const { envelope } = await until(watch, "stale");
    assert.equal(envelope.valid_until, past.toISOString());
    assert.deepEqual(await reasons(agent, "memory:f"), ["stale"]);
    const later = soon(7_200_000);
    await change(agent, later, end);
    assert.deepEqual(await reasons(agent, "memory:f"), []);
    const view = async () =>
      (await agent.read("beliefs", "get", { event_id: id })).result as JsonObject;
    const flags = ((await view()).window_changed as JsonObject).flags;
    assert.deepEqual(flags, ["previous_valid_until_mismatch"]);
    await change(agent, past, later, soon(-5_000));
    assert.equal((await view()).valid_until, later.toISOString());
    await change(agent, soon(86_400_000), later);
    const { valid_until: bound, asserted_at: asserted } = await view();
    assert.equal(Date.parse(String(bound)) - Date.parse(String(asserted)), 3 * 3_600_000);
  });
});

describe("what the trackers wrote", () => {
  test("keeps every rule, on every prefix and at rest", async () => {
    const stream = logStream("beliefs");
    await using bus = await connectBus({ servers: server.url, name: "check" });
    const state = await bus.streamState(stream);
    const checker = createChecker({ domain: "beliefs", stream, settled: true });
    const reader = bus.openReader(stream, { after: 0, onReady: () => undefined });
    const until = performance.now() + DEADLINE_MS;
    while (checker.report.lastSeq < (state?.lastSeq ?? 0)) {
      assert.ok(performance.now() < until, "the log is read to its end");
      for (const message of reader.take(1_000)) checker.push(recordOf(message));
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await reader.close();
    checker.end();
    assert.deepEqual(checker.report.findings, []);
    assert.ok(checker.report.events > 40);
  });
});
