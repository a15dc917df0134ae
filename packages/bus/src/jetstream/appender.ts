/**
 * The pipelined appender.
 *
 * A1. Every append names the stream and the sequence it expects to follow, so that of two writers one wins.
 * A2. After the first failure nothing is published and nothing is reported any more.
 * A3. Acknowledgements may arrive in any order; what is reported is the contiguous prefix.
 * A4. No promise, timer or subscription per append: one reply inbox, one timer for the oldest.
 */
import { HarmovelaError } from "@harmovela/failure";
import { createInbox, type Msg, type NatsConnection, type Subscription } from "@nats-io/nats-core";
import { callOut } from "../call-out.ts";
import { headerBlock, headerLines } from "../header-block.ts";
import type { Appender, AppenderOptions, AppendFailure, Headers } from "../port.ts";
import { type ApiError, isConflict } from "./errors.ts";
import { wireHeaders } from "./wire-headers.ts";

const IN_FLIGHT_DEFAULT = 512;
const ACK_TIMEOUT_MS_DEFAULT = 5_000;

interface PubAck {
  stream?: string;
  seq?: number;
  error?: ApiError;
}

export interface AppenderConnection {
  nats: NatsConnection;
  inboxPrefix: string;
  isConnected(): boolean;
  /** Calls once at the next loss of the connection; the result cancels it. */
  onceDisconnected(fn: () => void): () => void;
}

export class JetStreamAppender implements Appender {
  readonly #connection: AppenderConnection;
  readonly #options: AppenderOptions;
  readonly #maxInFlight: number;
  readonly #ackTimeoutMs: number;
  readonly #inbox: string;
  readonly #expectedStream: string;
  readonly #subscription: Subscription;
  readonly #cancelDisconnect: () => void;
  /** When each append in flight was sent, by sequence modulo the bound. */
  readonly #sentAt: Float64Array;
  /** Acknowledged beyond the contiguous prefix. */
  readonly #early = new Set<number>();
  #timer: NodeJS.Timeout | undefined;
  #isReportDue = false;
  #isDead = false;
  #last: number;
  #acked: number;

  constructor(connection: AppenderConnection, options: AppenderOptions) {
    this.#connection = connection;
    this.#options = options;
    this.#maxInFlight = options.maxInFlight ?? IN_FLIGHT_DEFAULT;
    this.#ackTimeoutMs = options.ackTimeoutMs ?? ACK_TIMEOUT_MS_DEFAULT;
    this.#last = options.last;
    this.#acked = options.last;
    this.#sentAt = new Float64Array(this.#maxInFlight);
    this.#expectedStream = `Nats-Expected-Stream: ${options.stream}\r\nNats-Expected-Last-Sequence: `;
    this.#inbox = createInbox(connection.inboxPrefix);
    this.#subscription = connection.nats.subscribe(`${this.#inbox}.*`, {
      callback: (error, message) => this.#onAnswer(error, message),
    });
    this.#cancelDisconnect = connection.onceDisconnected(() =>
      this.#fail({ reason: "unknown", apiCode: 0, message: "the connection was lost" }),
    );
  }

  get last(): number {
    return this.#last;
  }
  get acked(): number {
    return this.#acked;
  }
  get inFlight(): number {
    return this.#last - this.#acked;
  }
  get isDead(): boolean {
    return this.#isDead;
  }

  append(subject: string, headers: Headers, data: Uint8Array): number {
    if (this.#isDead) throw new HarmovelaError("closed", "the appender is dead");
    if (this.inFlight >= this.#maxInFlight) {
      throw new HarmovelaError("append_refused", "too many appends are in flight", {
        details: { in_flight: this.inFlight },
        retry: "now",
      });
    }
    const lines = headerLines(headers);
    const seq = this.#last + 1;
    // Built by hand: a header object of the client costs more than the rest of the append.
    const block = headerBlock(`${this.#expectedStream}${this.#last}\r\n${lines}`);
    this.#connection.nats.publish(subject, data, {
      reply: `${this.#inbox}.${seq}`,
      headers: wireHeaders(block),
    });
    this.#last = seq;
    this.#sentAt[seq % this.#maxInFlight] = performance.now();
    if (this.#timer === undefined) this.#arm(this.#ackTimeoutMs);
    return seq;
  }

  close(): Promise<void> {
    this.#release();
    return Promise.resolve();
  }

  #onAnswer(error: Error | null, message: Msg): void {
    if (this.#isDead) return;
    if (error) {
      this.#fail({ reason: "unknown", apiCode: 0, message: "the reply subject was lost" });
      return;
    }
    const subject = message.subject;
    const seq = Number(subject.slice(subject.lastIndexOf(".") + 1));
    if (message.data.length === 0) {
      // The server's own answer (503): no stream took it, so it is not stored.
      this.#fail({ reason: "refused", apiCode: 0, message: "no stream listens" }, seq);
      return;
    }
    let ack: PubAck;
    try {
      ack = message.json<PubAck>();
    } catch {
      // Whoever answered, it was not the stream.
      this.#fail({ reason: "unknown", apiCode: 0, message: "an answer has no known form" }, seq);
      return;
    }
    if (ack.error) {
      const apiCode = ack.error.err_code ?? 0;
      this.#fail(
        {
          reason: isConflict(apiCode) ? "conflict" : "refused",
          apiCode,
          message: ack.error.description ?? "refused",
        },
        seq,
      );
    } else if (ack.seq !== seq || ack.stream !== this.#options.stream) {
      this.#fail({ reason: "unknown", apiCode: 0, message: "stored somewhere else" }, seq);
    } else {
      this.#settle(seq);
    }
  }

  #settle(seq: number): void {
    if (seq !== this.#acked + 1) {
      if (seq > this.#acked) this.#early.add(seq);
      return;
    }
    this.#acked = seq;
    while (this.#early.size > 0 && this.#early.delete(this.#acked + 1)) this.#acked++;
    if (this.#isReportDue) return;
    // Acknowledgements arrive many in a packet: one report for all of them.
    this.#isReportDue = true;
    queueMicrotask(() => {
      this.#isReportDue = false;
      if (!this.#isDead) callOut(() => this.#options.onAcked(this.#acked));
    });
  }

  #arm(ms: number): void {
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (this.inFlight === 0) return;
      const oldest = this.#sentAt[(this.#acked + 1) % this.#maxInFlight] ?? 0;
      const left = oldest + this.#ackTimeoutMs - performance.now();
      if (left > 0) this.#arm(left);
      else this.#fail({ reason: "unknown", apiCode: 0, message: "no answer in time" });
    }, ms);
    this.#timer.unref();
  }

  #fail(failure: Omit<AppendFailure, "seq">, seq = this.#acked + 1): void {
    if (this.#isDead) return;
    this.#release();
    callOut(() => this.#options.onFailure({ ...failure, seq }));
  }

  #release(): void {
    this.#isDead = true;
    clearTimeout(this.#timer);
    this.#cancelDisconnect();
    this.#subscription.unsubscribe();
  }
}
