/**
 * Works off what the service owes by itself, one entry at a time (architecture, sections 1 and 2).
 *
 * O1 Asked again after every entry; nothing is remembered between two of them but the state.
 * O2 A timer is written at its due time, never below the time of the last entry.
 * O3 What cannot be written is settled by `obligation_failed`, with an alarm, and the next one follows.
 * O4 An obligation that its own entry does not discharge is a broken rule: an alarm and a pause.
 */
import type { Instant, Owed } from "@harmovela/envelope";
import { boundedText } from "@harmovela/failure";
import type { Alarms } from "./alarms.ts";
import type { Counters } from "./counters.ts";
import { digestOf } from "./duplicates.ts";
import type { Fold } from "./fold.ts";
import { type LogWriter, UnappendableError } from "./log-writer.ts";
import { obligationKey } from "./obligation-key.ts";
import type { HostOptions } from "./options.ts";
import type { Requests } from "./requests.ts";

/** After `owed` threw it is not asked again for this long: a broken rule must not spin. */
const BROKEN_PAUSE_MS = 1_000;

export interface ObligationsContext<State> {
  options: HostOptions<State>;
  fold: Fold<State>;
  writer: LogWriter<State>;
  requests: Requests;
  counters: Counters;
  alarms: Alarms;
  /** Obligations (`obligationKey`) whose entry `evolve` could not fold. */
  failing: ReadonlySet<string>;
}

export class Obligations<State> {
  readonly #context: ObligationsContext<State>;
  #pausedUntil = Number.NEGATIVE_INFINITY;
  #reported = new Set<string>();
  #lastKey: string | undefined;

  constructor(context: ObligationsContext<State>) {
    this.#context = context;
  }

  /** The next obligation at `now`; undefined also while a broken rule pauses. */
  next(now: Instant): Owed | undefined {
    const { options, fold, requests } = this.#context;
    if (options.clock.monotonic() < this.#pausedUntil) return undefined;
    try {
      return options.decider.owed(fold.state, now, requests);
    } catch (error) {
      this.#onBroken(error);
      return undefined;
    }
  }

  /** Milliseconds until `owed` may be asked again; 0 when it may be asked now. */
  get pauseMs(): number {
    return Math.max(0, this.#pausedUntil - this.#context.options.clock.monotonic());
  }

  #onBroken(error: unknown): void {
    const { options, alarms, writer, fold } = this.#context;
    this.#pausedUntil = options.clock.monotonic() + BROKEN_PAUSE_MS;
    const reason = error instanceof Error ? error.message : String(error);
    alarms.raise(`owed failed: ${reason}`);
    if (this.#reported.has(reason) || this.#reported.size >= 100 || writer.room === 0) return;
    this.#reported.add(reason);
    writer.control({
      kind: "obligation_failed",
      id: "owed",
      reason: boundedText(reason),
      cause: { owed: "owed" },
      at: fold.at,
    });
  }

  /** Writes every timer that is due at `now`, earliest first. False when there is no room for more. */
  workOffTimers(now: Instant): boolean {
    for (;;) {
      const owed = this.next(now);
      if (owed === undefined || "wakeAt" in owed) return true;
      if ("request" in owed) {
        if (!this.#context.requests.send(owed)) return true;
      } else if (owed.urgency !== "timer" || owed.due > now) return true;
      else if (!this.#write(owed)) return false;
    }
  }

  /** Writes up to `max` steps of plans. True when more are waiting. */
  workOffSteps(max: number): boolean {
    const { fold } = this.#context;
    for (let done = 0; done < max; done += 1) {
      const owed = this.next(fold.at);
      if (owed === undefined || "wakeAt" in owed) return false;
      if ("request" in owed) {
        if (!this.#context.requests.send(owed)) return false;
      } else if (!this.#write(owed)) return true;
    }
    return true;
  }

  /** Sends requests that fell due while nothing was written. What is due as a timer goes before them. */
  sendDue(now: Instant): void {
    for (;;) {
      const owed = this.next(now);
      if (owed === undefined || !("request" in owed) || !this.#context.requests.send(owed)) return;
    }
  }

  /** O1, O2, O3. False when there is no room. */
  #write(owed: Exclude<Owed, { wakeAt: Instant } | { request: unknown }>): boolean {
    const { fold, writer, counters, alarms, failing } = this.#context;
    if (writer.room < 2) return false;
    const at = Math.max(fold.at, owed.urgency === "timer" ? owed.due : 0);
    const { tenant } = owed;
    const cause = { owed: owed.cause };
    const id = "event" in owed ? owed.event.id : owed.begin.id;
    const key = obligationKey(tenant, id);
    if (key === this.#lastKey) {
      // O4: its own entry did not discharge it; written again and again it would fill the log.
      this.#onBroken(new Error(`obligation ${id} is owed again right after its entry`));
      return false;
    }
    this.#lastKey = key;
    try {
      if (failing.has(key)) throw new UnappendableError("its entry cannot be folded");
      if ("event" in owed) {
        const { event: envelope, refuses } = owed;
        const settled = refuses === undefined ? {} : { digest: digestOf(refuses) };
        writer.event({ tenant, envelope, cause, at, ...settled });
      } else writer.control({ kind: "begun", plan: owed.begin, tenant, cause, at });
      counters.add("derived");
    } catch (error) {
      if (!(error instanceof UnappendableError)) throw error;
      counters.add("obligations_failed");
      alarms.raise(`obligation ${id} failed: ${error.message}`);
      writer.control({
        kind: "obligation_failed",
        id,
        reason: error.message,
        tenant,
        cause,
        at,
      });
    }
    return true;
  }
}
