/**
 * The ordered reader: an own pull loop over short-lived consumers without acknowledgement.
 *
 * R1. `received` only grows; what is not above it is dropped. So no message is handed out twice.
 * R2. The consumer counts its deliveries; a step other than one means a loss: a new consumer starts
 *     after `received`. So no stored message is skipped. A step in the stream's own sequence is no loss:
 *     what is missing there was deleted, trimmed or filtered.
 * R3. Whatever else goes wrong (consumer gone, server restarted, heartbeats missed, pull refused) has the
 *     same answer: a new consumer.
 * R4. Asked for and not yet taken never exceeds the read-ahead bound in messages, nor by much in bytes,
 *     whatever comes next: the answers that keep a lease stand behind it on the same connection, and
 *     what is taken at once is worked off at once.
 */
import { createInbox, type Msg, type NatsConnection, type Subscription } from "@nats-io/nats-core";
import { callOut } from "../call-out.ts";
import type { Reader, ReaderOptions, StoredMessage } from "../port.ts";
import { askApi } from "./api.ts";
import { DeliveredMessage, parseDelivery } from "./stored-message.ts";

const BUFFERED_DEFAULT = 1_024;
/** Read-ahead in bytes, and what one pull may bring: more than the largest message. */
const BUFFERED_BYTES_MAX = 768 * 1024;
/** What a message is taken for before the first has arrived. */
const SIZE_ASSUMED = 1_024;
/** How slowly a large message is forgotten. */
const SIZE_DECAY = 0.97;
const NANOS_PER_MS = 1_000_000;
/** How long one pull waits on the server. */
const PULL_EXPIRES_MS = 30_000;
/** How often the server says that a waiting pull is alive. */
const HEARTBEAT_MS = 1_000;
/** Silent heartbeats before the consumer counts as gone. Counted in ticks, so that a busy process is not misled. */
const MISSED_HEARTBEATS_MAX = 3;
/** The server removes a consumer that nobody pulls from after this long. */
const INACTIVE_MS = 30_000;
const CREATE_TIMEOUT_MS = 2_000;
const RETRY_MS_MIN = 25;
const RETRY_MS_MAX = 1_000;

export interface ReaderConnection {
  nats: NatsConnection;
  inboxPrefix: string;
  isConnected(): boolean;
  onReconnected(fn: () => void): () => void;
}

/** One consumer and the subscription its deliveries arrive on. */
interface Incarnation {
  name: string;
  inbox: string;
  subscription: Subscription;
  /** Deliveries counted. */
  delivered: number;
  /** Asked for and neither arrived nor given up by the server. */
  outstanding: number;
  isReady: boolean;
  missedHeartbeats: number;
}

export class JetStreamReader implements Reader {
  readonly #connection: ReaderConnection;
  readonly #stream: string;
  readonly #options: ReaderOptions;
  readonly #maxBuffered: number;
  readonly #cancelReconnect: () => void;
  readonly #heartbeat: NodeJS.Timeout;
  #buffer: StoredMessage[] = [];
  #head = 0;
  #position: number;
  /** Highest stream sequence that has arrived. */
  #received: number;
  #isAnnounced = false;
  #isClosed = false;
  #current: Incarnation | undefined;
  #retry: NodeJS.Timeout | undefined;
  #retryMs = RETRY_MS_MIN;
  /** Size of recent messages, bytes; rises at once and falls slowly. */
  #size = SIZE_ASSUMED;

  constructor(connection: ReaderConnection, stream: string, options: ReaderOptions) {
    this.#connection = connection;
    this.#stream = stream;
    this.#options = options;
    this.#maxBuffered = options.maxBuffered ?? BUFFERED_DEFAULT;
    this.#position = options.after;
    this.#received = options.after;
    this.#cancelReconnect = connection.onReconnected(() => this.#restart(0));
    this.#heartbeat = setInterval(() => this.#tick(), HEARTBEAT_MS);
    this.#heartbeat.unref();
    if (connection.isConnected()) this.#start();
  }

  get position(): number {
    return this.#position;
  }
  get buffered(): number {
    return this.#buffer.length - this.#head;
  }

  take(max: number): StoredMessage[] {
    this.#isAnnounced = false;
    const count = Math.min(max, this.buffered);
    if (count <= 0) return [];
    let taken: StoredMessage[];
    if (count === this.buffered) {
      taken = this.#head === 0 ? this.#buffer : this.#buffer.slice(this.#head);
      this.#buffer = [];
      this.#head = 0;
    } else {
      taken = this.#buffer.slice(this.#head, this.#head + count);
      this.#head += count;
      // What was taken must not be held by the rest: messages may be large.
      if (2 * this.#head >= this.#buffer.length) {
        this.#buffer = this.#buffer.slice(this.#head);
        this.#head = 0;
      }
    }
    this.#position = taken[taken.length - 1]?.seq ?? this.#position;
    this.#pull();
    return taken;
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearInterval(this.#heartbeat);
    clearTimeout(this.#retry);
    this.#cancelReconnect();
    this.#buffer = [];
    this.#head = 0;
    this.#drop();
  }

  /** Gives the current consumer up; the server is told, and forgets it by itself if it does not hear. */
  #drop(): void {
    const old = this.#current;
    if (!old) return;
    this.#current = undefined;
    const { nats } = this.#connection;
    if (nats.isClosed()) return;
    old.subscription.unsubscribe();
    if (this.#connection.isConnected()) {
      nats.publish(`$JS.API.CONSUMER.DELETE.${this.#stream}.${old.name}`);
    }
  }

  #restart(afterMs: number): void {
    if (this.#isClosed) return;
    this.#drop();
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => this.#start(), afterMs);
    this.#retry.unref();
  }

  #restartLater(): void {
    const ms = this.#retryMs;
    this.#retryMs = Math.min(RETRY_MS_MAX, ms * 2);
    this.#restart(ms);
  }

  #start(): void {
    // Without a connection there is nothing to do: the reconnect starts the next one.
    if (this.#isClosed || !this.#connection.isConnected()) return;
    const { nats, inboxPrefix } = this.#connection;
    const inbox = createInbox(inboxPrefix);
    const incarnation: Incarnation = {
      name: `hv_${inbox.slice(inbox.lastIndexOf(".") + 1)}`,
      inbox,
      subscription: nats.subscribe(inbox, {
        callback: (error, message) => {
          if (this.#current !== incarnation) return;
          if (error) this.#restartLater();
          else this.#onMessage(incarnation, message);
        },
      }),
      delivered: 0,
      outstanding: 0,
      isReady: false,
      missedHeartbeats: 0,
    };
    this.#current = incarnation;
    this.#create(incarnation).then(
      () => {
        if (this.#current !== incarnation) return;
        incarnation.isReady = true;
        this.#pull();
      },
      () => {
        // Every reason ends alike: no stream yet, no leader yet, no answer. It is tried again.
        if (this.#current === incarnation) this.#restartLater();
      },
    );
  }

  async #create({ name }: Incarnation): Promise<void> {
    const { filter } = this.#options;
    await askApi(
      this.#connection.nats,
      `CONSUMER.CREATE.${this.#stream}.${name}${filter === undefined ? "" : `.${filter}`}`,
      {
        stream_name: this.#stream,
        config: {
          name,
          deliver_policy: "by_start_sequence",
          opt_start_seq: this.#received + 1,
          ack_policy: "none",
          replay_policy: "instant",
          max_deliver: 1,
          max_waiting: 64,
          inactive_threshold: INACTIVE_MS * NANOS_PER_MS,
          num_replicas: 1,
          mem_storage: true,
          ...(filter === undefined ? {} : { filter_subject: filter }),
        },
      },
      CREATE_TIMEOUT_MS,
    );
  }

  /** How many messages may be under way or waiting now (R4). */
  get #allowance(): number {
    return Math.max(1, Math.min(this.#maxBuffered, Math.floor(BUFFERED_BYTES_MAX / this.#size)));
  }

  /** Asks for more when at least half of the read-ahead is free. */
  #pull(): void {
    const current = this.#current;
    if (!current?.isReady || !this.#connection.isConnected()) return;
    const allowance = this.#allowance;
    const free = allowance - this.buffered - current.outstanding;
    if (free <= 0 || free * 2 < allowance) return;
    current.outstanding += free;
    this.#connection.nats.publish(
      `$JS.API.CONSUMER.MSG.NEXT.${this.#stream}.${current.name}`,
      JSON.stringify({
        batch: free,
        max_bytes: BUFFERED_BYTES_MAX,
        expires: PULL_EXPIRES_MS * NANOS_PER_MS,
        idle_heartbeat: HEARTBEAT_MS * NANOS_PER_MS,
      }),
      { reply: current.inbox },
    );
  }

  #onMessage(current: Incarnation, message: Msg): void {
    current.missedHeartbeats = 0;
    const info = parseDelivery(message.reply ?? "");
    if (!info) {
      this.#onStatus(current, message);
      return;
    }
    current.delivered += 1;
    if (info.consumerSeq !== current.delivered) {
      this.#restart(0);
      return;
    }
    this.#retryMs = RETRY_MS_MIN;
    if (current.outstanding > 0) current.outstanding -= 1;
    if (info.streamSeq > this.#received) {
      this.#received = info.streamSeq;
      this.#size = Math.max(message.data.length, 1, this.#size * SIZE_DECAY);
      this.#buffer.push(new DeliveredMessage(message, info));
      if (!this.#isAnnounced) {
        this.#isAnnounced = true;
        callOut(this.#options.onReady);
      }
    }
    if (current.outstanding * 2 <= this.#allowance) this.#pull();
  }

  /** A status instead of a message: alive (100), a pull has ended (404, 408, 409), or trouble. */
  #onStatus(current: Incarnation, message: Msg): void {
    const code = message.headers?.code ?? 0;
    if (code === 100) return;
    const left = message.headers?.get("Nats-Pending-Messages") ?? "";
    // A pull whose bytes or messages are used up says so by 409, and what was left of it.
    const isUsedUp = code === 409 && left !== "";
    if (code === 404 || code === 408 || isUsedUp) {
      // An old server may not say how much of the pull was left: then all of it.
      current.outstanding = left === "" ? 0 : Math.max(0, current.outstanding - Number(left));
      this.#pull();
      return;
    }
    this.#restartLater();
  }

  #tick(): void {
    const current = this.#current;
    // Nothing is expected while nothing is asked for or the connection is down.
    if (!current?.isReady || current.outstanding === 0 || !this.#connection.isConnected()) return;
    current.missedHeartbeats += 1;
    if (current.missedHeartbeats > MISSED_HEARTBEATS_MAX) this.#restart(0);
  }
}
