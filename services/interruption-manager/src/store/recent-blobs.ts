/** Blobs that are being read part by part: each is got from the bucket once, and held for a moment. */
import type { Clock } from "@harmovela/bus";

/** Held at a time; at most 64 MiB of checkpoints. */
const HELD_MAX = 8;
const IDLE_MS = 10_000;

interface Held {
  data: Promise<Uint8Array | undefined>;
  cancelIdle: () => void;
}

export class RecentBlobs {
  readonly #clock: Clock;
  /** Asked for longest ago first. */
  readonly #held = new Map<string, Held>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async get(
    name: string,
    read: () => Promise<Uint8Array | undefined>,
  ): Promise<Uint8Array | undefined> {
    const known = this.#held.get(name);
    const data = known?.data ?? read();
    this.forget(name);
    const cancelIdle = this.#clock.after(IDLE_MS, () => this.forget(name));
    this.#held.set(name, { data, cancelIdle });
    const [oldest] = this.#held.keys();
    if (this.#held.size > HELD_MAX && oldest !== undefined) this.forget(oldest);
    try {
      const found = await data;
      if (found === undefined) this.forget(name);
      return found;
    } catch (error) {
      this.forget(name);
      throw error;
    }
  }

  close(): void {
    for (const name of [...this.#held.keys()]) this.forget(name);
  }

  forget(name: string): void {
    this.#held.get(name)?.cancelIdle();
    this.#held.delete(name);
  }
}
