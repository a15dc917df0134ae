/** A broker in memory, time that moves when it is told to, and a peer that speaks the service's side of the protocol. */
import {
  type Bus,
  type CoreMessage,
  HEADER,
  intakeStream,
  intakeStreamSpec,
  logStreamSpec,
  logSubject,
  type MemoryBus,
  MemoryServer,
  parseIntakeSubject,
  parseRpcSubject,
  type Reader,
  type Subscription,
} from "@harmovela/bus";
import type { Domain, Envelope } from "@harmovela/envelope";
import { type JsonObject, type JsonValue, toHarmovelaError } from "@harmovela/failure";
import { ReplayDesk } from "@harmovela/host";
import { FakeClock } from "@harmovela/testkit";
import { type Agent, type AgentOptions, openAgent } from "../src/index.ts";

const STEPS_MAX = 500_000;

export class World implements AsyncDisposable {
  readonly clock = new FakeClock();
  readonly server: MemoryServer;
  readonly #open: (() => Promise<void>)[] = [];

  /** How agents get at the logs, unless they are told otherwise. */
  readonly access: "streams" | "services";

  constructor(latencyMs = 0, access: "streams" | "services" = "streams") {
    const { clock } = this;
    this.access = access;
    this.server = new MemoryServer({
      clock,
      now: () => 1_800_000_000_000 + Math.floor(clock.monotonic()),
      latencyMs,
    });
  }

  agent(options: Partial<AgentOptions> = {}): { agent: Agent; bus: MemoryBus } {
    const name = options.agent ?? "agent:a";
    const bus = this.server.connect({ name });
    const agent = openAgent(bus, {
      agent: name,
      clock: this.clock,
      random: () => 0.5,
      access: this.access,
      ...options,
    });
    this.#open.push(() => agent.close());
    return { agent, bus };
  }

  async peer(options: PeerOptions = {}): Promise<Peer> {
    const peer = new Peer(this.server.connect({ name: "peer" }), this.clock, options);
    await this.run(peer.open());
    return peer;
  }

  /** Lets things happen until a promise is settled; throws when nothing is left that could settle it. */
  async run<T>(promise: Promise<T>, stepsMax = STEPS_MAX): Promise<T> {
    let isSettled = false;
    const mark = (): void => {
      isSettled = true;
    };
    promise.then(mark, mark);
    for (let step = 0; step < stepsMax; step++) {
      await turn();
      if (isSettled) return promise;
      this.clock.runNext();
    }
    throw new Error("it never settles");
  }

  /** Lets things happen for so long. */
  async pass(ms: number): Promise<void> {
    await this.run(new Promise<void>((resolve) => this.clock.after(ms, resolve)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const close of this.#open) await this.run(close());
  }
}

/** What has been resolved already is carried on. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

export interface Judged {
  envelope: Envelope;
  /** How often this id has arrived, this one included. */
  count: number;
}

export interface PeerOptions {
  domain?: Domain;
  /** "accept", "ignore" (nobody judges it), or the error of a refusal. Default "accept". */
  judge?: (judged: Judged) => "accept" | "ignore" | JsonObject;
  /** Whether the verdict gets lost. Default never. */
  loses?: (judged: Judged) => boolean;
  reads?: Record<string, (params: JsonObject) => JsonValue>;
}

export class Peer {
  readonly bus: MemoryBus;
  /** Everything that arrived, duplicates included. */
  readonly arrivals: { id: string; at: number; bytes: string; replyTo: string }[] = [];
  /** Ids in the log, in order. */
  readonly logged: string[] = [];
  readonly domain: Domain;
  readonly #clock: FakeClock;
  readonly #options: PeerOptions;
  readonly #counts = new Map<string, number>();
  readonly #cursors = new Map<string, string>();
  readonly #replays: ReplayDesk;
  #questions: Subscription | undefined;
  #reader: Reader | undefined;
  #work: Promise<void> = Promise.resolve();

  constructor(bus: MemoryBus, clock: FakeClock, options: PeerOptions) {
    this.bus = bus;
    this.#clock = clock;
    this.#options = options;
    this.domain = options.domain ?? "tasks";
    this.#replays = new ReplayDesk({ bus, clock, domain: this.domain });
  }

  async open(): Promise<void> {
    await this.bus.provision(intakeStreamSpec(this.domain));
    await this.bus.provision(logStreamSpec(this.domain));
    this.#listen();
    this.#reader = this.bus.openReader(intakeStream(this.domain), {
      after: 0,
      onReady: () => {
        this.#work = this.#work.then(() => this.#drain());
      },
    });
  }

  /** Hears no question until it speaks again. */
  silence(): { speak(): void } {
    this.#questions?.close();
    return { speak: () => this.#listen() };
  }

  #listen(): void {
    this.#questions = this.bus.subscribe(
      `hv.*.rpc.*.${this.domain}.*`,
      (message) => void this.#answer(message),
    );
  }

  /** An entry that nobody asked for. */
  async append(
    envelope: Partial<Envelope> & { type: string },
    more: { tenant?: string; headers?: Record<string, string> } = {},
  ): Promise<string> {
    const complete: Envelope = {
      spec_version: "0.2",
      id: `evt_${this.logged.length}`,
      source: "service:peer",
      created_at: "2026-11-30T10:00:00Z",
      payload: {},
      ...envelope,
    };
    const { tenant = "default", headers = {} } = more;
    const { source, target, type } = complete;
    const subject = logSubject({
      tenant,
      domain: this.domain,
      source,
      type,
      ...(target === undefined ? {} : { target }),
    });
    const frame = { [HEADER.cause]: "in:1", [HEADER.at]: "1", [HEADER.epoch]: "1" };
    const { stream, seq } = await (this.bus as Bus).store(
      subject,
      { ...frame, ...headers },
      encode(complete),
    );
    this.logged.push(complete.id);
    return `${stream}:${seq}`;
  }

  async #drain(): Promise<void> {
    for (const message of this.#reader?.take(1_000) ?? []) {
      const to = parseIntakeSubject(message.subject);
      const replyTo = message.header(HEADER.replyTo);
      const bytes = new TextDecoder().decode(message.data);
      const envelope = JSON.parse(bytes) as Envelope;
      const count = (this.#counts.get(envelope.id) ?? 0) + 1;
      this.#counts.set(envelope.id, count);
      this.arrivals.push({ id: envelope.id, at: this.#clock.monotonic(), bytes, replyTo });
      const judged = { envelope, count };
      const judgement = this.#options.judge?.(judged) ?? "accept";
      if (judgement === "ignore" || !to) continue;
      let payload: JsonObject;
      if (judgement === "accept") {
        const known = this.#cursors.get(envelope.id);
        const cursor = known ?? (await this.append(envelope, { tenant: to.tenant }));
        this.#cursors.set(envelope.id, cursor);
        payload = { acknowledged_event_id: envelope.id, cursor };
        if (known !== undefined) payload.duplicate = true;
      } else {
        payload = { acknowledged_event_id: envelope.id, error: judgement };
      }
      if (replyTo === "" || this.#options.loses?.(judged)) continue;
      const type = judgement === "accept" ? "event.acknowledged" : "event.rejected";
      this.bus.publish(replyTo, {}, encode({ type, source: "service:peer", payload }));
    }
  }

  async #answer(message: CoreMessage): Promise<void> {
    const to = parseRpcSubject(message.subject);
    const params = JSON.parse(new TextDecoder().decode(message.data)) as JsonObject;
    const read = this.#options.reads?.[to?.verb ?? ""];
    const answer =
      to?.verb === "replay" && !read
        ? await this.#replays.answer(to, params).then(
            (result) => ({ result }),
            (error: unknown) => ({ error: toHarmovelaError(error).toErrorPayload() }),
          )
        : answerOf(read, params);
    if (this.bus.isConnected) this.bus.publish(message.reply, {}, encode(answer));
  }
}

/** What a read throws is what it refuses with. */
function answerOf(read: ((params: JsonObject) => JsonValue) | undefined, params: JsonObject) {
  if (!read) return { error: { code: "invalid_query", message: "no such read", retryable: false } };
  try {
    return { position: "HV_LOG_TASKS:1", result: read(params) };
  } catch (error) {
    return { error: toHarmovelaError(error).toErrorPayload() };
  }
}

function encode(value: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}
