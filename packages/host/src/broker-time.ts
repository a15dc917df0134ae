import type { Clock } from "@harmovela/bus";
import type { Instant } from "@harmovela/envelope";

/**
 * The broker's time (architecture, section 5): store times, and between messages the newest one seen
 * plus the monotonic time since.
 *
 * B1 Never ahead of the broker: a message is seen after it was stored.
 * B2 A broker whose clock was set back stores messages "before" earlier ones. From then on its store times
 *    are moved on by as much, so that time neither runs twice (timers would fire early) nor stands still
 *    until the clock has caught up. That a message is older than what is decided says nothing: those that
 *    left no entry are judged again after a take-over.
 * B3 A clock set forward is believed: it cannot be told from a machine that slept.
 */
export class BrokerTime {
  readonly #clock: Clock;
  #offset = Number.NEGATIVE_INFINITY;
  #setBackMs = 0;
  /** Store time of the message judged last. */
  #stored = Number.NEGATIVE_INFINITY;
  /** What the intake held when this leadership began; its clock was set back after these, if it was. */
  #backlog: { upTo: number; setBackMs: number } = { upTo: 0, setBackMs: 0 };

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * A leadership begins: the broker's clock says `time`, the newest decision was at `decided`, and what the
   * intake holds up to `backlog` was stored before.
   */
  begin(time: Instant, decided: Instant, backlog: number): void {
    this.#learn(Math.max(time, decided));
    this.#backlog = { upTo: backlog, setBackMs: Math.max(0, decided - time) };
  }

  /** When the next message of the intake was stored, for judging it. Messages come in their order. */
  instantOf({ seq, time }: { seq: number; time: Instant }, decided: Instant): Instant {
    if (seq > this.#backlog.upTo && this.#backlog.setBackMs > 0) this.#endBacklog();
    const isSetBack = time < this.#stored;
    const before = this.#stored + this.#setBackMs;
    this.#stored = time;
    if (isSetBack) {
      const instant = Math.max(before, decided);
      this.#setBackMs = instant - time;
      // What has passed since the message before is not known: timers are late by it rather than early.
      this.#offset = instant - this.#clock.monotonic();
      return instant;
    }
    const instant = this.#movedOn(time);
    this.#setBackMs = instant - time;
    this.#learn(instant);
    return instant;
  }

  /** When something may be decided before the next message, which was stored then, is judged. */
  instantBefore(stored: Instant, decided: Instant): Instant {
    return Math.max(decided, this.#movedOn(stored));
  }

  now(): Instant {
    const now = this.#offset + this.#clock.monotonic();
    return now > 0 ? Math.floor(now) : 0;
  }

  /** What follows was stored by the clock as it is now. A step within the backlog was seen there. */
  #endBacklog(): void {
    if (this.#setBackMs === 0) {
      this.#setBackMs = this.#backlog.setBackMs;
      this.#stored = Number.NEGATIVE_INFINITY;
    }
    this.#backlog.setBackMs = 0;
  }

  /** A clock that was set right again needs no more moving on. */
  #movedOn(stored: Instant): Instant {
    return Math.max(stored, Math.min(stored + this.#setBackMs, this.now()));
  }

  #learn(instant: Instant): void {
    this.#offset = Math.max(this.#offset, instant - this.#clock.monotonic());
  }
}
