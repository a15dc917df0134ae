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
import { HarmovelaError } from "@harmovela/failure";
import { isConflict, type PubAck } from "./api-error.ts";
import { callOut } from "./call-out.ts";
import { headerLines } from "./header-block.ts";
import type {
  Appender,
  AppenderOptions,
  AppendFailure,
  CoreMessage,
  Headers,
  Subscription,
} from "./port.ts";
import type { Wire } from "./wire.ts";

const IN_FLIGHT_DEFAULT = 512;
const ACK_TIMEOUT_MS_DEFAULT = 5_000;

const decoder = new TextDecoder();

export class ChainAppender implements Appender {
  readonly #wire: Wire;
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
  #cancelTimer: (() => void) | undefined;
  #isReportDue = false;
  #isDead = false;
  #last: number;
  #acked: number;

  constructor(wire: Wire, options: AppenderOptions, isSingleCopy: boolean) {
    this.#wire = wire;
    this.#options = options;
    this.#maxInFlight = options.maxInFlight ?? IN_FLIGHT_DEFAULT;
    this.#ackTimeoutMs = options.ackTimeoutMs ?? ACK_TIMEOUT_MS_DEFAULT;
    this.#last = options.last;
    this.#acked = options.last;
    this.#sentAt = new Float64Array(this.#maxInFlight);
    this.#expectation = `Nats-Expected-Stream: ${options.stream}\r\nNats-Expected-Last-Sequence: `;
    this.#inbox = wire.newInbox();
    this.#chainId = isSingleCopy ? this.#inbox.slice(this.#inbox.lastIndexOf(".") + 1) : undefined;
    this.#subscription = wire.subscribe(
      `${this.#inbox}.*`,
      (message) => this.#onAnswer(message),
      () =>
        this.#fail({ reason: "unknown", apiCode: 0, message: "the reply subject is forbidden" }),
    );
    this.#cancelDisconnect = wire.onceDisconnected(() =>
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
    const lines = this.#expectations() + headerLines(headers);
    this.#wire.publish(subject, lines, data, `${this.#inbox}.${seq}`);
    this.#last = seq;
    this.#sentAt[seq % this.#maxInFlight] = this.#wire.clock.monotonic();
    if (this.#cancelTimer === undefined) this.#arm(this.#ackTimeoutMs);
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

  #onAnswer(message: CoreMessage): void {
    if (this.#isDead) return;
    const subject = message.subject;
    const seq = Number(subject.slice(subject.lastIndexOf(".") + 1));
    if (message.data.length === 0) {
      // The server's own answer (503): no stream took it, so it is not stored.
      this.#fail({ reason: "refused", apiCode: 0, message: "no stream listens" }, seq);
      return;
    }
    let ack: PubAck;
    try {
      ack = (JSON.parse(decoder.decode(message.data)) ?? {}) as PubAck;
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
    this.#cancelTimer = this.#wire.clock.after(ms, () => {
      this.#cancelTimer = undefined;
      if (this.inFlight === 0) return;
      const oldest = this.#sentAt[(this.#acked + 1) % this.#maxInFlight] ?? 0;
      const left = oldest + this.#ackTimeoutMs - this.#wire.clock.monotonic();
      if (left > 0) this.#arm(left);
      else this.#fail({ reason: "unknown", apiCode: 0, message: "no answer in time" });
    });
  }

  #fail(failure: Omit<AppendFailure, "seq">, seq = this.#acked + 1): void {
    if (this.#isDead) return;
    this.#release();
    callOut(() => this.#options.onFailure({ ...failure, seq }));
  }

  #release(): void {
    this.#isDead = true;
    this.#cancelTimer?.();
    this.#cancelDisconnect();
    this.#subscription.close();
  }
}
