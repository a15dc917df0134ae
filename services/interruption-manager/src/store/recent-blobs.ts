/**
 * Blobs that are being read part by part: each is got from the bucket once, and held for a moment. When they are too
 * many, the tenant that has most of them loses the one that was asked for longest ago.
 */
import type { Clock } from "@harmovela/bus";

/** Held at a time; at most 64 MiB of checkpoints. */
const HELD_MAX = 8;
const IDLE_MS = 10_000;

interface Held {
  tenant: string;
  data: Promise<Uint8Array | undefined>;
  cancelIdle: () => void;
}

export class RecentBlobs {
  readonly #clock: Clock;
  /** Asked for longest ago first. */
  readonly #held = new Map<string, Held>();
  readonly #removing = new Map<string, Promise<void>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async get(
    tenant: string,
    name: string,
    read: () => Promise<Uint8Array | undefined>,
  ): Promise<Uint8Array | undefined> {
    await this.#removing.get(name);
    const known = this.#held.get(name);
    const data = known?.data ?? read();
    this.forget(name);
    const cancelIdle = this.#clock.after(IDLE_MS, () => this.forget(name));
    this.#held.set(name, { tenant, data, cancelIdle });
    if (this.#held.size > HELD_MAX) this.#forgetOne();
    try {
      const found = await data;
      if (found === undefined) this.forget(name);
      return found;
    } catch (error) {
      this.forget(name);
      throw error;
    }
  }

  /** Removes it when nobody reads it; who wants to read it then waits. */
  async remove(name: string, work: () => Promise<void>): Promise<void> {
    const reading = this.#held.get(name)?.data;
    this.forget(name);
    const before = this.#removing.get(name);
    const removing = Promise.allSettled([reading, before]).then(work);
    const quiet = removing.catch(() => undefined);
    this.#removing.set(name, quiet);
    try {
      await removing;
    } finally {
      if (this.#removing.get(name) === quiet) this.#removing.delete(name);
    }
  }

  close(): void {
    for (const name of [...this.#held.keys()]) this.forget(name);
  }

  #forgetOne(): void {
    const counts = new Map<string, number>();
    for (const { tenant } of this.#held.values()) counts.set(tenant, (counts.get(tenant) ?? 0) + 1);
    const most = Math.max(...counts.values());
    const given = [...this.#held].find(([, { tenant }]) => counts.get(tenant) === most);
    if (given !== undefined) this.forget(given[0]);
  }

  forget(name: string): void {
    this.#held.get(name)?.cancelIdle();
    this.#held.delete(name);
  }
}
