import type { Clock } from "@harmovela/bus";
import type { Instant } from "@harmovela/envelope";

/**
 * The broker's time (architecture, section 5): store times, and between messages the newest one seen
 * plus the monotonic time since.
 *
 * B1 Never ahead of the broker: a message is seen after it was stored.
 * B2 Never behind what was decided. A broker whose clock was set back stores messages "before" what is
 *    decided; from then on its store times are moved on by as much, so that time neither runs twice
 *    (timers would fire early) nor stands still until the clock has caught up.
 * B3 A clock set forward is believed: it cannot be told from a machine that slept.
 */
export class BrokerTime {
  readonly #clock: Clock;
  #offset = Number.NEGATIVE_INFINITY;
  #setBackMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The broker answers now, with this time of its clock; `decided` is the time of the newest decision. */
  observe(time: Instant, decided: Instant): void {
    this.#learn(Math.max(time, decided));
  }

  /** When the next message of the intake was stored, for judging it. Messages come in their order. */
  instantOf(stored: Instant, decided: Instant): Instant {
    const instant = this.#movedOn(stored);
    this.#setBackMs = Math.max(instant, decided) - stored;
    if (instant >= decided) {
      this.#learn(instant);
      return instant;
    }
    // What has passed since the newest decision is not known: timers are late by it rather than early.
    this.#offset = decided - this.#clock.monotonic();
    return decided;
  }

  /** When something may be decided before the next message, which was stored then, is judged. */
  instantBefore(stored: Instant, decided: Instant): Instant {
    return Math.max(decided, this.#movedOn(stored));
  }

  now(): Instant {
    const now = this.#offset + this.#clock.monotonic();
    return now > 0 ? Math.floor(now) : 0;
  }

  /** A clock that was set right again needs no more moving on. */
  #movedOn(stored: Instant): Instant {
    return Math.max(stored, Math.min(stored + this.#setBackMs, this.now()));
  }

  #learn(instant: Instant): void {
    this.#offset = Math.max(this.#offset, instant - this.#clock.monotonic());
  }
}
