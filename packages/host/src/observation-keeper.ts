/**
 * For a decider whose state is that of the logs that it observes: entries that say how far these are folded
 * and where they begin now; and an alarm when one has lost anything else.
 *
 * D1 What the decider knows of trimming comes from its own log, so every fold knows the same. So does how
 *    far it has come: without an entry now and then there would be no snapshot, and nothing forgotten.
 * D2 Trimming takes entries off the beginning. A log that lacks one in its middle was tampered with: an
 *    alarm, and nothing is told to the decider, which would call it a truncation.
 * D3 They bear the time at which they are written: what is forgotten or told of because of them is dated by
 *    it, also where nobody speaks to this domain.
 */
import { type Clock, logStream } from "@harmovela/bus";
import type { Domain, Instant } from "@harmovela/envelope";
import type { Alarms } from "./alarms.ts";
import type { Fold } from "./fold.ts";
import type { LogWriter } from "./log-writer.ts";
import type { HostOptions } from "./options.ts";

/** Trimming is rare: a minute more does not matter to anybody. */
const LOOK_EVERY_MS = 60_000;
/** Looks again when a message is on its way. */
const AGAIN_MS = 20;
/** Entries of observed logs without one of its own: so many, … */
const UNTOLD_MAX = 1_000;
/** … or for so long. A standby, which folds what the own log says, is as far behind. */
const UNTOLD_MS_MAX = 5_000;

export interface ObservationKeeperContext<State> {
  options: HostOptions<State>;
  fold: Fold<State>;
  writer: LogWriter<State>;
  alarms: Alarms;
  isOpen(): boolean;
  /** The time of what is written between two messages; undefined while one is on its way. */
  instant(): Promise<Instant | undefined>;
}

export class ObservationKeeper<State> {
  readonly #context: ObservationKeeperContext<State>;
  readonly #clock: Clock;
  readonly #everyMs: number;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #untoldSince: number | undefined;
  /** Entries that are missing in the middle of a log, as they were alarmed of. */
  readonly #missing = new Map<Domain, number>();

  constructor(context: ObservationKeeperContext<State>) {
    this.#context = context;
    this.#clock = context.options.clock;
    this.#everyMs = context.options.observedEveryMs ?? LOOK_EVERY_MS;
  }

  /** Milliseconds until it wants to look again; none where nobody asks. */
  get waits(): number[] {
    if (this.#context.options.decider.firstKnown === undefined) return [];
    const look = Math.max(1, this.#lookedAt + this.#everyMs - this.#clock.monotonic());
    return this.#untoldSince === undefined ? [look] : [look, UNTOLD_MS_MAX];
  }

  /** Writes down what is new when it is time. */
  async keep(): Promise<void> {
    const { options, fold, writer, isOpen, instant } = this.#context;
    if (options.decider.firstKnown === undefined) return;
    const now = this.#clock.monotonic();
    const isTime = now - this.#lookedAt >= this.#everyMs;
    let first: Partial<Record<Domain, number>> = {};
    if (isTime) {
      this.#lookedAt = now;
      first = await this.#lost(options.decider.firstKnown(fold.state));
      if (!isOpen()) return;
    }
    const untold = totalOf(fold.seen) - totalOf(fold.noted);
    if (untold === 0) this.#untoldSince = undefined;
    else this.#untoldSince ??= now;
    const isLate = now - (this.#untoldSince ?? now) >= UNTOLD_MS_MAX;
    const isDue = untold >= UNTOLD_MAX || isLate || Object.keys(first).length > 0;
    if (!isDue || writer.room < 4) return;
    const at = await instant();
    if (!isOpen() || writer.room < 4) return;
    if (at === undefined) {
      this.#lookedAt = now - this.#everyMs + AGAIN_MS;
      return;
    }
    this.#untoldSince = undefined;
    const cause = { owed: "observed" };
    writer.control({ kind: "observed", first, cause, at: Math.max(at, fold.at) });
  }

  /** Logs that begin later than is known. */
  async #lost(
    known: Readonly<Partial<Record<Domain, number>>>,
  ): Promise<Partial<Record<Domain, number>>> {
    const { options, fold } = this.#context;
    const { domain, observes } = options;
    const logs = await Promise.all([domain, ...observes].map((log) => this.#firstOf(log)));
    const lost: Partial<Record<Domain, number>> = {};
    for (const { log, first } of logs) {
      // What is not folded yet is nobody's evidence yet.
      const folded = log === domain ? fold.seq : (fold.seen[log] ?? 0);
      const told = Math.min(first, folded + 1);
      if (told > (known[log] ?? 1)) lost[log] = told;
    }
    return lost;
  }

  /** The first position that a log still holds; 1 for one that holds nothing or is whole. */
  async #firstOf(log: Domain): Promise<{ log: Domain; first: number }> {
    const state = await this.#context.options.writer.streamState(logStream(log));
    if (state === undefined || state.lastSeq === 0) return { log, first: 1 };
    const { firstSeq, lastSeq, messages } = state;
    const missing = messages === 0 ? 0 : lastSeq - firstSeq + 1 - messages;
    if (missing > 0 && this.#missing.get(log) !== missing) {
      this.#missing.set(log, missing);
      this.#context.alarms.raise(
        `the log of ${log} lacks ${missing} entries between ${firstSeq} and ${lastSeq}: no retention removes these`,
      );
    }
    return { log, first: firstSeq };
  }
}

function totalOf(seen: Fold<unknown>["seen"]): number {
  return Object.values(seen).reduce((sum, seq) => sum + seq, 0);
}
