/**
 * The pipelined appender.
 *
 * A1. Every append names the stream and the sequence it expects to follow, so that of two writers one wins.
 *     That alone does not hold for what is in flight behind a refused append: when another writer has
 *     appended exactly as much as was refused, the next in flight fits again. So, where the stream has one
 *     copy, each append also names the append before it (`Nats-Expected-Last-Msg-Id`). On replicated
 *     streams this is left out: current servers (2.15) halt such a stream when the name does not fit.
 * A2. After the first failure nothing is published and nothing is reported any more.
 * A3. Acknowledgements may arrive in any order; what is reported is the contiguous prefix.
 * A4. No promise, timer or subscription per append: one reply inbox, one timer for the oldest.
 */
import { randomBytes } from "node:crypto";
import { HarmovelaError } from "@harmovela/failure";
import { createInbox, type Msg, type NatsConnection, type Subscription } from "@nats-io/nats-core";
import { callOut } from "../call-out.ts";
import { headerBlock, headerLines } from "../header-block.ts";
import type { Appender, AppenderOptions, AppendFailure, Headers } from "../port.ts";
import { type ApiError, isConflict } from "./errors.ts";
import { wireHeaders } from "./wire-headers.ts";

const IN_FLIGHT_DEFAULT = 512;
const ACK_TIMEOUT_MS_DEFAULT = 5_000;
/** Enough that no two appenders to one stream ever share it. */
const CHAIN_ID_BYTES = 9;

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
  readonly #expectation: string;
  /** Names this appender's appends; undefined on a replicated stream. */
  readonly #chainId: string | undefined;
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

  constructor(connection: AppenderConnection, options: AppenderOptions, isSingleCopy: boolean) {
    this.#connection = connection;
    this.#options = options;
    this.#maxInFlight = options.maxInFlight ?? IN_FLIGHT_DEFAULT;
    this.#ackTimeoutMs = options.ackTimeoutMs ?? ACK_TIMEOUT_MS_DEFAULT;
    this.#last = options.last;
    this.#acked = options.last;
    this.#sentAt = new Float64Array(this.#maxInFlight);
    this.#expectation = `Nats-Expected-Stream: ${options.stream}\r\nNats-Expected-Last-Sequence: `;
    this.#chainId = isSingleCopy ? randomBytes(CHAIN_ID_BYTES).toString("base64url") : undefined;
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
    const seq = this.#last + 1;
    const block = headerBlock(this.#expectations() + headerLines(headers));
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

  /** That the stream ends where this chain does (A1). */
  #expectations(): string {
    const position = `${this.#expectation}${this.#last}\r\n`;
    const id = this.#chainId;
    if (id === undefined) return position;
    const own = `${position}Nats-Msg-Id: ${id}.${this.#last + 1}\r\n`;
    if (this.#last === this.#options.last) return own;
    return `${own}Nats-Expected-Last-Msg-Id: ${id}.${this.#last}\r\n`;
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
