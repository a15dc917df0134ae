/**
 * What it costs that senders prove themselves, as ratios within one run: accounts and keys beside none, and
 * signed envelopes beside unsigned ones on the same server.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import {
  authFromFile,
  connectBus,
  encodeToken,
  HEADER,
  intakeStream,
  intakeSubject,
  type JetStreamBus,
} from "@harmovela/bus";
import { enrol, keyFile } from "@harmovela/cli";
import { signEnvelope } from "@harmovela/client";
import { createCoordinator } from "@harmovela/delegation-coordinator";
import { domainOf, type Envelope } from "@harmovela/envelope";
import { openAgentKeys, openService, type RunningService } from "@harmovela/host";
import { startNatsServer } from "@harmovela/testkit";
import { connect, headers, type NatsConnection, nkeyAuthenticator } from "@nats-io/transport-node";
import { exportJWK, generateKeyPair } from "jose";
import pino from "pino";
import { untilJudged } from "./judged.ts";
import { pause, TENANT, taskEvent } from "./load.ts";
import { median } from "./median.ts";
import { percentile } from "./sender.ts";

type Note = (name: string, value: number, unit?: string) => void;
const AGENT = "agent:worker";
const SERVICE = "service:delegation-coordinator";
const INBOX = `_INBOX.${encodeToken(TENANT)}.${encodeToken(AGENT)}`;
const STREAM = intakeStream("tasks");
const LIVE_TASKS = 100;
/** Published without waiting; then the server is asked whether it has them. */
const CHUNK = 500;
const ROUNDS = 3;

/** One agent says here as much as it can; what its limits cost is measured by itself. */
const NO_LIMITS = { messagesPerSecond: 1e9, bytesPerSecond: 1e12 };

/** A server, somebody who may look into it, and the agent whose envelopes are judged. */
interface Place extends AsyncDisposable {
  operator: JetStreamBus;
  agent: NatsConnection;
  open(): Promise<RunningService>;
}

interface Signing {
  keys: Awaited<ReturnType<typeof openAgentKeys>>;
  sign(envelope: Envelope): Promise<Envelope>;
}

async function openPlace(signing: Signing, isSecured: boolean): Promise<Place> {
  const folder = mkdtempSync(join(tmpdir(), "harmovela-bench-"));
  const file = (...names: string[]) => join(folder, keyFile(names));
  if (isSecured) enrolAll(join(folder, "agents.conf"));
  const config = `include "../${basename(folder)}/agents.conf"`;
  const server = await startNatsServer(isSecured ? { config } : {});
  const auth = (...names: string[]) => (isSecured ? authFromFile(file(...names)) : undefined);
  const asOperator = auth("operator");
  const operator = await connectBus({
    servers: server.url,
    name: "bench",
    ...(asOperator && { auth: asOperator }),
  });
  const seed = isSecured ? readFileSync(file(TENANT, AGENT), "utf8").trim() : undefined;
  const agent = await connect({
    servers: server.url,
    inboxPrefix: INBOX,
    ...(seed && { authenticator: nkeyAuthenticator(new TextEncoder().encode(seed)) }),
  });
  const writerAuth = auth("tasks", "writer");
  const answererAuth = auth("tasks", "answerer");
  return {
    operator,
    agent,
    open: async () => {
      const service = await openService(createCoordinator({ authenticated: isSecured }), {
        servers: server.url,
        version: "0.1.0",
        logger: pino({ level: "silent" }),
        agentKeys: signing.keys,
        sourceLimits: NO_LIMITS,
        ...(writerAuth && { writerAuth }),
        ...(answererAuth && { answererAuth }),
      });
      await service.host.untilLeading();
      return service;
    },
    [Symbol.asyncDispose]: async () => {
      await agent.close();
      await operator.close();
      await server[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function enrolAll(config: string): void {
  const domain = "tasks";
  for (const connection of ["writer", "answerer"] as const) {
    const identity = { kind: "service", domain, service: SERVICE, connection } as const;
    enrol(config, [{ identity, file: [domain, connection] }]);
  }
  enrol(config, [{ identity: { kind: "operator", name: "operator" }, file: ["operator"] }]);
  const identity = { kind: "agent", tenant: TENANT, name: AGENT } as const;
  enrol(config, [{ identity, file: [TENANT, AGENT] }]);
}

async function openSigning(): Promise<Signing> {
  const { privateKey } = await generateKeyPair("EdDSA", { extractable: true });
  const jwk = await exportJWK(privateKey);
  const { d: _secret, ...open } = jwk;
  const from = new Date(Date.now() - 60_000).toISOString();
  const record = { tenant: TENANT, agent: AGENT, kid: "k", jwk: open, from };
  const keys = await openAgentKeys({ keys: [record] });
  return { keys, sign: (envelope) => signEnvelope(envelope, TENANT, { kid: "k", jwk }) };
}

function prelude(): Envelope[] {
  return Array.from({ length: LIVE_TASKS }, (_, index) => `s_${index}`).flatMap((task) => [
    taskEvent("task.submitted", task, AGENT),
    taskEvent("task.started", task, AGENT),
  ]);
}

async function work(count: number, { sign }: Signing, isSigned: boolean): Promise<Envelope[]> {
  const created_at = new Date().toISOString();
  const events = Array.from({ length: count }, (_, index) =>
    taskEvent("task.progress", `s_${index % LIVE_TASKS}`, AGENT, { progress: 0.5 }, { created_at }),
  );
  return isSigned ? Promise.all(events.map(sign)) : events;
}

const subjectOf = ({ type }: Envelope): string =>
  intakeSubject({ tenant: TENANT, domain: domainOf(type), source: AGENT, type });

/** Stores them in the intake, as the agent. */
async function store({ agent, operator }: Place, envelopes: readonly Envelope[]): Promise<number> {
  const lastSeq = async (): Promise<number> => (await operator.streamState(STREAM))?.lastSeq ?? 0;
  const before = await lastSeq();
  for (let at = 0; at < envelopes.length; at += CHUNK) {
    const some = envelopes.slice(at, at + CHUNK);
    for (const envelope of some) agent.publish(subjectOf(envelope), JSON.stringify(envelope));
    await agent.flush();
    while ((await lastSeq()) < before + at + some.length) await pause(1);
  }
  return before + envelopes.length;
}

/** Envelopes a second, of a backlog. */
async function judgedRate(place: Place, envelopes: readonly Envelope[]): Promise<number> {
  const last = await store(place, envelopes);
  const service = await place.open();
  const started = performance.now();
  const from = service.host.status().intake;
  await untilJudged(service, last);
  const perSecond = (last - from) / ((performance.now() - started) / 1_000);
  const { accepted = 0 } = service.host.status().counters;
  await service.close();
  if (accepted < last - from) throw new Error(`${last - from - accepted} were refused`);
  return perSecond;
}

/** Milliseconds from publish to verdict, one at a time; the median. */
async function verdictMs({ agent }: Place, envelopes: readonly Envelope[]): Promise<number> {
  const took: number[] = [];
  for (const [index, envelope] of envelopes.entries()) {
    const inbox = `${INBOX}.${index}`;
    const verdicts = agent.subscribe(inbox, { max: 1 });
    const asking = headers();
    asking.set(HEADER.replyTo, inbox);
    const started = performance.now();
    agent.publish(subjectOf(envelope), JSON.stringify(envelope), { headers: asking });
    for await (const { data } of verdicts) {
      took.push(performance.now() - started);
      const text = new TextDecoder().decode(data);
      if (!text.includes('"event.acknowledged"')) throw new Error(text);
    }
  }
  return percentile(took, 0.5);
}

const KINDS = ["open", "keys", "signed"] as const;

/** `events` judged as a backlog and a tenth of them one at a time, each kind in turn, so that what disturbs one disturbs all. */
export async function security(note: Note, events: number): Promise<void> {
  const signing = await openSigning();
  await using plain = await openPlace(signing, false);
  await using secured = await openPlace(signing, true);
  for (const place of [plain, secured]) {
    const service = await place.open();
    await untilJudged(service, await store(place, prelude()));
    await service.close();
  }
  const rates = { open: [] as number[], keys: [] as number[], signed: [] as number[] };
  const delays = { open: [] as number[], keys: [] as number[], signed: [] as number[] };
  for (let round = 0; round <= ROUNDS; round += 1) {
    for (const kind of inTurn(round)) {
      const place = kind === "open" ? plain : secured;
      const rate = await judgedRate(place, await work(events, signing, kind === "signed"));
      // The first round warms up.
      if (round > 0) rates[kind].push(rate);
    }
  }
  await using _ = await leading(plain);
  await using __ = await leading(secured);
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const kind of inTurn(round)) {
      const place = kind === "open" ? plain : secured;
      const some = await work(events / 10, signing, kind === "signed");
      delays[kind].push(await verdictMs(place, some));
    }
  }
  const ratio = (of: Record<"open" | "keys" | "signed", number[]>, one: "keys" | "signed") =>
    median(of[one]) / median(of[one === "keys" ? "open" : "keys"]);
  note("keys_judged_per_s", median(rates.keys), "envelopes/s, senders proved by accounts");
  note("keys_judged_ratio", ratio(rates, "keys"), "judged with accounts / without");
  note("keys_verdict_ratio", ratio(delays, "keys"), "time to a verdict with accounts / without");
  note("signed_judged_per_s", median(rates.signed), "envelopes/s, each signed");
  note("signed_judged_ratio", ratio(rates, "signed"), "judged signed / unsigned");
  note("signed_verdict_ratio", ratio(delays, "signed"), "time to a verdict signed / unsigned");
}

/** Forwards and backwards, so that none always follows the same one. */
function inTurn(round: number) {
  return round % 2 === 0 ? KINDS : KINDS.toReversed();
}

async function leading(place: Place): Promise<AsyncDisposable> {
  const service = await place.open();
  return { [Symbol.asyncDispose]: () => service.close() };
}
