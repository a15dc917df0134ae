/** A counter service on a real nats-server, and a sender that is nothing but a plain client of the bus. */
import {
  type Bus,
  type Clock,
  connectBus,
  decodeEntry,
  HEADER,
  intakeSubject,
  type JetStreamBus,
  logStream,
  rpcSubject,
  systemClock,
} from "@harmovela/bus";
import {
  type Decider,
  type Domain,
  domainOf,
  type Envelope,
  type LogEntry,
} from "@harmovela/envelope";
import type { ErrorPayload, JsonObject, JsonValue } from "@harmovela/failure";
import pino from "pino";
import {
  type AuditLimits,
  type GrantsRegistry,
  type Host,
  openHost,
  type ReadHandler,
  type TokenIssuer,
  type TokenKeys,
} from "../src/index.ts";
import { COUNTER_SERVICE, type CounterState, createCounterDecider } from "./counter-decider.ts";
import {
  createObserverDecider,
  describeObserver,
  OBSERVER_SERVICE,
  type ObserverState,
} from "./observer-decider.ts";

export const TENANT = "acme";

/** Of every test that has one: streams that differ are refused. */
export const AUDIT: AuditLimits = { maxAgeMs: 86_400_000, maxBytes: 64 * 1024 * 1024 };

let nextId = 0;
export function envelope(type: string, more: Partial<Envelope> = {}): Envelope {
  nextId += 1;
  return {
    spec_version: "0.2",
    id: `evt_${process.pid}_${nextId}`,
    type,
    source: "agent:a",
    created_at: "2026-11-30T10:00:00Z",
    payload: {},
    ...more,
  };
}

export interface Sender extends AsyncDisposable {
  bus: JetStreamBus;
  /** Publishes and waits for the verdict. */
  send(envelope: Envelope, options?: { reply?: string; raw?: Uint8Array }): Promise<Envelope>;
  /** Publishes and waits for the server only; resolves with the intake position. */
  post(envelope: Envelope, headers?: Record<string, string>): Promise<number>;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export async function openSender(url: string, tenant = TENANT): Promise<Sender> {
  const bus = await connectBus({ servers: url, name: "sender" });
  const inbox = bus.newInbox();
  const waiting = new Map<string, (verdict: Envelope) => void>();
  let count = 0;
  bus.subscribe(`${inbox}.*`, ({ subject, data }) => {
    waiting.get(subject)?.(JSON.parse(decoder.decode(data)) as Envelope);
    waiting.delete(subject);
  });
  const subjectOf = ({ type, source }: Envelope) =>
    intakeSubject({ tenant, domain: domainOf(type), source, type });
  return {
    bus,
    async send(sent, { reply, raw } = {}) {
      count += 1;
      const to = reply ?? `${inbox}.${count}`;
      const verdict = new Promise<Envelope>((resolve, fail) => {
        waiting.set(to, resolve);
        setTimeout(() => fail(new Error(`no verdict on ${sent.id}`)), 30_000).unref();
      });
      verdict.catch(() => {
        // Whoever gave up on it before does not wait any more.
      });
      await bus.store(
        subjectOf(sent),
        { [HEADER.replyTo]: to },
        raw ?? encoder.encode(JSON.stringify(sent)),
      );
      return verdict;
    },
    async post(sent, headers = {}) {
      const data = encoder.encode(JSON.stringify(sent));
      return (await bus.store(subjectOf(sent), headers, data)).seq;
    },
    [Symbol.asyncDispose]: () => bus.close(),
  };
}

export interface Counter extends AsyncDisposable {
  host: Host;
  /** The host's writing connection. */
  writer: JetStreamBus;
}

/** What comes back of a read. */
export interface Answer {
  position?: string;
  result?: JsonValue;
  status?: JsonObject;
  error?: ErrorPayload;
}

export interface HostedOptions<State> {
  decider: Decider<State>;
  service: string;
  domain: Domain;
  observes: Domain[];
  reads: Record<string, ReadHandler<State>>;
  leaseTtlMs: number;
  instance: string;
  replicas: number;
  retentionMs: number;
  snapshotEntries: number;
  observedEveryMs: number;
  clock: Clock;
  issueToken: TokenIssuer<State>;
  tokens: TokenKeys;
  replyPrefix(tenant: string, source: string): string;
  borderReplyPrefix: string;
  audit: AuditLimits;
  grants: GrantsRegistry;
  /** Puts something between the host and its writing connection. */
  around(bus: Bus): Bus;
}

type Needed = "decider" | "service" | "domain" | "observes";

export async function openHosted<State>(
  url: string,
  options: Pick<HostedOptions<State>, Needed> & Partial<HostedOptions<State>>,
): Promise<Counter> {
  const { around = (bus: Bus) => bus, ...rest } = options;
  const connection = await connectBus({ servers: url, name: "writer" });
  const answerer = await connectBus({ servers: url, name: "answerer" });
  const writer = around(connection);
  const host = await openHost<State>({
    reads: {},
    version: "0.1.0",
    instance: `test-${Math.random().toString(36).slice(2)}`,
    settings: {},
    clock: systemClock,
    logger: pino({ level: process.env.HARMOVELA_TEST_LOG ?? "silent" }),
    replicas: 1,
    replyPrefix: () => "_INBOX.",
    retentionMs: 30 * 86_400_000,
    leaseTtlMs: 1_500,
    ...rest,
    writer,
    answerer,
  });
  return {
    host,
    writer: connection,
    [Symbol.asyncDispose]: async () => {
      await host.close();
      await connection.close();
      await answerer.close();
    },
  };
}

export function openCounter(
  url: string,
  more: Partial<HostedOptions<CounterState>> = {},
): Promise<Counter> {
  return openHosted<CounterState>(url, {
    decider: createCounterDecider(),
    service: COUNTER_SERVICE,
    domain: "tasks",
    observes: [],
    reads: {
      count: (state, { source }, { tenant }) => state.counts.get(`${tenant}/${source}`) ?? 0,
    },
    ...more,
  });
}

export function openObserver(
  url: string,
  more: Partial<HostedOptions<ObserverState>> = {},
): Promise<Counter> {
  return openHosted<ObserverState>(url, {
    decider: createObserverDecider(),
    service: OBSERVER_SERVICE,
    domain: "beliefs",
    observes: ["tasks"],
    reads: { state: (state) => describeObserver(state) },
    ...more,
  });
}

export const rpc = (verb: string, domain: Domain = "tasks"): string =>
  rpcSubject({ tenant: TENANT, source: "agent:a", domain, verb });

/** Asks for a read; resolves with the whole answer. */
export async function ask(
  { bus }: Sender,
  verb: string,
  params: JsonObject = {},
  domain: Domain = "tasks",
): Promise<Answer> {
  const data = encoder.encode(JSON.stringify(params));
  const answer = await bus.request(rpc(verb, domain), {}, data, 10_000);
  return JSON.parse(decoder.decode(answer.data)) as Answer;
}

/** A read that looks at the state only when it is told to. */
export function slowCount(): {
  waiting: (() => void)[];
  reads: HostedOptions<CounterState>["reads"];
} {
  const waiting: (() => void)[] = [];
  const slow: ReadHandler<CounterState> = async (state) => {
    await new Promise<void>((resolve) => waiting.push(resolve));
    return state.counts.get(`${TENANT}/agent:a`) ?? 0;
  };
  return { waiting, reads: { slow } };
}

/** The events of a log, as "type task". */
export function eventsOf(log: LogEntry[]): string[] {
  return log.flatMap((entry) =>
    entry.kind === "event" ? [`${entry.envelope.type} ${entry.envelope.task_id ?? "-"}`] : [],
  );
}

export const errorOf = (verdict: Envelope): ErrorPayload =>
  (verdict.payload as unknown as { error: ErrorPayload }).error;

/** All entries of a log as they are stored now. */
export async function readLog(bus: Bus, domain: Domain = "tasks"): Promise<LogEntry[]> {
  const state = await bus.streamState(logStream(domain));
  const entries: LogEntry[] = [];
  for (let seq = 1; seq <= (state?.lastSeq ?? 0); seq += 1) {
    const message = await bus.read(logStream(domain), seq);
    const entry = message === undefined ? undefined : decodeEntry(message);
    if (entry !== undefined) entries.push(entry);
  }
  return entries;
}

/** Waits until `look` answers something, at most ten seconds. */
export async function eventually<T>(
  look: () => T | undefined | Promise<T | undefined>,
): Promise<T> {
  const until = performance.now() + 30_000;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (performance.now() > until) throw new Error("did not happen in time");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
