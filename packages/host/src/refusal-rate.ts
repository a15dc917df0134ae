import { encodeToken } from "@harmovela/bus";
import type { Instant } from "@harmovela/envelope";

/** Refusals of one source that become entries of their own (architecture, section 4). */
const PER_SECOND = 20;
const BURST = 200;
/** Sources remembered at once; the longest silent one is forgotten first and starts with a full burst. */
const SOURCES_MAX = 10_000;
/** Sources named one by one in a `refused` entry; the others are in its total. */
const NAMED_MAX = 50;

interface Bucket {
  tokens: number;
  at: Instant;
}

/** Decides which refusals are logged one by one, and counts the others. */
export class RefusalRate {
  #buckets = new Map<string, Bucket>();
  #counts = new Map<string, number>();
  #total = 0;

  /** Whether this refusal gets an entry of its own. */
  takes(tenant: string, source: string, now: Instant): boolean {
    const key = keyOf(tenant, source);
    const bucket = this.#buckets.get(key) ?? { tokens: BURST, at: now };
    this.#buckets.delete(key);
    this.#buckets.set(key, bucket);
    if (this.#buckets.size > SOURCES_MAX) {
      for (const oldest of this.#buckets.keys()) {
        this.#buckets.delete(oldest);
        break;
      }
    }
    const gained = (Math.max(0, now - bucket.at) / 1000) * PER_SECOND;
    bucket.tokens = Math.min(BURST, bucket.tokens + gained);
    bucket.at = Math.max(bucket.at, now);
    if (bucket.tokens >= 1) {
      bucket.tokens -= 1;
      return true;
    }
    this.#count(key);
    return false;
  }

  /** A refusal that gets no entry of its own. */
  counts(tenant: string, source: string): void {
    this.#count(keyOf(tenant, source));
  }

  #count(key: string): void {
    this.#total += 1;
    if (this.#counts.has(key) || this.#counts.size < NAMED_MAX) {
      this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
    }
  }

  get uncounted(): number {
    return this.#total;
  }

  /** What was not logged one by one since the last call. */
  drain(): { counts: Record<string, number>; total: number } {
    // As tokens, which have no spaces: whose tenant it is must not depend on how it is called.
    const named = [...this.#counts].map(([key, count]) => [
      key.split("\u0000").map(encodeToken).join(" "),
      count,
    ]);
    const drained = { counts: Object.fromEntries(named), total: this.#total };
    this.#counts = new Map();
    this.#total = 0;
    return drained;
  }
}

function keyOf(tenant: string, source: string): string {
  return `${tenant}\u0000${source}`;
}
