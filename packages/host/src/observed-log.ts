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
import { type Fold, FoldError, type ObservedCursor } from "./fold.ts";

/** How long a batch waits for an observed log before it is refused as retryable. */
const CATCH_UP_MS_MAX = 5_000;
/** A question without answer is asked again after so long: an election on three copies is over in a few of them. */
const ASK_AGAIN_MS = 250;

/** How far an observed log goes, or why that is not known; never rejects, for nobody may be waiting yet. */
export type ObservedEnd = Promise<{ lastSeq: number } | { error: unknown }>;

export class ObservedLog<State> {
  readonly domain: Domain;
  readonly #reader: Reader;
  readonly #bus: Bus;
  readonly #clock: Clock;
  readonly #stream: string;
  #cursor: ObservedCursor;
  #ahead: StoredMessage[] = [];
  #onArrival: (() => void) | undefined;
  /** Since when no question was answered. */
  #silentSince: number | undefined;

  /**
   * Goes on from `cursor`. `onNews` is called when entries have arrived, whether somebody waits for
   * them or not.
   */
  constructor(bus: Bus, clock: Clock, domain: Domain, cursor: ObservedCursor, onNews: () => void) {
    this.domain = domain;
    this.#cursor = cursor;
    this.#bus = bus;
    this.#clock = clock;
    this.#stream = logStream(domain);
    this.#reader = bus.openReader(this.#stream, {
      after: cursor.position,
      onReady: () => {
        this.#onArrival?.();
        onNews();
      },
    });
  }

  /** The domain's intake is settled up to here. */
  get intake(): number {
    return this.#cursor.intake;
  }

  /** Entries have arrived that are not folded yet. */
  get hasNews(): boolean {
    return this.#ahead.length > 0 || this.#reader.buffered > 0;
  }

  /** Asks for the last position that is stored: what was acknowledged before the question is at or before it. */
  askEnd(): ObservedEnd {
    return this.#bus.streamState(this.#stream).then(
      (state) => ({ lastSeq: state?.lastSeq ?? 0 }),
      (error: unknown) => ({ error }),
    );
  }

  /**
   * Folds up to an end that was asked for. A question that met a silent bus is asked again; throws what it
   * met once the silence has lasted too long, and at once while it goes on, or that the log did not arrive in time.
   */
  async catchUp(fold: Fold<State>, end: ObservedEnd): Promise<void> {
    this.#silentSince ??= this.#clock.monotonic();
    let answer = await end;
    while ("error" in answer) {
      const isSilence =
        answer.error instanceof HarmovelaError && answer.error.category === "dependency";
      const waited = this.#clock.monotonic() - this.#silentSince;
      if (!isSilence || waited >= CATCH_UP_MS_MAX) throw answer.error;
      await new Promise<void>((resolve) => this.#clock.after(ASK_AGAIN_MS, resolve));
      answer = await this.askEnd();
    }
    this.#silentSince = undefined;
    await this.foldUpTo(fold, answer.lastSeq);
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
    const before = this.#cursor;
    for (;;) {
      if (this.#ahead.length === 0) this.#ahead = this.#reader.take(1_000);
      const next = this.#ahead[0];
      if (next === undefined) break;
      if (next.seq > upTo) {
        if (this.#cursor.position < upTo) throw this.#hole(next.seq);
        break;
      }
      this.#ahead.shift();
      this.#fold(fold, next);
    }
    if (this.#cursor !== before) fold.sawUpTo(this.domain, this.#cursor);
  }

  #fold(fold: Fold<State>, message: StoredMessage): void {
    const { position } = this.#cursor;
    const framed = decodeFrame(message);
    if (message.seq !== position + 1) {
      // Whoever begins begins where the log does; whoever was under way has missed something.
      if (position > 0) throw this.#hole(message.seq);
      if (framed !== undefined) this.#begin(framed);
    }
    let cursor = { ...this.#cursor, position: message.seq };
    if (framed !== undefined && this.#isOurs(framed)) {
      const { frame, kind } = framed;
      const entry = framed.entry();
      if (entry !== undefined) fold.observe(this.domain, entry);
      cursor = {
        position: message.seq,
        epoch: kind === "epoch" ? frame.epoch : cursor.epoch,
        prev: frame.seq,
        intake: "in" in frame.cause ? Math.max(cursor.intake, frame.cause.in) : cursor.intake,
      };
    }
    this.#cursor = cursor;
  }

  #hole(seq: number): FoldError {
    const what = `the log goes from ${this.#cursor.position} to ${seq}`;
    return new FoldError(this.#stream, seq, new Error(what));
  }

  /** A log whose beginning was trimmed before this service was ever started: its first entry is believed. */
  #begin({ frame }: FramedMessage): void {
    this.#cursor = { ...this.#cursor, epoch: frame.epoch, prev: frame.prev };
  }

  /** The same rule as the fold's own (F2). */
  #isOurs({ frame, kind }: FramedMessage): boolean {
    const { epoch, prev } = this.#cursor;
    if (frame.prev !== prev) return false;
    return kind === "epoch" ? frame.epoch === frame.seq : epoch > 0 && frame.epoch === epoch;
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
