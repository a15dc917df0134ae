/** The provenance attester beside the other services, on a real server (spec section 8). */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { createTracker } from "@harmovela/belief-tracker";
import { connectBus, decodeEntry, logStream } from "@harmovela/bus";
import { checkLogs, type LogToCheck } from "@harmovela/check";
import { type Agent, connect, RejectedError, signEnvelope } from "@harmovela/client";
import { createCoordinator } from "@harmovela/delegation-coordinator";
import type { Domain, Envelope } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import {
  type AgentKeys,
  openAgentKeys,
  openService,
  type RunningService,
  type ServiceDefinition,
} from "@harmovela/host";
import { type AttesterSettings, createAttester } from "@harmovela/provenance-attester";
import { type NatsServer, startNatsServer } from "@harmovela/testkit";
import { exportJWK, generateKeyPair } from "jose";
import pino from "pino";
import { readRecords } from "../chaos/stored-log.ts";
import { CliProcess, line } from "./cli-process.ts";

const DEADLINE_MS = 30_000;
const TENANT = "acme";
const MAIN = fileURLToPath(
  new URL("../../services/provenance-attester/src/main.ts", import.meta.url),
);

interface Stack extends AsyncDisposable {
  server: NatsServer;
  /** Opens a service that is closed with the stack. */
  open<State>(definition: ServiceDefinition<State>, keys?: AgentKeys): Promise<RunningService>;
  agent(name: string): Promise<Agent>;
}

async function openStack(): Promise<Stack> {
  const server = await startNatsServer();
  const closing: (() => Promise<void>)[] = [];
  return {
    server,
    async open(definition, agentKeys) {
      const service = await openService(definition, {
        servers: server.url,
        version: "0.0.0",
        logger: pino({ level: process.env.HARMOVELA_TEST_LOG ?? "silent" }),
        observedEveryMs: 50,
        ...(agentKeys === undefined ? {} : { agentKeys }),
      });
      let isClosed = false;
      const { close } = service;
      service.close = async () => {
        if (!isClosed) await close();
        isClosed = true;
      };
      closing.push(() => service.close());
      await service.host.untilLeading();
      return service;
    },
    async agent(name) {
      const agent = await connect({ servers: server.url, tenant: TENANT, agent: name });
      closing.push(() => agent[Symbol.asyncDispose]());
      return agent;
    },
    [Symbol.asyncDispose]: async () => {
      for (const close of closing.reverse()) await close();
      await server[Symbol.asyncDispose]();
    },
  };
}

async function until<T>(look: () => Promise<T | undefined> | T | undefined): Promise<T> {
  const end = performance.now() + DEADLINE_MS;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    assert.ok(performance.now() < end, "not in time");
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
}

async function logged(server: NatsServer, domain: Domain): Promise<Envelope[]> {
  await using bus = await connectBus({ servers: server.url, name: "test" });
  const stream = logStream(domain);
  const state = await bus.streamState(stream);
  const found: Envelope[] = [];
  for (let seq = state?.firstSeq ?? 1; seq <= (state?.lastSeq ?? 0); seq += 1) {
    const stored = await bus.read(stream, seq);
    const entry = stored && decodeEntry(stored);
    if (entry?.kind === "event") found.push(entry.envelope);
  }
  return found;
}

async function read(agent: Agent, verb: string, params: JsonObject): Promise<JsonObject> {
  return (await agent.read("provenance", verb, params)).result as JsonObject;
}

/** Undefined while no log has shown the event. */
async function countOf(agent: Agent, id: string): Promise<number | undefined> {
  const view = await read(agent, "attestations", { event_id: id });
  return view.is_known === true ? Number(view.attestation_count) : undefined;
}

const fact = (id: string, more: Partial<Envelope> = {}) => ({
  type: "memory.fact.added",
  payload: { fact_id: id, value: 1 },
  id,
  ...more,
});
const attestation = (of: string, id: string, attestor = "agent:v") => ({
  type: "provenance.attestation.added",
  payload: { attestor, method: "cross_reference" },
  causation_id: of,
  id,
});

/** Whether its own event is logged later. */
async function isPending(agent: Agent, draft: Parameters<Agent["publish"]>[0]): Promise<boolean> {
  const verdict = await agent.publish(draft);
  assert.ok("pending" in verdict);
  return verdict.pending;
}

async function refusalOf(sent: Promise<unknown>): Promise<RejectedError> {
  try {
    await sent;
  } catch (error) {
    if (error instanceof RejectedError) return error;
    throw error;
  }
  throw new Error("it was taken");
}

test("attestations count over all logs, in whatever order they come, and over a restart", async () => {
  await using stack = await openStack();
  await stack.open(createCoordinator());
  await stack.open(createTracker());
  const first = await stack.open(createAttester());
  const a = await stack.agent("agent:a");
  const v = await stack.agent("agent:v");

  assert.ok(await isPending(v, attestation("b1", "v1")), "what it speaks of was not seen yet");
  await a.publish(fact("b1"));
  await until(async () => ((await countOf(v, "b1")) === 1 ? true : undefined));
  await a.publish({ type: "task.submitted", task_id: "t", payload: {}, id: "t1" });
  assert.ok(!(await isPending(v, attestation("t1", "v2"))));
  assert.equal(await countOf(v, "t1"), 1);
  await v.publish({
    type: "provenance.attestation.revoked",
    payload: { reason: "r" },
    causation_id: "v2",
  });
  assert.equal(await countOf(v, "t1"), 0);

  await first.close();
  await a.publish(fact("b2", { causation_id: "b1" }));
  await stack.open(createAttester());
  assert.equal(await countOf(v, "b1"), 1);
  assert.equal(await countOf(v, "t1"), 0);
  const again = await v.publish(attestation("b1", "v1"));
  assert.ok("duplicate" in again && again.duplicate);
  const chain = await until(() =>
    read(v, "chain", { event_id: "b2", verify: true }).catch(() => undefined),
  );
  assert.deepEqual([chain.result, chain.checked, chain.is_verified], ["intact", 1, true]);
  assert.deepEqual(await findings(stack.server), {});
});

/** What the checker finds in the log of the service, with what that has seen of the others. */
async function findings(server: NatsServer): Promise<Record<string, number>> {
  await using bus = await connectBus({ servers: server.url, name: "check" });
  const logs: LogToCheck[] = [];
  // Its own first: what it has seen by then is there.
  for (const domain of ["provenance", "beliefs", "interruptions", "tasks"] as const) {
    const records = await readRecords(bus, domain);
    const isCut = (records[0]?.seq ?? 1) > 1;
    logs.push({ domain, stream: logStream(domain), lenient: isCut, read: () => records });
  }
  const reports = await checkLogs(logs);
  return reports.get("provenance")?.findingsByRule ?? {};
}

test("an attestation of what never comes is refused, and whoever sends it again gets the refusal", async () => {
  await using stack = await openStack();
  await stack.open(createAttester({ evidenceWaitMs: 200 }));
  const v = await stack.agent("agent:v");
  assert.ok(await isPending(v, attestation("never", "v1")));
  const refusal = await until(async () =>
    (await logged(stack.server, "provenance")).find(({ type }) => type === "event.rejected"),
  );
  assert.equal(refusal.target, "agent:v");
  assert.equal((refusal.payload as JsonObject).acknowledged_event_id, "v1");
  const again = await refusalOf(v.publish(attestation("never", "v1")));
  assert.equal(again.code, "protocol_error");
  assert.equal(again.details?.reason, "unknown_event");
  const other = await refusalOf(v.publish({ ...attestation("never", "v1"), causation_id: "x" }));
  assert.match(String(other.details?.duplicate_of), /^HV_LOG_PROVENANCE:/);
  assert.deepEqual(await findings(stack.server), {});
});

test("evidence that goes with its retention puts what rests on it in doubt", async () => {
  await using stack = await openStack();
  await stack.open(createTracker());
  const attester = await stack.open(createAttester());
  const a = await stack.agent("agent:a");
  await a.publish(fact("old"));
  await a.publish(
    fact("mine", { evidence_chain: [{ source: "agent:a", id: "old" }], causation_id: "old" }),
  );
  await until(() => read(a, "chain", { event_id: "mine" }).catch(() => undefined));
  const stream = logStream("beliefs");
  await using bus = await connectBus({ servers: stack.server.url, name: "operator" });
  await until(() => ((attester.host.status().seen.beliefs ?? 0) >= 3 ? true : undefined));
  await bus.trim(stream, 3);
  const said = await until(async () =>
    (await logged(stack.server, "provenance")).find(
      ({ type }) => type === "provenance.chain.truncated",
    ),
  );
  assert.equal(said.causation_id, "mine");
  assert.equal((said.payload as JsonObject).missing_from, "old");
  await until(async () => {
    const { result } = await a.read("beliefs", "useable", { event_id: "mine" });
    const { reasons } = result as { reasons: JsonObject[] };
    return reasons.some(({ reason }) => reason === "awaiting_re_evaluation") ? true : undefined;
  });
  const told = (await logged(stack.server, "provenance")).filter(
    ({ type }) => type === "provenance.chain.truncated",
  );
  assert.equal(told.length, 1);
  assert.deepEqual(await findings(stack.server), {});
});

/** The service as a process of its own. */
async function openProcess(server: NatsServer): Promise<ChildProcess> {
  const child = spawn(
    process.execPath,
    ["--conditions=development", "--import", import.meta.resolve("tsx"), MAIN],
    {
      env: { ...process.env, HARMOVELA_SERVERS: server.url },
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  let said = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  await until(() => {
    assert.equal(child.exitCode, null, said);
    return said.includes('"leading"') ? true : undefined;
  });
  return child;
}

async function killed(child: ChildProcess): Promise<void> {
  assert.equal(child.exitCode, null, "it still runs");
  const end = once(child, "exit");
  child.kill("SIGKILL");
  await end;
}

test("kill -9 loses no attestation, neither one that counts nor one that waits", async () => {
  await using stack = await openStack();
  await stack.open(createTracker());
  const a = await stack.agent("agent:a");
  const v = await stack.agent("agent:v");
  const first = await openProcess(stack.server);
  try {
    await a.publish(fact("b1"));
    await v.publish(attestation("b1", "v1"));
    assert.ok(await isPending(v, attestation("b2", "v2")));
  } finally {
    await killed(first);
  }
  await a.publish(fact("b2"));
  const second = await openProcess(stack.server);
  try {
    await until(async () => ((await countOf(v, "b2")) === 1 ? true : undefined));
    assert.equal(await countOf(v, "b1"), 1);
  } finally {
    await killed(second);
  }
  assert.deepEqual(await findings(stack.server), {});
});

describe("signatures", () => {
  async function keyOf(agent: string, kid: string, more: JsonObject = {}) {
    const { privateKey } = await generateKeyPair("EdDSA", { extractable: true });
    const jwk = await exportJWK(privateKey);
    const { d: _secret, ...open } = jwk;
    const from = new Date(Date.now() - 60_000).toISOString();
    return { record: { tenant: TENANT, agent, kid, jwk: open, from, ...more }, key: { kid, jwk } };
  }
  const draft = (id: string): Envelope => ({
    spec_version: "0.2",
    source: "agent:v",
    created_at: new Date().toISOString(),
    ...attestation("b", id),
  });
  const secure: Partial<AttesterSettings> = { defaultProfiles: ["harmovela.security.v1"] };

  test("under security.v1 what says that it is signed is, by a key of its source that is good", async () => {
    const good = await keyOf("agent:v", "k1");
    const revoked = await keyOf("agent:v", "k2", {
      revoked_at: new Date(Date.now() - 1_000).toISOString(),
    });
    const foreign = await keyOf("agent:other", "k3");
    const keys = await openAgentKeys({ keys: [good.record, revoked.record, foreign.record] });
    await using stack = await openStack();
    await stack.open(createTracker());
    await stack.open(createAttester(secure), keys);
    const a = await stack.agent("agent:a");
    const v = await stack.agent("agent:v");
    await a.publish(fact("b"));
    const signed = await signEnvelope(draft("v1"), TENANT, good.key);
    await v.publish(signed);
    const { nodes } = await read(v, "graph", { event_id: "v1" });
    assert.equal((nodes as JsonObject[])[0]?.signed_by, "k1");
    const may = await read(v, "may", { event_id: "v1" });
    assert.deepEqual([may.may, may.reasons], [true, []]);

    const bad: [string, Envelope][] = [
      ["missing", { ...draft("v2"), source_trust: "signed" }],
      ["forged", { ...signed, id: "v3" }],
      ["revoked", await signEnvelope(draft("v4"), TENANT, revoked.key)],
      ["unknown_key", await signEnvelope(draft("v5"), TENANT, foreign.key)],
      ["forged", await signEnvelope(draft("v6"), "other", good.key)],
    ];
    for (const [reason, envelope] of bad) {
      const { code, details } = await refusalOf(v.publish(envelope));
      assert.equal(code, "unauthorized");
      assert.equal(details?.reason, reason, envelope.id);
    }
    assert.equal(await countOf(v, "b"), 1);
  });

  test("without keys nothing is proved, and without the profile that is only said", async () => {
    await using stack = await openStack();
    await stack.open(createTracker());
    await stack.open(createAttester());
    const v = await stack.agent("agent:v");
    await (await stack.agent("agent:a")).publish(fact("b"));
    const { key } = await keyOf("agent:v", "k1");
    await v.publish(await signEnvelope(draft("v1"), TENANT, key));
    const { may, reasons } = await read(v, "may", { event_id: "v1" });
    assert.equal(may, false);
    assert.equal((reasons as JsonObject[])[0]?.problem, "missing");
  });
});

describe("through the command line", () => {
  const profiles = ["harmovela.core.v1", "harmovela.runtime-semantics.v1"];
  const opened = (): string =>
    line(
      "session.opened",
      { id: "open", session_id: "s", target: "harness:harmovela" },
      { session_id: "s", version: "0.2", capabilities: { profiles } },
    );
  const said = { attestor: "agent:v", method: "m" };
  const verdictOn = (events: readonly Envelope[], id: string): string => {
    const verdict = events.find(
      ({ type, causation_id: cause }) =>
        cause === id && (type === "event.acknowledged" || type === "event.rejected"),
    );
    const error = (verdict?.payload as JsonObject | undefined)?.error as JsonObject | undefined;
    return error === undefined ? String(verdict?.type) : `${verdict?.type} ${error.code}`;
  };

  test("f08, f10: chains keep their order; attestations are counted, and revoked once", async () => {
    await using running = new CliProcess(["stdio"]);
    const s = { session_id: "s" };
    const chain = (...ids: string[]) => ids.map((id) => ({ source: "agent:x", id }));
    running.send(
      opened(),
      line(
        "provenance.attestation.added",
        { id: "order", ...s, causation_id: "e2", evidence_chain: chain("e1", "e2", "e3") },
        said,
      ),
      line("provenance.attestation.added", { id: "bare", ...s }, said),
      line(
        "memory.fact.added",
        { id: "f", ...s, source: "memory:main" },
        { fact_id: "f", value: 1 },
      ),
      line("provenance.attestation.added", { id: "a", ...s, causation_id: "f" }, said),
      line("provenance.attestation.revoked", { id: "r", ...s, causation_id: "a" }, { reason: "r" }),
      line(
        "provenance.attestation.revoked",
        { id: "r2", ...s, causation_id: "a" },
        { reason: "r" },
      ),
      line(
        "provenance.attestation.revoked",
        { id: "r3", ...s, causation_id: "none" },
        { reason: "r" },
      ),
    );
    running.child.stdin.end();
    await running.end();
    const { events } = running;
    assert.deepEqual(
      ["order", "bare", "f", "a", "r", "r2", "r3"].map((id) => verdictOn(events, id)),
      [
        "event.rejected invalid_envelope",
        "event.rejected invalid_envelope",
        "event.acknowledged",
        "event.acknowledged",
        "event.acknowledged",
        "event.rejected protocol_error",
        "event.rejected protocol_error",
      ],
    );
  });

  test("`harmovela provenance` draws a lineage and writes it as PROV-JSON", async () => {
    await using stack = await openStack();
    await stack.open(createTracker());
    await stack.open(createAttester());
    const a = await stack.agent("agent:a");
    await a.publish(fact("b1"));
    await a.publish(fact("b2", { causation_id: "b1" }));
    await (await stack.agent("agent:v")).publish(attestation("b2", "v1"));
    const folder = mkdtempSync(join(tmpdir(), "provenance-"));
    try {
      const file = join(folder, "lineage.json");
      const at = ["--server", stack.server.url, "--tenant", TENANT];
      await using running = new CliProcess(["provenance", "b2", ...at, "--prov-json", file]);
      await running.ended;
      const text = running.stdout;
      assert.match(text, /b2 .*intact .*agent:a/);
      assert.match(text, /b1 .*origin/);
      assert.match(text, /v1 .*vouches .*agent:v/);
      const json = JSON.parse(readFileSync(file, "utf8")) as JsonObject;
      assert.deepEqual(Object.keys(json.entity as JsonObject).sort(), [
        "event:b1",
        "event:b2",
        "event:v1",
      ]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
