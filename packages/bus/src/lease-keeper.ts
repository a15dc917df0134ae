/**
 * The lease: who may try to lead. It fences nothing; the chain of the appender does.
 *
 * L1. A key whose entry lives for `ttl`: created by whoever takes it, renewed at a third, given up at
 *     two thirds without success, so that its holder knows before anyone else can take it.
 * L2. Time is monotonic and counted from before the request was sent.
 * L3. The value names this very lease, so that an answer that was lost is recognised as one's own.
 * L4. An entry that nobody has renewed for twice its time is free, even where it does not vanish: the clock of
 *     the server, which counts its age, may have been set back.
 */
import { HarmovelaError, toHarmovelaError } from "@harmovela/failure";
import { callOut } from "./call-out.ts";
import type { Clock } from "./clock.ts";
import type { Lease, LeaseOptions } from "./port.ts";

export const LEASE_BUCKET = "HV_LEASES";

export interface LeaseEntry {
  revision: number;
  /** "" when it was given up. */
  value: string;
}

/** Where leases are kept: entries with revisions that vanish after the time to live. */
export interface LeaseStore {
  /** Writes if the key is at `revision` (0: there is none); the new revision. Throws `append_conflict`. */
  put(key: string, value: string, revision: number): Promise<number>;
  /** Marks it as given up if it is at `revision`. */
  giveUp(key: string, revision: number): Promise<void>;
  /** Undefined when there is no such key, or no longer. */
  last(key: string): Promise<LeaseEntry | undefined>;
}

export interface LeaseKeeperParts {
  clock: Clock;
  /** Opens the store; `stream_mismatch` when its entries live for another time. */
  openStore: (timeoutMs: number) => Promise<LeaseStore>;
  /** Between 0 and 1: keeps standbys from trying in step. */
  jitter: () => number;
  /** Unlike that of any other lease. */
  id: string;
}

/** Attempts to take a lease that is held are this share of its time apart, within bounds. */
const TAKE_SHARE = 1 / 10;
const TAKE_MS_MIN = 50;
const TAKE_MS_MAX = 500;
/** One request may take this share of the time, so that a renewal can be tried more than once. */
const REQUEST_SHARE = 1 / 6;
const REQUEST_MS_MIN = 200;
/** L4: so many times its own time. */
const ABANDONED_SHARE = 2;

export class LeaseKeeper implements Lease {
  readonly #parts: LeaseKeeperParts;
  readonly #options: LeaseOptions;
  readonly #value: string;
  #store: LeaseStore | undefined;
  /** Of the entry that is ours; 0 when none is. */
  #revision = 0;
  /** The entry of somebody else, and since when it has been just this one. */
  #other: { revision: number; since: number } | undefined;
  #isHeld = false;
  #isClosed = false;
  #cancelNext: (() => void) | undefined;
  #cancelGiveUp: (() => void) | undefined;
  #turn: Promise<void> = Promise.resolve();

  constructor(parts: LeaseKeeperParts, options: LeaseOptions) {
    this.#parts = parts;
    this.#options = options;
    this.#value = JSON.stringify({ holder: options.holder, lease: parts.id });
    this.#schedule(0);
  }

  get isHeld(): boolean {
    return this.#isHeld;
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#isHeld = false;
    this.#cancelNext?.();
    this.#cancelGiveUp?.();
    // A request under way may still take or renew it.
    await this.#turn;
    if (this.#revision === 0) return;
    try {
      await this.#store?.giveUp(this.#options.key, this.#revision);
    } catch {
      // Then it ends by itself: giving it up early is a courtesy to the standby.
    }
  }

  #schedule(ms: number): void {
    if (this.#isClosed) return;
    this.#cancelNext = this.#parts.clock.after(ms, () => {
      this.#turn = this.#step();
    });
  }

  async #step(): Promise<void> {
    const { key, ttlMs } = this.#options;
    const timeoutMs = Math.max(REQUEST_MS_MIN, ttlMs * REQUEST_SHARE);
    const sentAt = this.#parts.clock.monotonic();
    try {
      this.#store ??= await this.#parts.openStore(timeoutMs);
      this.#revision = await this.#store.put(key, this.#value, this.#revision);
    } catch (caught) {
      await this.#onRefused(toHarmovelaError(caught));
      return;
    }
    this.#onTaken(sentAt);
  }

  #onTaken(sentAt: number): void {
    if (this.#isClosed) return;
    const left = sentAt + (this.#options.ttlMs * 2) / 3 - this.#parts.clock.monotonic();
    if (left <= 0) {
      // The answer took so long that it is not a lease to rely on.
      this.#lose();
      this.#schedule(0);
      return;
    }
    this.#cancelGiveUp?.();
    this.#cancelGiveUp = this.#parts.clock.after(left, () => this.#lose());
    const isNew = !this.#isHeld;
    this.#isHeld = true;
    if (isNew) callOut(this.#options.onAcquired);
    this.#schedule(this.#options.ttlMs / 3);
  }

  async #onRefused(error: HarmovelaError): Promise<void> {
    if (error.code === "stream_mismatch" || error.code === "invalid_argument") {
      // Trying again does not help.
      this.#report(error);
      return;
    }
    if (error.code === "closed") {
      // The connection is closed for good: nobody will renew.
      this.#lose();
      return;
    }
    if (error.code === "append_conflict") await this.#lookAtHolder();
    this.#schedule(this.#pauseMs());
  }

  /** Somebody's entry is there, or ours is gone. An entry of ours whose answer was lost is taken up again. */
  async #lookAtHolder(): Promise<void> {
    try {
      const entry = await this.#store?.last(this.#options.key);
      const isFree =
        entry === undefined ||
        entry.value === "" ||
        entry.value === this.#value ||
        this.#isAbandoned(entry.revision);
      this.#revision = isFree ? (entry?.revision ?? 0) : 0;
      if (entry?.value !== this.#value) this.#lose();
    } catch {
      // Unknown for now: the next attempt finds out, and the time to give up runs on.
    }
  }

  /** L4, by our own monotonic time between the first look and this one. */
  #isAbandoned(revision: number): boolean {
    const now = this.#parts.clock.monotonic();
    if (this.#other?.revision !== revision) this.#other = { revision, since: now };
    return now - this.#other.since >= ABANDONED_SHARE * this.#options.ttlMs;
  }

  #lose(): void {
    this.#cancelGiveUp?.();
    if (!this.#isHeld) return;
    this.#isHeld = false;
    callOut(this.#options.onLost);
  }

  #report(error: HarmovelaError): void {
    callOut(() => {
      if (!this.#options.onError) throw error;
      this.#options.onError(error);
    });
  }

  /** With jitter, so that standbys do not try in step. */
  #pauseMs(): number {
    const ms = Math.min(TAKE_MS_MAX, Math.max(TAKE_MS_MIN, this.#options.ttlMs * TAKE_SHARE));
    return ms * (0.5 + this.#parts.jitter());
  }
}

/** The refusal of a bucket whose entries live for another time; names both. */
export function leaseTimeMismatch(isMs: number, askedMs: number): HarmovelaError {
  return new HarmovelaError(
    "stream_mismatch",
    `leases in bucket ${LEASE_BUCKET} last ${isMs} ms, not ${askedMs} ms`,
    { details: { bucket: LEASE_BUCKET, ttl_ms: isMs, asked_ttl_ms: askedMs } },
  );
}
