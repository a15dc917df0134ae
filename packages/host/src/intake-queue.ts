/** What has arrived from the intake and is not judged yet, in its order (architecture, section 5). */
import {
  type Bus,
  type Clock,
  intakeStream,
  type Reader,
  type StoredMessage,
  type StreamState,
} from "@harmovela/bus";
import type { Domain } from "@harmovela/envelope";
import type { Arrived } from "./judge.ts";
import type { SourceRate } from "./source-rate.ts";
import { type Judge, validate } from "./validate.ts";

/** Envelopes may be laborious: they are validated for so long before everything else gets its turn. */
const VALIDATING_MS_MAX = 50;
/** What was removed from the intake and has not come after so long does not come. */
const REMOVED_MS = 2_000;

export interface IntakeQueueOptions {
  bus: Bus;
  clock: Clock;
  domain: Domain;
  service: string;
  /** Without it every source may send as much as it likes. */
  rate?: SourceRate;
  /** Position up to which everything is settled. */
  after: number;
  onReady: () => void;
}

export class IntakeQueue {
  readonly #clock: Clock;
  readonly #judge: Judge;
  readonly #rate: SourceRate | undefined;
  readonly #reader: Reader;
  /** Taken, and not validated yet. */
  #taken: StoredMessage[] = [];
  #waiting: Arrived[] = [];
  #shifted = 0;
  /** Last position that was judged, logged or not. */
  judged: number;
  /** All that the intake held was removed before it was judged; seen since then. */
  #removed: { upTo: number; since: number } | undefined;

  constructor({ bus, clock, domain, service, rate, after, onReady }: IntakeQueueOptions) {
    this.#clock = clock;
    this.#rate = rate;
    this.#judge = { domain, service };
    this.judged = after;
    this.#reader = bus.openReader(intakeStream(domain), { after, onReady });
  }

  /** Taken and validated. */
  get waiting(): readonly Arrived[] {
    return this.#waiting;
  }

  /** Nothing has arrived that is not judged. */
  get isEmpty(): boolean {
    return this.#waiting.length + this.#taken.length + this.#reader.buffered === 0;
  }

  /** The next one to be judged, when it has arrived. */
  peek(): StoredMessage | undefined {
    const [waiting] = this.#waiting;
    if (waiting !== undefined) return waiting.message;
    if (this.#taken.length === 0) this.#taken.push(...this.#reader.take(1));
    return this.#taken[0];
  }

  /** It is not known yet whether something that was removed is still on its way. */
  get isUncertain(): boolean {
    return this.#removed !== undefined;
  }

  /** Takes what has arrived, until `max` are there. */
  fetch(max: number): void {
    const room = max - this.#waiting.length;
    if (room > this.#taken.length) {
      this.#taken.push(...this.#reader.take(room - this.#taken.length));
    }
  }

  /** Validates what was taken until `max` are waiting, or for a while. */
  validate(max: number): void {
    const until = this.#clock.monotonic() + VALIDATING_MS_MAX;
    const room = max - this.#waiting.length;
    let done = 0;
    for (const message of this.#taken) {
      if (done >= room || this.#clock.monotonic() > until) break;
      const checked = this.#rate?.refusalOf(message) ?? validate(message, this.#judge);
      this.#waiting.push({ message, checked });
      done += 1;
    }
    this.#taken.splice(0, done);
  }

  /** The first ones are judged. */
  shift(count: number): void {
    this.#waiting.splice(0, count);
    this.#shifted += count;
  }

  /** How many are judged. */
  get shifted(): number {
    return this.#shifted;
  }

  /** How many are judged, or taken and next. */
  get fetched(): number {
    return this.#shifted + this.#waiting.length + this.#taken.length;
  }

  /** How many have arrived so far, judged or not. */
  get arrived(): number {
    return this.fetched + this.#reader.buffered;
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
