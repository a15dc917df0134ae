/**
 * After a failed append nothing is assumed: the log says what is stored (architecture, section 6).
 * Pauses grow until something is stored again: a full log must not be hammered with all that is in flight.
 */
import type { AppendFailure, Clock } from "@harmovela/bus";
import { HarmovelaError } from "@harmovela/failure";
import type { Logger } from "pino";
import type { Alarms } from "./alarms.ts";
import type { Counters } from "./counters.ts";

/** First and longest pause between two tries. */
const RETRY_MS_MIN = 50;
const RETRY_MS_MAX = 2_000;

export interface AppendRecoveryContext {
  clock: Clock;
  logger: Logger;
  counters: Counters;
  alarms: Alarms;
  isLeaseHeld(): boolean;
  writer: { readonly acked: number; reconcile(): Promise<boolean> };
}

export class AppendRecovery {
  readonly #context: AppendRecoveryContext;
  #pause = 0;
  #refusedAtAcked = -1;

  constructor(context: AppendRecoveryContext) {
    this.#context = context;
  }

  /** "stands": writing may go on. Otherwise why the leadership is over. Throws what is no passing trouble. */
  async run(failure: AppendFailure): Promise<"stands" | "displaced" | "lease_lost"> {
    const { clock, logger, counters, alarms, isLeaseHeld, writer } = this.#context;
    counters.add("recoveries");
    logger.warn({ failure }, "append failed; reading the log");
    if (failure.reason === "refused") alarms.raise(`the log refuses appends: ${failure.message}`);
    let pause = this.#firstPause(failure);
    for (;;) {
      if (pause > 0) await new Promise<void>((resolve) => clock.after(pause, resolve));
      if (!isLeaseHeld()) return "lease_lost";
      try {
        return (await writer.reconcile()) ? "stands" : "displaced";
      } catch (error) {
        if (!(error instanceof HarmovelaError) || error.category !== "dependency") throw error;
        pause = Math.min(RETRY_MS_MAX, Math.max(RETRY_MS_MIN, pause * 2));
      }
    }
  }

  #firstPause({ reason }: AppendFailure): number {
    const { acked } = this.#context.writer;
    if (reason !== "refused" || acked > this.#refusedAtAcked) this.#pause = 0;
    this.#refusedAtAcked = acked;
    if (reason === "refused") {
      this.#pause = Math.min(RETRY_MS_MAX, Math.max(RETRY_MS_MIN * 4, this.#pause * 2));
    }
    return this.#pause;
  }
}
