/** Who was heard under this leadership: memory of the leader, never state (spec 5.1). */
import type { Heartbeats, Instant } from "../judging.ts";

/** Sessions remembered at once; beyond that the tenant with most of them forgets its longest unheard one. */
const REMEMBERED_MAX = 100_000;

interface Heard {
  since: Instant;
  /** Unheard longest first. */
  sessions: Map<string, Instant>;
}

/**
 * One for each leadership, made when it begins. What it does not remember of a tenant counts as heard at
 * `sinceOf` it, which moves up to whatever of that tenant had to be forgotten: a session may be missed late, never
 * early, and late only because of its own tenant.
 */
export class HeartbeatMemory implements Heartbeats {
  /** Of tenants of whom nothing is remembered. */
  #since: Instant;
  readonly #tenants = new Map<string, Heard>();
  readonly #max: number;
  #size = 0;

  constructor(since: Instant, max: number = REMEMBERED_MAX) {
    this.#since = since;
    this.#max = max;
  }

  sinceOf(tenant: string): Instant {
    return this.#tenants.get(tenant)?.since ?? this.#since;
  }

  /** A sign of life: a heartbeat on the live subject, or any judged envelope of the session. */
  hear(tenant: string, source: string, sessionId: string, now: Instant): void {
    const heard = this.#tenants.get(tenant) ?? { since: this.#since, sessions: new Map() };
    this.#tenants.set(tenant, heard);
    const key = keyOf(source, sessionId);
    const before = heard.sessions.get(key);
    if (before === undefined) this.#size += 1;
    heard.sessions.delete(key);
    heard.sessions.set(key, before === undefined ? now : Math.max(before, now));
    if (this.#size > this.#max) this.#forgetOne(tenant, heard);
  }

  lastHeard(tenant: string, source: string, sessionId: string): Instant | undefined {
    return this.#tenants.get(tenant)?.sessions.get(keyOf(source, sessionId));
  }

  /** Who has more than an equal share gives way at once: nobody else need be looked for then. */
  #forgetOne(tenant: string, heard: Heard): void {
    let [name, largest] = [tenant, heard];
    if (heard.sessions.size * this.#tenants.size <= this.#size)
      for (const [other, its] of this.#tenants)
        if (its.sessions.size > largest.sessions.size) [name, largest] = [other, its];
    for (const [oldest, at] of largest.sessions) {
      largest.sessions.delete(oldest);
      largest.since = Math.max(largest.since, at);
      this.#size -= 1;
      break;
    }
    if (largest.sessions.size > 0) return;
    this.#tenants.delete(name);
    this.#since = Math.max(this.#since, largest.since);
  }
}

function keyOf(...parts: string[]): string {
  return parts.map((part) => `${part.length}:${part}`).join("");
}
