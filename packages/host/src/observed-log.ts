/** Reads another domain's log and hands out its entries exactly up to a position (fold rule F3). */
import {
  type Bus,
  type Clock,
  decodeFrame,
  type FramedMessage,
  logStream,
  type Reader,
  type StoredMessage,
} from "@harmovela/bus";
import type { Domain } from "@harmovela/envelope";
import { HarmovelaError } from "@harmovela/failure";
import type { Fold } from "./fold.ts";

/** How long one batch waits for an observed log before it is refused as retryable. */
const CATCH_UP_MS_MAX = 5_000;

export class ObservedLog<State> {
  readonly domain: Domain;
  readonly #reader: Reader;
  readonly #bus: Bus;
  readonly #clock: Clock;
  readonly #stream: string;
  /** The domain's intake is settled up to here. */
  intake = 0;
  #epoch = 0;
  #prev = 0;
  #ahead: StoredMessage[] = [];
  #onArrival: (() => void) | undefined;

  /** `onNews` is called when entries have arrived, whether somebody waits for them or not. */
  constructor(bus: Bus, clock: Clock, domain: Domain, onNews: () => void) {
    this.domain = domain;
    this.#bus = bus;
    this.#clock = clock;
    this.#stream = logStream(domain);
    this.#reader = bus.openReader(this.#stream, {
      after: 0,
      onReady: () => {
        this.#onArrival?.();
        onNews();
      },
    });
  }

  /** Entries have arrived that are not folded yet. */
  get hasNews(): boolean {
    return this.#ahead.length > 0 || this.#reader.buffered > 0;
  }

  /** Folds everything that is stored now; what was acknowledged before is known after. */
  async catchUp(fold: Fold<State>): Promise<void> {
    const state = await this.#bus.streamState(this.#stream);
    await this.foldUpTo(fold, state?.lastSeq ?? 0);
  }

  /** Folds exactly up to `seq`. Throws a dependency error when it does not arrive in time. */
  async foldUpTo(fold: Fold<State>, seq: number): Promise<void> {
    const until = this.#clock.monotonic() + CATCH_UP_MS_MAX;
    while ((fold.seen[this.domain] ?? 0) < seq) {
      this.#foldArrived(fold, seq);
      if ((fold.seen[this.domain] ?? 0) >= seq) return;
      if (this.#clock.monotonic() >= until) {
        throw new HarmovelaError(
          "internal_error",
          `the log of ${this.domain} did not arrive up to ${seq} in time`,
          { category: "dependency" },
        );
      }
      await this.#arrival(until - this.#clock.monotonic());
    }
  }

  #foldArrived(fold: Fold<State>, upTo: number): void {
    const before = fold.seen[this.domain] ?? 0;
    let seq = before;
    for (;;) {
      if (this.#ahead.length === 0) this.#ahead = this.#reader.take(1_000);
      const next = this.#ahead[0];
      if (next === undefined || next.seq > upTo) break;
      this.#ahead.shift();
      const framed = decodeFrame(next);
      if (framed !== undefined && this.#isOurs(framed)) {
        const entry = framed.entry();
        if (entry !== undefined) fold.observe(this.domain, entry);
        const { cause } = framed.frame;
        if ("in" in cause) this.intake = Math.max(this.intake, cause.in);
      }
      seq = next.seq;
    }
    if (seq > before) fold.sawUpTo(this.domain, seq);
  }

  /** The same rule as the fold's own (F2). */
  #isOurs({ frame, kind }: FramedMessage): boolean {
    if (frame.prev !== this.#prev) return false;
    if (kind === "epoch" && frame.epoch === frame.seq) this.#epoch = frame.epoch;
    if (frame.epoch !== this.#epoch || this.#epoch === 0) return false;
    this.#prev = frame.seq;
    return true;
  }

  #arrival(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#clock.after(ms, resolve);
      this.#onArrival = () => {
        cancel();
        resolve();
      };
    });
  }

  async close(): Promise<void> {
    await this.#reader.close();
  }
}
