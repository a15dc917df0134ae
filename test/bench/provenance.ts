/** What provenance costs: following other logs, judging attestations, signatures. */
import { performance } from "node:perf_hooks";
import { createTracker } from "@harmovela/belief-tracker";
import { connectBus, logStream } from "@harmovela/bus";
import { signEnvelope } from "@harmovela/client";
import type { Envelope } from "@harmovela/envelope";
import {
  type AgentKeys,
  openAgentKeys,
  openService,
  type RunningService,
  type ServiceDefinition,
} from "@harmovela/host";
import { createAttester } from "@harmovela/provenance-attester";
import { startNatsServer } from "@harmovela/testkit";
import { exportJWK, generateKeyPair } from "jose";
import pino from "pino";
import { untilJudged } from "./judged.ts";
import { pause, preload, TENANT } from "./load.ts";

type Note = (name: string, value: number, unit?: string) => void;
const SIGNATURES = 2_000;

async function open<State>(
  url: string,
  definition: ServiceDefinition<State>,
  agentKeys?: AgentKeys,
): Promise<RunningService> {
  const service = await openService(definition, {
    servers: url,
    version: "0.1.0",
    logger: pino({ level: "silent" }),
    ...(agentKeys === undefined ? {} : { agentKeys }),
  });
  await service.host.untilLeading();
  return service;
}

function frame(type: string, id: string, source: string, more: Partial<Envelope>): Envelope {
  const created_at = new Date().toISOString();
  return { spec_version: "0.2", id, type, source, created_at, payload: {}, ...more };
}

/** Each rests on the one before. */
function fact(index: number): Envelope {
  const before = `f${index - 1}`;
  return frame("memory.fact.added", `f${index}`, "agent:a", {
    payload: { fact_id: `f${index}`, value: index },
    ...(index === 0
      ? {}
      : { causation_id: before, evidence_chain: [{ source: "agent:a", id: before }] }),
  });
}

function attestation(index: number, facts: number): Envelope {
  return frame("provenance.attestation.added", `v${index}`, "agent:v", {
    causation_id: `f${index % facts}`,
    payload: { attestor: "agent:v", method: "bench" },
  });
}

/** `facts` assertions that rest on each other, then as many attestations; the last ones signed. */
export async function provenance(note: Note, facts: number): Promise<void> {
  await using server = await startNatsServer();
  const bus = await connectBus({ servers: server.url, name: "bench" });
  const tracker = await open(server.url, createTracker());
  await preload(
    bus,
    Array.from({ length: facts }, (_, index) => fact(index)),
    "beliefs",
  );
  await untilJudged(tracker, facts);
  const { lastSeq = 0 } = (await bus.streamState(logStream("beliefs"))) ?? {};
  await tracker.close();

  const { privateKey } = await generateKeyPair("EdDSA", { extractable: true });
  const jwk = await exportJWK(privateKey);
  const { d: _secret, ...publicKey } = jwk;
  const from = new Date(Date.now() - 60_000).toISOString();
  const keys = await openAgentKeys({
    keys: [{ tenant: TENANT, agent: "agent:v", kid: "k", jwk: publicKey, from }],
  });
  globalThis.gc?.();
  const before = process.memoryUsage().heapUsed;
  const attester = await open(server.url, createAttester(), keys);
  const observing = performance.now();
  while ((attester.host.status().seen.beliefs ?? 0) < lastSeq) await pause(2);
  note(
    "observed_per_s",
    facts / ((performance.now() - observing) / 1_000),
    "assertions/s through the attester",
  );
  globalThis.gc?.();
  note("known_event_bytes", (process.memoryUsage().heapUsed - before) / facts, "bytes, about");

  const plain = Array.from({ length: facts }, (_, index) => attestation(index, facts));
  note(
    "attested_per_s",
    await judgedRate(attester, () => preload(bus, plain, "provenance"), facts),
  );

  const signing = performance.now();
  const signed: Envelope[] = [];
  for (let index = 0; index < SIGNATURES; index += 1) {
    const envelope = attestation(facts + index, facts);
    signed.push(await signEnvelope(envelope, TENANT, { kid: "k", jwk }));
  }
  note("sign_us", ((performance.now() - signing) / SIGNATURES) * 1_000, "µs, one signature");
  const looking = performance.now();
  for (const envelope of signed) {
    if ((await keys.look(envelope, TENANT))?.kind !== "verified") throw new Error("forged");
  }
  note("verify_us", ((performance.now() - looking) / SIGNATURES) * 1_000, "µs, one verification");
  const store = () => preload(bus, signed, "provenance");
  note("attested_signed_per_s", await judgedRate(attester, store, SIGNATURES));
  await attester.close();
  await bus.close();
}

async function judgedRate(
  service: RunningService,
  store: () => Promise<unknown>,
  count: number,
): Promise<number> {
  const from = service.host.status().intake;
  const started = performance.now();
  await store();
  await untilJudged(service, from + count);
  return count / ((performance.now() - started) / 1_000);
}
