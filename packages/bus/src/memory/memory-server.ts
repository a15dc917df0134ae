/**
 * A NATS server in memory, with just the verbs that the bus needs. Time, order and faults come from
 * outside: same calls, same clock, same outcome.
 */
import type { Instant } from "@harmovela/envelope";
import { HarmovelaError } from "@harmovela/failure";
import type { ApiError } from "../api-error.ts";
import type { Clock } from "../clock.ts";
import { EMPTY_BLOCK, headerText, headerValue } from "../header-block.ts";
import type { BlobsOptions, StreamSpec, StreamState } from "../port.ts";
import { BLOB_BUCKET } from "../streams.ts";
import { MemoryFaults } from "./faults.ts";
import { matchesSubject, republished } from "./match.ts";
import { MemoryBlobs } from "./memory-blobs.ts";
import { MemoryBus } from "./memory-bus.ts";
import { MemoryLeases } from "./memory-leases.ts";
import { type MemoryMessage, MemoryStream } from "./memory-stream.ts";

export interface MemoryServerOptions {
  clock: Clock;
  /** Broker time. */
  now: () => Instant;
  /** Of each way. Default 0: the next turn. */
  latencyMs?: number;
}

/** A plain message on its way. */
export interface Publication {
  subject: string;
  /** Header block as text. */
  block: string;
  data: Uint8Array;
  /** "" when no answer is expected. */
  reply: string;
}

export interface ServerSubscription {
  readonly bus: MemoryBus;
  readonly filter: string;
  readonly queue: string | undefined;
  readonly onMessage: (message: Publication) => void;
}

const encoder = new TextEncoder();
const NO_DATA = new Uint8Array(0);

export class MemoryServer {
  readonly clock: Clock;
  readonly faults: MemoryFaults;
  readonly leases: MemoryLeases;
  readonly #buckets = new Map<string, MemoryBlobs>();
  readonly #options: MemoryServerOptions;
  readonly #streams = new Map<string, MemoryStream>();
  readonly #subscriptions = new Set<ServerSubscription>();
  readonly #clients = new Set<MemoryBus>();
  /** Whose turn it is in each queue group. */
  readonly #turns = new Map<string, number>();
  #serial = 0;

  constructor(options: MemoryServerOptions) {
    this.#options = options;
    this.clock = options.clock;
    this.faults = new MemoryFaults(this);
    this.leases = new MemoryLeases(options.clock);
  }

  /**
   * A further connection; `name` is what faults call it by. `clock` is the client's own time (a process
   * that stands still), `uplink` the time on its way to the server; both are the server's by default.
   */
  connect(options: {
    name: string;
    inboxPrefix?: string;
    clock?: Clock;
    uplink?: Clock;
  }): MemoryBus {
    const bus = new MemoryBus(this, {
      name: options.name,
      inboxPrefix: options.inboxPrefix ?? "_INBOX",
      latencyMs: this.#options.latencyMs ?? 0,
      clock: options.clock ?? this.clock,
      uplink: options.uplink ?? this.clock,
    });
    this.#clients.add(bus);
    return bus;
  }

  /** A number that no other call gets. */
  nextSerial(): number {
    this.#serial += 1;
    return this.#serial;
  }

  clients(): MemoryBus[] {
    return [...this.#clients];
  }

  clientsNamed(name: string): MemoryBus[] {
    return this.clients().filter((bus) => bus.name === name);
  }

  /** Throws `no_service` for one that is not there and may not be made. */
  bucket({ bucket: name = BLOB_BUCKET, mayCreate = true, maxBytes }: BlobsOptions): MemoryBlobs {
    const known = this.#buckets.get(name);
    if (!known && !mayCreate) throw new HarmovelaError("no_service", "there is no such bucket");
    const bucket = known ?? new MemoryBlobs(() => this.#options.now());
    this.#buckets.set(name, bucket);
    if (mayCreate && maxBytes !== undefined) bucket.limit(maxBytes);
    return bucket;
  }

  forget(bus: MemoryBus): void {
    this.#clients.delete(bus);
    this.dropSubscriptions(bus);
  }

  subscribe(subscription: ServerSubscription): void {
    this.#subscriptions.add(subscription);
  }

  unsubscribe(subscription: ServerSubscription): void {
    this.#subscriptions.delete(subscription);
  }

  dropSubscriptions(bus: MemoryBus): void {
    for (const subscription of this.#subscriptions) {
      if (subscription.bus === bus) this.#subscriptions.delete(subscription);
    }
  }

  provision(spec: StreamSpec): StreamState {
    const is = this.stream(spec.name);
    if (!is) return this.#create(spec).state();
    const asked = { maxBytes: is.spec.maxBytes, ...spec };
    const differences = Object.keys({ ...asked, ...is.spec }).filter((key) => {
      const field = key as keyof StreamSpec;
      return JSON.stringify(asked[field]) !== JSON.stringify(is.spec[field]);
    });
    if (differences.length === 0) return is.state();
    throw new HarmovelaError(
      "stream_mismatch",
      `stream ${spec.name} is not as asked for: ${differences.join("; ")}`,
      { details: { stream: spec.name, differences } },
    );
  }

  /** With what is past its age already removed. */
  stream(name: string): MemoryStream | undefined {
    const stream = this.#streams.get(name);
    stream?.expire(this.#options.now());
    return stream;
  }

  deleteStream(name: string): void {
    this.#streams.delete(name);
  }

  /** What a client has published arrives here. */
  receive(publication: Publication): void {
    let isHeard = this.#deliver(publication);
    for (const stream of [...this.#streams.values()]) {
      if (!stream.takes(publication.subject)) continue;
      isHeard = true;
      this.#arrive(stream, publication);
    }
    if (!isHeard && publication.reply !== "") {
      this.#deliver({
        subject: publication.reply,
        block: NO_RESPONDERS_BLOCK,
        data: NO_DATA,
        reply: "",
      });
    }
  }

  #create(spec: StreamSpec): MemoryStream {
    const made = new Date(this.#options.now()).toISOString();
    // Two incarnations made in the same millisecond still differ.
    const created = made.replace("Z", `${String(this.nextSerial()).padStart(6, "0")}Z`);
    const stream = new MemoryStream(structuredClone(spec), created);
    this.#streams.set(spec.name, stream);
    return stream;
  }

  #arrive(stream: MemoryStream, publication: Publication): void {
    const { subject, block, data, reply } = publication;
    const { name } = stream.spec;
    const isChained = headerValue(block, "Nats-Expected-Last-Sequence") !== "";
    const fault = this.faults.onArrival?.({ stream: name, subject, isChained });
    if (fault?.kind === "lost") return;
    if (fault?.kind === "refused") {
      this.#answer(reply, name, {
        error: { code: 503, err_code: fault.apiCode, description: fault.description },
      });
      return;
    }
    stream.expire(this.#options.now());
    const outcome = stream.append(this.#options.now(), subject, block, data);
    if ("stored" in outcome) this.#republish(stream, outcome.stored);
    if (fault?.kind === "unanswered") return;
    if (fault?.kind === "late") {
      this.clock.after(fault.ms, () => this.#answer(reply, name, outcome));
    } else {
      this.#answer(reply, name, outcome);
    }
  }

  #republish(stream: MemoryStream, stored: MemoryMessage): void {
    const rule = stream.spec.republish;
    const subject = rule && republished(rule, stored.subject);
    if (subject === undefined) return;
    const lines = `Nats-Stream: ${stream.spec.name}\r\nNats-Subject: ${stored.subject}\r\nNats-Sequence: ${stored.seq}\r\n`;
    const block = stored.block.replace(/\r\n$/, `${lines}\r\n`);
    this.#deliver({ subject, block, data: stored.data, reply: "" });
  }

  #answer(
    reply: string,
    stream: string,
    outcome: { stored: MemoryMessage } | { error: ApiError },
  ): void {
    if (reply === "") return;
    const ack =
      "stored" in outcome
        ? { stream, seq: outcome.stored.seq }
        : { stream, seq: 0, error: outcome.error };
    const data = encoder.encode(JSON.stringify(ack));
    this.#deliver({ subject: reply, block: EMPTY_BLOCK, data, reply: "" });
  }

  /** To every plain subscription, and to one of each queue group; whether there was any. */
  #deliver(publication: Publication): boolean {
    const groups = new Map<string, ServerSubscription[]>();
    let isHeard = false;
    for (const subscription of this.#subscriptions) {
      if (!matchesSubject(subscription.filter, publication.subject)) continue;
      isHeard = true;
      if (subscription.queue === undefined) {
        this.#send(subscription, publication);
        continue;
      }
      const key = `${subscription.queue} ${subscription.filter}`;
      const members = groups.get(key);
      if (members) members.push(subscription);
      else groups.set(key, [subscription]);
    }
    for (const [key, members] of groups) {
      const turn = this.#turns.get(key) ?? 0;
      this.#turns.set(key, turn + 1);
      const member = members[turn % members.length];
      if (member) this.#send(member, publication);
    }
    return isHeard;
  }

  #send(subscription: ServerSubscription, publication: Publication): void {
    subscription.bus.link.toClient(() => {
      if (this.#subscriptions.has(subscription)) subscription.onMessage(publication);
    });
  }
}

const NO_RESPONDERS_BLOCK = headerText("", "503");
