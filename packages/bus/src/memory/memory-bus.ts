/** One client's connection to a memory server. */
import { HarmovelaError } from "@harmovela/failure";
import { API_ERROR, readPubAck, toApiFailure } from "../api-error.ts";
import { callOut } from "../call-out.ts";
import { ChainAppender } from "../chain-appender.ts";
import type { Clock } from "../clock.ts";
import { headerLines, headerText, headerValue } from "../header-block.ts";
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
import { Link } from "./link.ts";
import { MemoryReader } from "./memory-reader.ts";
import type { MemoryServer, Publication, ServerSubscription } from "./memory-server.ts";
import type { MemoryStream } from "./memory-stream.ts";

const ASK_TIMEOUT_MS = 5_000;
const STORE_TIMEOUT_MS = 5_000;

export interface MemoryBusOptions {
  name: string;
  inboxPrefix: string;
  latencyMs: number;
  /** The client's own time: its timers, and the turns in which something reaches it. */
  clock: Clock;
  /** Time on the way to the server. */
  uplink: Clock;
}

export class MemoryBus implements Bus {
  readonly name: string;
  readonly inboxPrefix: string;
  readonly link: Link;
  readonly #server: MemoryServer;
  readonly #clock: Clock;
  readonly #subscriptions = new Set<ServerSubscription>();
  readonly #readers = new Set<MemoryReader>();
  readonly #onceDisconnected = new Set<() => void>();
  #isClosed = false;

  constructor(server: MemoryServer, options: MemoryBusOptions) {
    this.#server = server;
    this.name = options.name;
    this.inboxPrefix = options.inboxPrefix.replace(/\.$/, "");
    this.#clock = options.clock;
    this.link = new Link(options);
  }

  get isConnected(): boolean {
    return !this.#isClosed && this.link.isUp;
  }

  provision(spec: StreamSpec): Promise<StreamState> {
    return this.#ask(() => this.#server.provision(spec));
  }

  streamState(stream: string): Promise<StreamState | undefined> {
    return this.#ask(() => this.#server.stream(stream)?.state());
  }

  read(stream: string, seq: number): Promise<StoredMessage | undefined> {
    return this.#get(stream, (found) => found.get(seq));
  }

  lastOn(stream: string, subject: string): Promise<StoredMessage | undefined> {
    return this.#get(stream, (found) => found.lastOn(subject));
  }

  next(stream: string, after: number, filter: string): Promise<StoredMessage | undefined> {
    return this.#get(stream, (found) => found.after(after, 1, filter)[0]);
  }

  #get(
    stream: string,
    pick: (found: MemoryStream) => StoredMessage | undefined,
  ): Promise<StoredMessage | undefined> {
    return this.#ask(() => {
      const found = this.#server.stream(stream);
      if (found) return pick(found);
      throw toApiFailure({
        code: 404,
        err_code: API_ERROR.streamNotFound,
        description: "stream not found",
      });
    });
  }

  openReader(stream: string, options: ReaderOptions): Reader {
    const reader: MemoryReader = new MemoryReader(
      { server: this.#server, link: this.link, onClose: () => this.#readers.delete(reader) },
      stream,
      options,
    );
    this.#readers.add(reader);
    return reader;
  }

  openAppender(options: AppenderOptions): Appender {
    const replicas = this.#server.stream(options.stream)?.spec.replicas;
    return new ChainAppender(this.#wire, options, replicas === 1);
  }

  openLease(options: LeaseOptions): Lease {
    const { leases } = this.#server;
    return new LeaseKeeper(
      {
        clock: this.#clock,
        openStore: async (timeoutMs) => {
          await this.#ask(() => leases.open(options.ttlMs), timeoutMs);
          return {
            put: (key, value, revision) =>
              this.#ask(() => leases.put(key, value, revision), timeoutMs),
            giveUp: async (key, revision) => {
              await this.#ask(() => leases.put(key, "", revision), timeoutMs);
            },
            last: (key) => this.#ask(() => leases.last(key), timeoutMs),
          };
        },
        jitter: () => 0.5,
        id: String(this.#server.nextSerial()),
      },
      options,
    );
  }

  openBlobs(options: BlobsOptions): Blobs {
    const bucket = () => this.#server.bucket(options);
    return {
      put: (name, data, notes) => this.#ask(() => bucket().put(name, data, notes)),
      get: (name) => this.#ask(() => bucket().get(name)),
      list: () => this.#ask(() => bucket().list()),
      page: (from, limit) => this.#ask(() => bucket().page(from, limit)),
      remove: (name) => this.#ask(() => bucket().remove(name)),
      removeIncomplete: () => this.#ask(() => bucket().incomplete),
    };
  }

  trim(stream: string, firstSeq: number): Promise<void> {
    return this.#ask(() => {
      if (firstSeq < 1) throw new HarmovelaError("invalid_argument", "sequences begin with 1");
      this.#server.stream(stream)?.trim(firstSeq);
    });
  }

  async store(
    subject: string,
    headers: Headers,
    data: Uint8Array,
    timeoutMs = STORE_TIMEOUT_MS,
  ): Promise<{ stream: string; seq: number }> {
    const { stream, seq } = readPubAck(
      (await this.request(subject, headers, data, timeoutMs)).data,
    );
    return { stream, seq };
  }

  publish(subject: string, headers: Headers, data: Uint8Array): void {
    this.#send(subject, headerLines(headers), data, "");
  }

  request(
    subject: string,
    headers: Headers,
    data: Uint8Array,
    timeoutMs: number,
  ): Promise<CoreMessage> {
    return new Promise((resolve, reject) => {
      const inbox = this.newInbox();
      const end = (): void => {
        cancelTimer();
        subscription.close();
      };
      const subscription = this.subscribe(inbox, (message) => {
        end();
        const isNobody = message.data.length === 0 && (message as ReceivedMessage).status === "503";
        if (!isNobody) resolve(message);
        else reject(new HarmovelaError("no_service", "nobody listens on that subject"));
      });
      const cancelTimer = this.#clock.after(timeoutMs, () => {
        end();
        reject(new HarmovelaError("timeout", "no answer in time"));
      });
      try {
        this.#send(subject, headerLines(headers), data, inbox);
      } catch (error) {
        end();
        reject(error);
      }
    });
  }

  subscribe(
    subject: string,
    onMessage: (message: CoreMessage) => void,
    queue?: string,
  ): Subscription {
    this.#assertOpen();
    const subscription: ServerSubscription = {
      bus: this,
      filter: subject,
      queue,
      onMessage: (publication) => {
        if (this.#subscriptions.has(subscription)) {
          callOut(() => onMessage(new ReceivedMessage(publication)));
        }
      },
    };
    this.#subscriptions.add(subscription);
    this.link.toServer(() => this.#server.subscribe(subscription));
    return {
      close: () => {
        this.#subscriptions.delete(subscription);
        this.link.toServer(() => this.#server.unsubscribe(subscription));
      },
    };
  }

  newInbox(): string {
    return `${this.inboxPrefix}.${String(this.#server.nextSerial()).padStart(8, "0")}`;
  }

  flush(): Promise<void> {
    return this.#ask(() => undefined);
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#lost();
    this.#isClosed = true;
    this.link.cut("delivered");
    for (const reader of [...this.#readers]) await reader.close();
    this.#subscriptions.clear();
    this.#server.forget(this);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** The link is cut (`MemoryFaults.partition`). */
  disconnected(inFlight: "lost" | "delivered"): void {
    if (!this.isConnected) return;
    this.link.cut(inFlight);
    this.#server.dropSubscriptions(this);
    for (const reader of this.#readers) reader.disconnected();
    this.#lost();
  }

  /** The link is there again; subscriptions and readers go on. */
  reconnected(): void {
    if (this.#isClosed || this.link.isUp) return;
    this.link.mend();
    for (const subscription of this.#subscriptions) {
      this.link.toServer(() => this.#server.subscribe(subscription));
    }
    for (const reader of this.#readers) reader.reconnected();
  }

  #lost(): void {
    const waiting = [...this.#onceDisconnected];
    this.#onceDisconnected.clear();
    for (const fn of waiting) callOut(fn);
  }

  #send(subject: string, lines: string, data: Uint8Array, reply: string): void {
    this.#assertOpen();
    if (!isPublishable(subject)) {
      throw new HarmovelaError("invalid_argument", "that subject cannot be published on");
    }
    const publication = { subject, block: headerText(lines), data, reply };
    this.link.toServer(() => this.#server.receive(publication));
  }

  #assertOpen(): void {
    if (this.#isClosed) throw new HarmovelaError("closed", "the connection is closed");
  }

  /** Runs something on the server and brings the outcome back. */
  #ask<T>(fn: () => T, timeoutMs = ASK_TIMEOUT_MS): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) {
        reject(new HarmovelaError("closed", "the connection is closed"));
        return;
      }
      const cancelTimer = this.#clock.after(timeoutMs, () =>
        reject(new HarmovelaError("timeout", "no answer in time")),
      );
      this.link.toServer(() => {
        let answer: () => void;
        try {
          const value = fn();
          answer = () => resolve(value);
        } catch (error) {
          answer = () => reject(error);
        }
        this.link.toClient(() => {
          cancelTimer();
          answer();
        });
      });
    });
  }

  get #wire(): Wire {
    return {
      clock: this.#clock,
      newInbox: () => this.newInbox(),
      publish: (subject, lines, data, reply) => this.#send(subject, lines, data, reply),
      subscribe: (subject, onMessage) => this.subscribe(subject, onMessage),
      onceDisconnected: (fn) => {
        this.#onceDisconnected.add(fn);
        return () => this.#onceDisconnected.delete(fn);
      },
    };
  }
}

class ReceivedMessage implements CoreMessage {
  readonly subject: string;
  readonly reply: string;
  readonly data: Uint8Array;
  readonly #block: string;

  constructor({ subject, reply, data, block }: Publication) {
    this.subject = subject;
    this.reply = reply;
    this.data = data;
    this.#block = block;
  }

  header(name: string): string {
    return headerValue(this.#block, name);
  }

  /** The server's own status; "" on a message of another client. */
  get status(): string {
    return /^NATS\/1\.0 (\d+)/.exec(this.#block)?.[1] ?? "";
  }
}
