/** How long the service promises to remember an id at least (architecture, section 6), ms. */
const PROMISED_MS = 10 * 60_000;

/** Ids kept per generation before the next begins: bounds the memory of a fast log. */
const GENERATION_IDS = 500_000;

export type IdUse = "accepted" | "refused";

/**
 * Ids in use per tenant, for the time that the service promises to remember them, within a bound.
 * Two generations: the older one is dropped when the newer is old or full.
 */
export class IdMemory {
  /** Time of use by key; of a refused id `-1 - time`, so that a million ids cost no objects. */
  #young = new Map<string, number>();
  #old = new Map<string, number>();
  #since = 0;

  /** How the id is in use at `now`; a use longer ago than what is promised does not count. */
  use(tenant: string, id: string, now: number): IdUse | undefined {
    const key = keyOf(tenant, id);
    const stored = this.#young.get(key) ?? this.#old.get(key);
    if (stored === undefined) return undefined;
    const at = stored < 0 ? -1 - stored : stored;
    if (now - at > PROMISED_MS) return undefined;
    return stored < 0 ? "refused" : "accepted";
  }

  add(tenant: string, id: string, use: IdUse, at: number): void {
    if (at - this.#since > PROMISED_MS || this.#young.size >= GENERATION_IDS) {
      this.#old = this.#young;
      this.#young = new Map();
      this.#since = at;
    }
    this.#young.set(keyOf(tenant, id), use === "refused" ? -1 - at : at);
  }
}

const keyOf = (tenant: string, id: string): string => `${tenant.length}:${tenant}${id}`;
