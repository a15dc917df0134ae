/** The belief tracker on a real server: through the command line, over NATS, and over a restart. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createTracker } from "@harmovela/belief-tracker";
import { connectBus, decodeEntry, logStream } from "@harmovela/bus";
import { type Agent, connect } from "@harmovela/client";
import type { Envelope } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import { openService, type RunningService } from "@harmovela/host";
import { type NatsServer, startNatsServer } from "@harmovela/testkit";
import pino from "pino";
import { CliProcess, line } from "./cli-process.ts";

const DEADLINE_MS = 30_000;

function payloadOf({ payload }: Envelope): JsonObject {
  return payload as JsonObject;
}

describe("through `harmovela stdio`", () => {
  const session = (): string =>
    line(
      "session.opened",
      { id: "open", session_id: "s", target: "harness:harmovela" },
      {
        session_id: "s",
        version: "0.2",
        capabilities: { profiles: ["harmovela.core.v1", "harmovela.runtime-semantics.v1"] },
      },
    );

  test("f01, f06: fields that a profile requires; a conclusion is marked before its evidence goes", async () => {
    await using running = new CliProcess(["stdio"]);
    const common = { session_id: "s" };
    const base = { ...common, source: "memory:main" };
    running.send(
      session(),
      line("belief.revised", { id: "bare", ...common }, { previous: "a", corrected: "b" }),
      line("memory.fact.added", { id: "base", ...base }, { fact_id: "b", value: 1 }),
      line(
        "belief.revised",
        {
          id: "derived",
          ...common,
          belief_status: "revised",
          belief_scope: "inference",
          causation_id: "base",
          evidence_chain: [{ source: "memory:main", id: "base" }],
        },
        { previous: "x", corrected: "y" },
      ),
      line(
        "memory.fact.invalidated",
        { id: "gone", ...base, belief_status: "retracted", causation_id: "base" },
        { fact_id: "b" },
      ),
    );
    running.child.stdin.end();
    await running.end();
    const { events } = running;
    const refused = events.find(({ causation_id }) => causation_id === "bare");
    const error = refused && (payloadOf(refused).error as JsonObject);
    assert.equal(error?.code, "invalid_envelope");
    const at = (is: (event: Envelope) => boolean): number => events.findIndex(is);
    const mark = at(({ type }) => type === "state.invalidated");
    const marked = events[mark];
    assert.ok(marked);
    assert.equal(marked.belief_status, "unknown");
    assert.equal(marked.causation_id, "gone");
    assert.equal(payloadOf(marked).event_id, "derived");
    assert.ok(mark < at(({ id }) => id === "gone"), "the retraction follows what it marks");
  });

  test("f03: an expiry is told once, when it is due", async () => {
    await using running = new CliProcess(["stdio"]);
    running.send(session());
    await running.until(({ events }) => events.some(({ type }) => type === "session.ready"));
    const said = { id: "said", source: "memory:main", stale_after: "PT0.3S", session_id: "s" };
    const fact = JSON.parse(line("memory.fact.added", said, { fact_id: "fact_1", value: 1 }));
    running.send(JSON.stringify({ ...fact, created_at: new Date().toISOString() }));
    const expiries = (): Envelope[] =>
      running.events.filter(({ type }) => type === "freshness.expired");
    await running.until(() => expiries().length > 0);
    running.child.stdin.end();
    await running.end();
    const [expired, ...more] = expiries();
    assert.deepEqual(more, []);
    assert.ok(expired);
    const { resource, valid_until: until, detected_at: seen } = payloadOf(expired);
    assert.equal(resource, "memory:fact_1");
    assert.equal(expired.causation_id, "said");
    assert.equal(expired.valid_until, until);
    assert.ok(String(seen) >= String(until));
  });
});

async function tracker(server: NatsServer): Promise<RunningService> {
  const service = await openService(createTracker(), {
    servers: server.url,
    version: "0.0.0",
    logger: pino({ level: "silent" }),
  });
  await service.host.untilLeading();
  return service;
}

async function logged(server: NatsServer, type: string): Promise<Envelope[]> {
  await using bus = await connectBus({ servers: server.url, name: "test" });
  const stream = logStream("beliefs");
  const last = (await bus.streamState(stream))?.lastSeq ?? 0;
  const found: Envelope[] = [];
  for (let seq = 1; seq <= last; seq += 1) {
    const stored = await bus.read(stream, seq);
    const entry = stored && decodeEntry(stored);
    if (entry?.kind === "event" && entry.envelope.type === type) found.push(entry.envelope);
  }
  return found;
}

async function until(is: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + DEADLINE_MS;
  while (!(await is())) {
    assert.ok(performance.now() < end, "not in time");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function useable(agent: Agent, key: string): Promise<string[]> {
  const { result } = await agent.read("beliefs", "useable", { key });
  const { reasons } = result as { reasons: { reason: string }[] };
  return reasons.map(({ reason }) => reason);
}

test("reads say what the log says, with its position; due times in a down time are told once after it", async () => {
  await using server = await startNatsServer();
  const first = await tracker(server);
  await using agent = await connect({ servers: server.url, tenant: "acme", agent: "agent:a" });
  const short = { valid_until: new Date(Date.now() + 400).toISOString() };
  await agent.publish({
    type: "memory.fact.added",
    payload: { fact_id: "short", value: 1 },
    ...short,
  });
  await agent.publish({ type: "memory.fact.added", payload: { fact_id: "long", value: [1] } });
  assert.deepEqual(await useable(agent, "memory:long"), []);
  const answer = await agent.read("beliefs", "get", { key: "memory:long" });
  assert.match(String(answer.position), /^HV_LOG_BELIEFS:\d+$/);
  assert.deepEqual((answer.result as JsonObject).value, [1]);
  await first.close();
  await until(async () => Date.now() > Date.parse(short.valid_until));
  assert.deepEqual(await logged(server, "freshness.expired"), []);

  const second = await tracker(server);
  try {
    await until(async () => (await logged(server, "freshness.expired")).length > 0);
    assert.deepEqual(await useable(agent, "memory:short"), ["stale"]);
    assert.deepEqual(await useable(agent, "memory:long"), []);
    const [expired, ...more] = await logged(server, "freshness.expired");
    assert.deepEqual(more, []);
    assert.equal(expired?.created_at, short.valid_until, "as if it had been told in time");
    const { result } = await agent.read("beliefs", "why", { key: "memory:short" });
    assert.match(String(result), /stale since/);
    const changed = await agent.publish({
      type: "freshness.window.changed",
      payload: {
        resource: "memory:short",
        previous_valid_until: "2026-01-01T00:00:00Z",
        new_valid_until: new Date(Date.now() + 3_600_000).toISOString(),
      },
    });
    assert.deepEqual(
      { ...changed, id: "", cursor: "" },
      {
        id: "",
        cursor: "",
        duplicate: false,
        pending: false,
        applied: true,
        flags: ["previous_valid_until_mismatch"],
      },
    );
    assert.deepEqual(await useable(agent, "memory:short"), []);
  } finally {
    await second.close();
  }
});
