/**
 * Parts of checkpoints on their way into the store, in the memory of the process that leads.
 *
 * U1 Bounded: for each agent, altogether in bytes, and in the time that nothing comes. What is given up is
 *    sent anew.
 * U2 When all together are too much, the tenant that holds most gives up what went on longest ago, or is refused.
 */
import type { Clock } from "@harmovela/bus";
import { HarmovelaError } from "@harmovela/failure";

/** Uploads of one agent under way. */
const UPLOADS_PER_AGENT_MAX = 4;
/** Bytes held, of all uploads together. */
const HELD_MAX = 128 * 1024 * 1024;
const IDLE_MS = 30_000;

/** All that is said of a checkpoint with each of its parts. */
export interface Upload {
  /** Under which it is stored. */
  name: string;
  tenant: string;
  agent: string;
  bytes: number;
  digest: string;
}

interface Held extends Upload {
  parts: Uint8Array[];
  received: number;
  cancelIdle: () => void;
}

export class Uploads {
  readonly #clock: Clock;
  /** What went on longest ago first. */
  readonly #held = new Map<string, Held>();
  #bytes = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Uploads that are not whole. */
  get size(): number {
    return this.#held.size;
  }

  /**
   * Takes a part. The result: the whole, or how much of it is here, which is less than the sender thinks when
   * this process knows nothing of it. Throws a retryable error when too much is held.
   */
  take(upload: Upload, at: number, part: Uint8Array): Uint8Array | { received: number } {
    const { tenant, agent, name, digest, bytes } = upload;
    const key = JSON.stringify([tenant, agent, name, digest, bytes]);
    if (at === 0) this.#drop(key);
    const held = this.#held.get(key);
    const received = held?.received ?? 0;
    if (at !== received) return { received };
    const isWhole = received + part.length === upload.bytes;
    if (isWhole) {
      const whole = Buffer.concat([...(held?.parts ?? []), part]);
      this.#drop(key);
      return whole;
    }
    this.#hold(key, held ?? this.#begin(key, upload), part);
    return { received: received + part.length };
  }

  close(): void {
    for (const key of [...this.#held.keys()]) this.#drop(key);
  }

  #begin(key: string, upload: Upload): Held {
    const { tenant, agent } = upload;
    const others = [...this.#held.values()].filter(
      (other) => other.tenant === tenant && other.agent === agent,
    );
    if (others.length >= UPLOADS_PER_AGENT_MAX) throw tooMuch();
    const begun = { ...upload, parts: [], received: 0, cancelIdle: () => {} };
    this.#held.set(key, begun);
    return begun;
  }

  #hold(key: string, held: Held, part: Uint8Array): void {
    if (!this.#makeRoom(key, held, part.length)) {
      this.#drop(key);
      throw tooMuch();
    }
    this.#held.delete(key);
    this.#held.set(key, held);
    held.parts.push(part);
    held.received += part.length;
    this.#bytes += part.length;
    held.cancelIdle();
    held.cancelIdle = this.#clock.after(IDLE_MS, () => this.#drop(key));
  }

  /** U2. False when it is its own tenant that holds most. */
  #makeRoom(key: string, { tenant }: Held, bytes: number): boolean {
    while (this.#bytes + bytes > HELD_MAX) {
      const byTenant = new Map<string, number>([[tenant, bytes]]);
      for (const { tenant: of, received } of this.#held.values())
        byTenant.set(of, (byTenant.get(of) ?? 0) + received);
      const most = Math.max(...byTenant.values());
      if (byTenant.get(tenant) === most) return false;
      const given = [...this.#held].find(
        ([other, { tenant: of, received }]) =>
          other !== key && received > 0 && byTenant.get(of) === most,
      );
      if (given === undefined) return false;
      this.#drop(given[0]);
    }
    return true;
  }

  #drop(key: string): void {
    const held = this.#held.get(key);
    if (held === undefined) return;
    held.cancelIdle();
    this.#held.delete(key);
    this.#bytes -= held.received;
  }
}

function tooMuch(): HarmovelaError {
  return new HarmovelaError("internal_error", "too many checkpoints are being stored", {
    category: "dependency",
  });
}
