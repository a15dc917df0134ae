/** Who was heard under this leadership: memory of the leader, never state (spec 5.1). */
import type { Heartbeats, Instant } from "../judging.ts";

/** Sessions remembered at once; beyond that the longest unheard one is forgotten. */
const REMEMBERED_MAX = 100_000;

/**
 * One for each leadership, made when it begins. What it does not remember counts as heard at
 * `since`, and `since` moves up to whatever had to be forgotten: a session may be missed late, never early.
 */
export class HeartbeatMemory implements Heartbeats {
  #since: Instant;
  readonly #heard = new Map<string, Instant>();
  readonly #max: number;

  constructor(since: Instant, max: number = REMEMBERED_MAX) {
    this.#since = since;
    this.#max = max;
  }

  get since(): Instant {
    return this.#since;
  }

  /** A sign of life: a heartbeat on the live subject, or any judged envelope of the session. */
  hear(tenant: string, source: string, sessionId: string, now: Instant): void {
    const key = keyOf(tenant, source, sessionId);
    const before = this.#heard.get(key);
    this.#heard.delete(key);
    this.#heard.set(key, before === undefined ? now : Math.max(before, now));
    if (this.#heard.size <= this.#max) return;
    const oldest = this.#heard.entries().next().value;
    if (oldest === undefined) return;
    this.#heard.delete(oldest[0]);
    this.#since = Math.max(this.#since, oldest[1]);
  }

  lastHeard(tenant: string, source: string, sessionId: string): Instant | undefined {
    return this.#heard.get(keyOf(tenant, source, sessionId));
  }
}

function keyOf(...parts: string[]): string {
  return parts.map((part) => `${part.length}:${part}`).join("");
}
