/** What was acknowledged in an observed log before a message was stored is known before that is judged (F3). */
import type { Domain } from "@harmovela/envelope";
import { HarmovelaError } from "@harmovela/failure";
import type { Alarms } from "../alarms.ts";
import type { Fold } from "../fold.ts";
import type { IntakeQueue } from "../intake-queue.ts";
import type { ObservedEnd, ObservedLog } from "../observed-log.ts";

/** The ends of the observed logs, asked for when so many messages had arrived. */
interface Look<State> {
  arrived: number;
  ends: readonly { log: ObservedLog<State>; end: ObservedEnd }[];
}

export interface ObservedLooksContext<State> {
  fold: Fold<State>;
  observed: readonly ObservedLog<State>[];
  alarms: Alarms;
  /** So far an observed log has judged its intake. */
  onJudged(domain: Domain, intake: number): void;
}

export class ObservedLooks<State> {
  readonly #context: ObservedLooksContext<State>;
  /** Messages that had arrived when the logs were last looked at. */
  #lookedUpTo = 0;

  constructor(context: ObservedLooksContext<State>) {
    this.#context = context;
  }

  /**
   * Asks for the ends of the observed logs. One look is enough for all messages that had arrived by then: a
   * question takes as long as judging many of them. Undefined when no new one is needed.
   */
  ask({ fetched, shifted, arrived }: IntakeQueue): Look<State> | undefined {
    if (fetched > shifted && fetched <= this.#lookedUpTo) return undefined;
    const ends = this.#context.observed.map((log) => ({ log, end: log.askEnd() }));
    return { arrived, ends };
  }

  /** Folds up to these ends. False when one could not be reached: nothing can be judged against it now. */
  async catchUp({ arrived, ends }: Look<State>): Promise<boolean> {
    const { fold, alarms, onJudged } = this.#context;
    let isComplete = true;
    for (const { log, end } of ends) {
      try {
        await log.catchUp(fold, end);
      } catch (error) {
        if (!(error instanceof HarmovelaError) || error.category !== "dependency") throw error;
        alarms.raise(`cannot catch up with ${log.domain}: ${error.message}`);
        isComplete = false;
      }
      onJudged(log.domain, log.intake);
    }
    this.#lookedUpTo = isComplete ? arrived : 0;
    return isComplete;
  }
}
