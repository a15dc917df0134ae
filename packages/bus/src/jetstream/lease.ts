/**
 * The lease: who may try to lead. It fences nothing; the chain of the appender does.
 *
 * L1. A key whose entry lives for `ttl`: created by whoever takes it, renewed at a third, given up at
 *     two thirds without success, so that its holder knows before anyone else can take it.
 * L2. Time is monotonic and counted from before the request was sent.
 * L3. The value names this very lease, so that an answer that was lost is recognised as one's own.
 */
import { randomUUID } from "node:crypto";
import { type HarmovelaError, toHarmovelaError } from "@harmovela/failure";
import type { NatsConnection } from "@nats-io/nats-core";
import { callOut } from "../call-out.ts";
import type { Lease, LeaseOptions } from "../port.ts";
import { LeaseBucket } from "./lease-bucket.ts";

/** Attempts to take a lease that is held are this share of its time apart, within bounds. */
const TAKE_SHARE = 1 / 10;
const TAKE_MS_MIN = 50;
const TAKE_MS_MAX = 500;
/** One request may take this share of the time, so that a renewal can be tried more than once. */
const REQUEST_SHARE = 1 / 6;
const REQUEST_MS_MIN = 200;

export class JetStreamLease implements Lease {
  readonly #nats: NatsConnection;
  readonly #options: LeaseOptions;
  readonly #value: string;
  #bucket: LeaseBucket | undefined;
  /** Of the entry that is ours; 0 when none is. */
  #revision = 0;
  #isHeld = false;
  #isClosed = false;
  #next: NodeJS.Timeout | undefined;
  #giveUp: NodeJS.Timeout | undefined;
  #turn: Promise<void> = Promise.resolve();

  constructor(nats: NatsConnection, options: LeaseOptions) {
    this.#nats = nats;
    this.#options = options;
    this.#value = JSON.stringify({ holder: options.holder, lease: randomUUID() });
    this.#schedule(0);
  }

  get isHeld(): boolean {
    return this.#isHeld;
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#isHeld = false;
    clearTimeout(this.#next);
    clearTimeout(this.#giveUp);
    // A request under way may still take or renew it.
    await this.#turn;
    if (this.#revision === 0) return;
    try {
      await this.#bucket?.giveUp(this.#options.key, this.#revision);
    } catch {
      // Then it ends by itself: giving it up early is a courtesy to the standby.
    }
  }

  #schedule(ms: number): void {
    if (this.#isClosed) return;
    this.#next = setTimeout(() => {
      this.#turn = this.#step();
    }, ms);
    this.#next.unref();
  }

  async #step(): Promise<void> {
    const { key, ttlMs, replicas = 1 } = this.#options;
    const timeoutMs = Math.max(REQUEST_MS_MIN, ttlMs * REQUEST_SHARE);
    const sentAt = performance.now();
    try {
      this.#bucket ??= await LeaseBucket.open(this.#nats, { ttlMs, replicas, timeoutMs });
      this.#revision = await this.#bucket.put(key, this.#value, this.#revision);
    } catch (caught) {
      await this.#onRefused(toHarmovelaError(caught));
      return;
    }
    this.#onTaken(sentAt);
  }

  #onTaken(sentAt: number): void {
    if (this.#isClosed) return;
    const left = sentAt + (this.#options.ttlMs * 2) / 3 - performance.now();
    if (left <= 0) {
      // The answer took so long that it is not a lease to rely on.
      this.#lose();
      this.#schedule(0);
      return;
    }
    clearTimeout(this.#giveUp);
    this.#giveUp = setTimeout(() => this.#lose(), left);
    this.#giveUp.unref();
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
    if (error.code === "append_conflict") await this.#lookAtHolder();
    this.#schedule(this.#pauseMs());
  }

  /** Somebody's entry is there, or ours is gone. An entry of ours whose answer was lost is taken up again. */
  async #lookAtHolder(): Promise<void> {
    try {
      const entry = await this.#bucket?.last(this.#options.key);
      const isFree = entry === undefined || entry.value === "" || entry.value === this.#value;
      this.#revision = isFree ? (entry?.revision ?? 0) : 0;
      if (entry?.value !== this.#value) this.#lose();
    } catch {
      // Unknown for now: the next attempt finds out, and the time to give up runs on.
    }
  }

  #lose(): void {
    clearTimeout(this.#giveUp);
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
    return ms * (0.5 + Math.random());
  }
}
