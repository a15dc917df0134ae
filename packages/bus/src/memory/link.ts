/**
 * The way between one client and the memory server. Everything sent takes one hop and arrives in order,
 * unless the link is held (it waits) or cut (it is lost, or still reaches the server unanswered).
 */
import type { Clock } from "../clock.ts";

export class Link {
  readonly #clock: Clock;
  readonly #uplink: Clock;
  readonly #latencyMs: number;
  /** Counts connections: what was sent on an earlier one does not arrive on this one. */
  #generation = 0;
  /** What was sent to the server on a connection up to this one still arrives. */
  #deliveredUpTo = -1;
  #isUp = true;
  #isHeld = false;
  #held: (() => void)[] = [];

  constructor(options: { clock: Clock; uplink: Clock; latencyMs: number }) {
    this.#clock = options.clock;
    this.#uplink = options.uplink;
    this.#latencyMs = options.latencyMs;
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  toServer(fn: () => void): void {
    if (!this.#isUp) return;
    const sentOn = this.#generation;
    this.#hop(this.#uplink, () => {
      if (sentOn === this.#generation || sentOn <= this.#deliveredUpTo) fn();
    });
  }

  toClient(fn: () => void): void {
    if (!this.#isUp) return;
    const sentOn = this.#generation;
    this.#hop(this.#clock, () => {
      if (sentOn === this.#generation) fn();
    });
  }

  /** From now on nothing arrives until `release`, in either direction, but nothing is lost. */
  hold(): void {
    this.#isHeld = true;
  }

  release(): void {
    this.#isHeld = false;
    const held = this.#held;
    this.#held = [];
    for (const fn of held) fn();
  }

  cut(inFlight: "lost" | "delivered"): void {
    if (!this.#isUp) return;
    this.#isUp = false;
    if (inFlight === "delivered") this.#deliveredUpTo = this.#generation;
    this.#generation += 1;
    this.release();
  }

  mend(): void {
    this.#isUp = true;
  }

  #hop(clock: Clock, fn: () => void): void {
    const arrive = (): void => {
      if (this.#isHeld) this.#held.push(fn);
      else fn();
    };
    if (this.#latencyMs > 0) clock.after(this.#latencyMs, arrive);
    else clock.soon(arrive);
  }
}
