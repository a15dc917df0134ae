/**
 * Work that may be under way so many times at once, and for each asker; the rest waits for its turn.
 *
 * T1 Tenants take turns: who waits is passed by one of each other tenant at most, however many wait there.
 * T2 Where others have asked for as much as may be asked, each tenant may still ask for a little.
 */
import { Fifo } from "@harmovela/envelope";
import { HarmovelaError } from "@harmovela/failure";
import { TenantShares } from "../tenant-shares.ts";

/** How much may be under way; of `each`, `all` and `reserved` what waits is counted too. */
export interface TurnBounds {
  atOnce: number;
  /** Of one tenant; default `atOnce`. */
  atOnceOfTenant?: number;
  /** Of one asker. */
  each: number;
  all: number;
  /** Of one tenant, also beyond `all`. */
  reserved: number;
}

export interface Asker {
  tenant: string;
  source: string;
}

export class Turns {
  readonly #bounds: TurnBounds;
  /** By tenant; whose turn it is first. */
  readonly #waiting = new Map<string, Fifo<() => void>>();
  readonly #runningOf = new Map<string, number>();
  /** Under way or waiting, by asker. */
  readonly #asked = new Map<string, number>();
  readonly #shares: TenantShares;
  #running = 0;

  constructor(bounds: TurnBounds) {
    this.#bounds = bounds;
    this.#shares = new TenantShares(bounds);
  }

  /** Throws a retryable `internal_error` when the asker, or all together, have too much under way. */
  async run<T>({ tenant, source }: Asker, work: () => Promise<T>): Promise<T> {
    const asker = JSON.stringify([tenant, source]);
    const asked = this.#asked.get(asker) ?? 0;
    if (asked >= this.#bounds.each || !this.#shares.begin(tenant))
      throw new HarmovelaError("internal_error", "too much is asked at a time", {
        category: "dependency",
      });
    this.#asked.set(asker, asked + 1);
    try {
      await this.#turn(tenant);
      try {
        return await work();
      } finally {
        this.#leave(tenant);
      }
    } finally {
      this.#shares.end(tenant);
      const left = (this.#asked.get(asker) ?? 1) - 1;
      if (left > 0) this.#asked.set(asker, left);
      else this.#asked.delete(asker);
    }
  }

  async #turn(tenant: string): Promise<void> {
    if (this.#mayRun(tenant)) {
      this.#enter(tenant);
      return;
    }
    const waiting = this.#waiting.get(tenant) ?? new Fifo<() => void>();
    this.#waiting.set(tenant, waiting);
    await new Promise<void>((resolve) => waiting.push(resolve));
  }

  #mayRun(tenant: string): boolean {
    const { atOnce, atOnceOfTenant = atOnce } = this.#bounds;
    return this.#running < atOnce && (this.#runningOf.get(tenant) ?? 0) < atOnceOfTenant;
  }

  #enter(tenant: string): void {
    this.#running += 1;
    this.#runningOf.set(tenant, (this.#runningOf.get(tenant) ?? 0) + 1);
  }

  /** Whose turn it is next takes the place. */
  #leave(tenant: string): void {
    this.#running -= 1;
    const left = (this.#runningOf.get(tenant) ?? 1) - 1;
    if (left > 0) this.#runningOf.set(tenant, left);
    else this.#runningOf.delete(tenant);
    for (const [next, waiting] of this.#waiting) {
      if (!this.#mayRun(next)) continue;
      const begin = waiting.shift();
      this.#waiting.delete(next);
      if (waiting.size > 0) this.#waiting.set(next, waiting);
      this.#enter(next);
      begin?.();
      return;
    }
  }
}
