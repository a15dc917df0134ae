/** One log as one observer reads it: in order, without gap or duplicate over reconnects. */

import { type Clock, HEADER, logStream, parseLogSubject, type StoredMessage } from "@harmovela/bus";
import type { Domain, Envelope } from "@harmovela/envelope";
import { HarmovelaError, toHarmovelaError } from "@harmovela/failure";
import { formatCursor } from "./cursor.ts";
import type { Matcher } from "./filter.ts";
import type { LogExtent, LogReader, Logs } from "./logs.ts";
import { tell } from "./tell.ts";

/** An entry of a log. */
export interface Observed {
  envelope: Envelope;
  /** Its position, `<stream>:<sequence>`; a start after it is exclusive (spec 9.3). */
  cursor: string;
  domain: Domain;
  /** Positions right before it that were trimmed before they could be read. */
  gap?: Gap;
}

/** Positions of a log, both inclusive, that can no longer be read. */
export interface Gap {
  domain: Domain;
  from: number;
  to: number;
}

export interface LaneContext {
  logs: Logs;
  clock: Clock;
  matcher: Matcher;
  maxBuffered: number;
  onReady: () => void;
  onGap: (gap: Gap) => void;
}

/** "now": what is stored from now on. A number: exclusive. */
export type LaneStart = "now" | number;

/** After a pause of so long the log may have been trimmed under a slow reader. */
const QUIET_MS = 60_000;
const STATE_ATTEMPTS_MAX = 8;
const STATE_RETRY_MS = 250;
const CHECK_RETRY_MS = 1_000;
const EPOCH = /^(?:0|[1-9]\d{0,15})$/;
const decoder = new TextDecoder();

export class Lane {
  readonly domain: Domain;
  readonly #context: LaneContext;
  #reader: LogReader | undefined;
  #cancelCheck: (() => void) | undefined;
  #isClosed = false;
  #position = 0;
  /** Newest leadership seen. */
  #epoch = 0;
  #gap: Gap | undefined;
  /** The log is known to start after this position. */
  #trimmedTo = 0;
  /** The log may have been trimmed or replaced since it was last looked at. */
  #mustCheck = false;
  #lastTakenAt: number;

  constructor(context: LaneContext, domain: Domain) {
    this.#context = context;
    this.domain = domain;
    this.#lastTakenAt = context.clock.monotonic();
  }

  /** Sequence of the last entry that was handed out or passed over. */
  get position(): number {
    return this.#position;
  }

  /** Fixes the start. A log that does not exist yet is read from its beginning when it appears. */
  async open(start: LaneStart): Promise<void> {
    const state = await this.#state();
    if (this.#isClosed) return;
    this.#position = start === "now" ? (state?.lastSeq ?? 0) : start;
    this.#assertReaches(state);
    this.#noteGap((state?.firstSeq ?? 0) - 1);
    const { logs, matcher, maxBuffered, onReady } = this.#context;
    this.#reader = logs.open(this.domain, {
      after: this.#position,
      selection: matcher.selection,
      maxBuffered,
      onReady,
    });
  }

  onReconnected(): void {
    this.#mustCheck = true;
    this.#reader?.onReconnected?.();
    this.#context.onReady();
  }

  /** What has arrived, at most `max` entries; undefined when nothing has. Throws `stream_mismatch`, `unauthorized`. */
  async take(max: number): Promise<StoredMessage[] | undefined> {
    const messages = this.#reader?.take(max) ?? [];
    this.#trimmedTo = Math.max(this.#trimmedTo, this.#reader?.trimmedTo ?? 0);
    const now = this.#context.clock.monotonic();
    const first = messages[0];
    const isJump = first !== undefined && first.seq > this.#position + 1;
    if (this.#mustCheck || (isJump && now - this.#lastTakenAt > QUIET_MS)) await this.#check();
    if (first) this.#lastTakenAt = now;
    return first && messages;
  }

  /** The entry in a message, undefined when the observer does not want it. Moves the position. */
  read(message: StoredMessage): Observed | undefined {
    this.#noteGap(Math.min(this.#trimmedTo, message.seq - 1));
    this.#position = message.seq;
    if (!this.#isCurrent(message)) return undefined;
    const { matcher } = this.#context;
    const address = parseLogSubject(message.subject);
    if (!address || !matcher.matchesAddress(address)) return undefined;
    let envelope: Envelope;
    try {
      envelope = JSON.parse(decoder.decode(message.data)) as Envelope;
    } catch {
      // One entry that cannot be read must not hide all that follow it; it counts as missing.
      this.#position = message.seq - 1;
      this.#noteGap(message.seq);
      return undefined;
    }
    if (!matcher.matchesBody(envelope)) return undefined;
    const cursor = formatCursor({ domain: this.domain, seq: message.seq });
    const observed: Observed = { envelope, cursor, domain: this.domain };
    if (this.#gap) observed.gap = this.#gap;
    this.#gap = undefined;
    return observed;
  }

  /**
   * Without the mark of a leadership it was not written by the service; with that of one that is over
   * it is what a displaced leader still had under way (architecture, section 1).
   */
  #isCurrent(message: StoredMessage): boolean {
    const text = message.header(HEADER.epoch);
    const epoch = EPOCH.test(text) ? Number(text) : Number.POSITIVE_INFINITY;
    if (epoch < this.#epoch || epoch > message.seq) return false;
    this.#epoch = epoch;
    return true;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelCheck?.();
    await this.#reader?.close();
  }

  async #check(): Promise<void> {
    let state: LogExtent | undefined;
    try {
      state = await this.#state(1);
    } catch (error) {
      const { code } = toHarmovelaError(error);
      if (code === "unauthorized") throw error;
      // The server is not back yet. A log that is too short stays silent, so this must not wait for it.
      this.#cancelCheck?.();
      this.#cancelCheck = this.#context.clock.after(CHECK_RETRY_MS, this.#context.onReady);
      return;
    }
    this.#mustCheck = false;
    this.#assertReaches(state);
    this.#trimmedTo = (state?.firstSeq ?? 0) - 1;
  }

  /** A log that ends before what was read of it is another log (case M1). */
  #assertReaches(state: LogExtent | undefined): void {
    const lastSeq = state?.lastSeq ?? 0;
    if (lastSeq >= this.#position) return;
    throw new HarmovelaError("stream_mismatch", "the log is shorter than what was read of it", {
      details: { stream: logStream(this.domain), position: this.#position, last_seq: lastSeq },
    });
  }

  #noteGap(to: number): void {
    const from = this.#position + 1;
    if (to < from) return;
    this.#position = to;
    this.#gap = { domain: this.domain, from: this.#gap?.from ?? from, to };
    tell(this.#context.onGap, { domain: this.domain, from, to });
  }

  async #state(attempts = STATE_ATTEMPTS_MAX): Promise<LogExtent | undefined> {
    const { logs, clock } = this.#context;
    for (let attempt = 1; ; attempt++) {
      try {
        return await logs.extent(this.domain);
      } catch (caught) {
        const error = toHarmovelaError(caught);
        if (error.retry === "never" || attempt >= attempts || this.#isClosed) throw error;
      }
      await new Promise<void>((resolve) => clock.after(STATE_RETRY_MS * attempt, resolve));
    }
  }
}
