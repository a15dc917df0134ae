import type { Clock } from "@harmovela/bus";
import type { Instant } from "@harmovela/envelope";

/**
 * The broker's time between messages (architecture, section 5): the newest broker time seen plus
 * the monotonic time since. Never ahead of the broker, because a message is seen after it was stored.
 */
export class BrokerTime {
  readonly #clock: Clock;
  #offset = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A broker time that has just been learnt. */
  observe(time: Instant): void {
    this.#offset = Math.max(this.#offset, time - this.#clock.monotonic());
  }

  get isKnown(): boolean {
    return this.#offset !== Number.NEGATIVE_INFINITY;
  }

  now(): Instant {
    return this.isKnown ? Math.floor(this.#offset + this.#clock.monotonic()) : 0;
  }
}
