/** The bus over a connection to NATS with JetStream. */
import { randomUUID } from "node:crypto";
import type { Instant } from "@harmovela/envelope";
import { HarmovelaError } from "@harmovela/failure";
import { createInbox, type NatsConnection } from "@nats-io/nats-core";
import { API_ERROR, apiCodeOf, readPubAck, unconfirmed } from "../api-error.ts";
import { callOut } from "../call-out.ts";
import { ChainAppender } from "../chain-appender.ts";
import { systemClock } from "../clock.ts";
import { headerBlock, headerValue } from "../header-block.ts";
import { LeaseKeeper } from "../lease-keeper.ts";
import type {
  Appender,
  AppenderOptions,
  Blobs,
  BlobsOptions,
  Bus,
  CoreMessage,
  Headers,
  Lease,
  LeaseOptions,
  Reader,
  ReaderOptions,
  StoredMessage,
  StreamSpec,
  StreamState,
  Subscription,
} from "../port.ts";
import { isPublishable } from "../subjects.ts";
import type { Wire } from "../wire.ts";
import { API_TIMEOUT_MS, askApi } from "./api.ts";
import { BlobBucket, trimStream } from "./blob-bucket.ts";
import { type ConnectionChange, ConnectionState } from "./connection-state.ts";
import { toBusError } from "./errors.ts";
import { LeaseBucket } from "./lease-bucket.ts";
import { provisionStream, readStreamState } from "./provision.ts";
import { JetStreamReader } from "./reader.ts";
import { ReceivedMessage } from "./stored-message.ts";
import { toWireHeaders, wireHeaders } from "./wire-headers.ts";

const STORE_TIMEOUT_MS = 5_000;

interface RawMessage {
  message: { subject: string; seq: number; data?: string; hdrs?: string; time: string };
}

export class JetStreamBus implements Bus {
  /** The client's connection, for what the port does not offer. */
  readonly nats: NatsConnection;
  readonly inboxPrefix: string;
  readonly #state: ConnectionState;
  /** How many copies each stream has, as far as this connection has asked. */
  readonly #replicas = new Map<string, number>();

  constructor(
    nats: NatsConnection,
    inboxPrefix: string,
    onChange: ((change: ConnectionChange) => void) | undefined,
  ) {
    this.nats = nats;
    this.inboxPrefix = inboxPrefix;
    this.#state = new ConnectionState(nats, onChange);
  }

  /** The version of the server connected to; undefined while there is none. */
  get serverVersion(): string | undefined {
    return this.nats.info?.version;
  }

  get isConnected(): boolean {
    return this.#state.isConnected && !this.nats.isClosed();
  }

  async provision(spec: StreamSpec): Promise<StreamState> {
    const known = await this.#ask(() => provisionStream(this.nats, spec));
    this.#replicas.set(spec.name, known.replicas);
    return known.state;
  }

  async streamState(stream: string): Promise<StreamState | undefined> {
    const known = await this.#ask(() => readStreamState(this.nats, stream));
    if (known) this.#replicas.set(stream, known.replicas);
    return known?.state;
  }

  read(stream: string, seq: number): Promise<StoredMessage | undefined> {
    return this.#get(stream, { seq });
  }

  lastOn(stream: string, subject: string): Promise<StoredMessage | undefined> {
    return this.#get(stream, { last_by_subj: subject });
  }

  next(stream: string, after: number, filter: string): Promise<StoredMessage | undefined> {
    return this.#get(stream, { seq: after + 1, next_by_subj: filter });
  }

  async #get(stream: string, which: object): Promise<StoredMessage | undefined> {
    let answer: RawMessage;
    try {
      // Not the client's `getMessage`: it gives headers decoded only, and throws on all of them when one
      // has a name that the server stores and it does not allow. A reader sees the others, and so must this.
      answer = await this.#ask(() =>
        askApi<RawMessage>(this.nats, `STREAM.MSG.GET.${stream}`, which),
      );
    } catch (error) {
      if (apiCodeOf(error) === API_ERROR.noMessageFound) return undefined;
      throw error;
    }
    const { message } = answer;
    const block = Buffer.from(message.hdrs ?? "", "base64").toString();
    return {
      seq: message.seq,
      time: Date.parse(message.time) as Instant,
      subject: message.subject,
      data: Buffer.from(message.data ?? "", "base64"),
      header: (name) => headerValue(block, name),
    };
  }

  openReader(stream: string, options: ReaderOptions): Reader {
    return new JetStreamReader(
      {
        nats: this.nats,
        inboxPrefix: this.inboxPrefix,
        isConnected: () => this.isConnected,
        onReconnected: (fn) => this.#state.onReconnected(fn),
      },
      stream,
      options,
    );
  }

  openAppender(options: AppenderOptions): Appender {
    return new ChainAppender(this.#wire, options, this.#replicas.get(options.stream) === 1);
  }

  openLease(options: LeaseOptions): Lease {
    const { ttlMs, replicas = 1 } = options;
    return new LeaseKeeper(
      {
        clock: systemClock,
        openStore: (timeoutMs) => LeaseBucket.open(this.nats, { ttlMs, replicas, timeoutMs }),
        jitter: Math.random,
        id: randomUUID(),
      },
      options,
    );
  }

  openBlobs(options: BlobsOptions): Blobs {
    return new BlobBucket(this.nats, options, (question) => this.#ask(question));
  }

  trim(stream: string, firstSeq: number): Promise<void> {
    return this.#ask(() => trimStream(this.nats, stream, firstSeq));
  }

  async store(
    subject: string,
    headers: Headers,
    data: Uint8Array,
    timeoutMs = STORE_TIMEOUT_MS,
  ): Promise<{ stream: string; seq: number }> {
    const answer = await this.request(subject, headers, data, timeoutMs);
    const { stream, seq, isDuplicate } = readPubAck(answer.data);
    if (isDuplicate) await this.#confirm(stream, seq, data);
    return { stream, seq };
  }

  /** After a change of leader a server may take a message for a duplicate that was never stored. */
  async #confirm(stream: string, seq: number, data: Uint8Array): Promise<void> {
    let stored: StoredMessage | undefined;
    try {
      stored = await this.read(stream, seq);
    } catch (cause) {
      throw unconfirmed({ stream, seq }, cause);
    }
    if (!stored || Buffer.compare(stored.data, data) !== 0) throw unconfirmed({ stream, seq });
  }

  publish(subject: string, headers: Headers, data: Uint8Array): void {
    assertPublishable(subject);
    const wire = toWireHeaders(headers);
    try {
      this.nats.publish(subject, data, wire === undefined ? undefined : { headers: wire });
    } catch (caught) {
      throw toBusError(caught);
    }
  }

  async request(
    subject: string,
    headers: Headers,
    data: Uint8Array,
    timeoutMs: number,
  ): Promise<CoreMessage> {
    assertPublishable(subject);
    const wire = toWireHeaders(headers);
    try {
      const options = { timeout: timeoutMs, ...(wire === undefined ? {} : { headers: wire }) };
      return new ReceivedMessage(
        await this.#state.ask(timeoutMs, () => this.nats.request(subject, data, options)),
      );
    } catch (caught) {
      throw toBusError(caught);
    }
  }

  subscribe(
    subject: string,
    onMessage: (message: CoreMessage) => void,
    queue?: string,
  ): Subscription {
    try {
      const subscription = this.nats.subscribe(subject, {
        ...(queue === undefined ? {} : { queue }),
        callback: (error, message) => {
          // An error here is a forbidden subscription; the client has closed it.
          if (!error) callOut(() => onMessage(new ReceivedMessage(message)));
        },
      });
      return { close: () => subscription.unsubscribe() };
    } catch (caught) {
      throw toBusError(caught);
    }
  }

  newInbox(): string {
    return createInbox(this.inboxPrefix);
  }

  async flush(): Promise<void> {
    try {
      await this.nats.flush();
    } catch (caught) {
      throw toBusError(caught);
    }
  }

  async close(): Promise<void> {
    if (!this.nats.isClosed()) await this.nats.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** About streams. */
  #ask<T>(question: () => Promise<T>): Promise<T> {
    return this.#state.ask(API_TIMEOUT_MS, question);
  }

  get #wire(): Wire {
    return {
      clock: systemClock,
      newInbox: () => this.newInbox(),
      publish: (subject, lines, data, reply) => {
        // No check of the subject here: appends go to subjects that were built, and the client checks them.
        try {
          this.nats.publish(subject, data, { reply, headers: wireHeaders(headerBlock(lines)) });
        } catch (caught) {
          throw toBusError(caught);
        }
      },
      subscribe: (subject, onMessage, onLost) => {
        const subscription = this.nats.subscribe(subject, {
          callback: (error, message) => {
            if (error) callOut(onLost);
            else callOut(() => onMessage(new ReceivedMessage(message)));
          },
        });
        return { close: () => subscription.unsubscribe() };
      },
      onceDisconnected: (fn) => this.#state.onceDisconnected(fn),
    };
  }
}

/** The server ends the connection of whoever sends a subject that is too long; a wildcard would be stored. */
function assertPublishable(subject: string): void {
  if (isPublishable(subject)) return;
  throw new HarmovelaError("invalid_argument", "that subject cannot be published on");
}
