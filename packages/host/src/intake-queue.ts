/** What has arrived from the intake and is not judged yet, in its order (architecture, section 5). */
import { type Bus, type Clock, intakeStream, type Reader, type StreamState } from "@harmovela/bus";
import type { Domain } from "@harmovela/envelope";
import type { Arrived } from "./judge.ts";
import { validate } from "./validate.ts";

/** Envelopes may be large: so many at a time are validated, for so long, before the lease gets its turn. */
const MESSAGES_PER_TAKE = 16;
const TAKING_MS_MAX = 50;
/** What was removed from the intake and has not come after so long does not come. */
const REMOVED_MS = 2_000;

export interface IntakeQueueOptions {
  bus: Bus;
  clock: Clock;
  domain: Domain;
  /** Position up to which everything is settled. */
  after: number;
  onReady: () => void;
}

export class IntakeQueue {
  readonly #clock: Clock;
  readonly #domain: Domain;
  readonly #reader: Reader;
  #waiting: Arrived[] = [];
  /** Last position that was judged, logged or not. */
  judged: number;
  /** All that the intake held was removed before it was judged; seen since then. */
  #removed: { upTo: number; since: number } | undefined;

  constructor({ bus, clock, domain, after, onReady }: IntakeQueueOptions) {
    this.#clock = clock;
    this.#domain = domain;
    this.judged = after;
    this.#reader = bus.openReader(intakeStream(domain), { after, onReady });
  }

  /** Taken and validated. */
  get waiting(): readonly Arrived[] {
    return this.#waiting;
  }

  /** Nothing has arrived that is not judged. */
  get isEmpty(): boolean {
    return this.#waiting.length === 0 && this.#reader.buffered === 0;
  }

  /** It is not known yet whether something that was removed is still on its way. */
  get isUncertain(): boolean {
    return this.#removed !== undefined;
  }

  /** Takes what has arrived until `max` are waiting, or for a while. */
  take(max: number): void {
    const until = this.#clock.monotonic() + TAKING_MS_MAX;
    while (this.#waiting.length < max && this.#clock.monotonic() <= until) {
      const room = Math.min(MESSAGES_PER_TAKE, max - this.#waiting.length);
      const messages = this.#reader.take(room);
      for (const message of messages) {
        this.#waiting.push({ message, checked: validate(message, this.#domain) });
      }
      if (messages.length < room) return;
    }
  }

  /** The first ones are judged. */
  shift(count: number): void {
    this.#waiting.splice(0, count);
  }

  /** Nothing that is stored is unread. What was removed unread may still be on its way, for a moment. */
  isDrained({ lastSeq, messages }: StreamState): boolean {
    if (!this.isEmpty) return false;
    if (lastSeq <= this.judged || messages > 0) {
      this.#removed = undefined;
      return lastSeq <= this.judged;
    }
    const now = this.#clock.monotonic();
    if (this.#removed?.upTo !== lastSeq) this.#removed = { upTo: lastSeq, since: now };
    return now - this.#removed.since >= REMOVED_MS;
  }

  async close(): Promise<void> {
    await this.#reader.close();
  }
}
