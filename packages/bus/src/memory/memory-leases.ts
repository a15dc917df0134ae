/** The lease bucket of the memory server. Its time is the server's monotonic clock. */
import { HarmovelaError } from "@harmovela/failure";
import type { Clock } from "../clock.ts";
import { type LeaseEntry, leaseTimeMismatch } from "../lease-keeper.ts";

export class MemoryLeases {
  readonly #clock: Clock;
  readonly #entries = new Map<string, LeaseEntry & { at: number }>();
  #ttlMs: number | undefined;
  #revision = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The first use fixes the time to live; another one is refused. */
  open(ttlMs: number): void {
    this.#ttlMs ??= ttlMs;
    if (this.#ttlMs !== ttlMs) throw leaseTimeMismatch(this.#ttlMs, ttlMs);
  }

  put(key: string, value: string, revision: number): number {
    const is = this.last(key)?.revision ?? 0;
    if (is !== revision) {
      throw new HarmovelaError("append_conflict", "the lease is not as expected");
    }
    this.#revision += 1;
    this.#entries.set(key, { revision: this.#revision, value, at: this.#clock.monotonic() });
    return this.#revision;
  }

  last(key: string): LeaseEntry | undefined {
    const entry = this.#entries.get(key);
    if (!entry) return undefined;
    if (this.#clock.monotonic() - entry.at >= (this.#ttlMs ?? 0)) {
      this.#entries.delete(key);
      return undefined;
    }
    return { revision: entry.revision, value: entry.value };
  }

  /** The entry is gone, as if its time were over; its holder finds out when it renews. */
  drop(key: string): void {
    this.#entries.delete(key);
  }
}
