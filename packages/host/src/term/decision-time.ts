/**
 * The time of what is decided between two messages of the intake: not after a message that is stored and
 * not judged yet, or that one would be judged too late (T2).
 */
import { intakeStream, type StreamState } from "@harmovela/bus";
import type { Instant } from "@harmovela/envelope";
import type { BrokerTime } from "../broker-time.ts";
import type { Fold } from "../fold.ts";
import type { IntakeQueue } from "../intake-queue.ts";
import type { HostOptions } from "../options.ts";

/** A message that is stored reaches us within this; then whoever wants to decide something tries again. */
const ATTEMPTS_MAX = 100;
const WAIT_MS = 10;

export interface DecisionTimeContext<State> {
  options: HostOptions<State>;
  fold: Fold<State>;
  time: BrokerTime;
  /** Undefined while nothing is judged. */
  intake(): IntakeQueue | undefined;
  /** Resolves when the fold may change. */
  unfrozen(): Promise<void>;
}

export class DecisionTime<State> {
  readonly #context: DecisionTimeContext<State>;
  #asking: Promise<{ now: Instant; state: StreamState | undefined }> | undefined;

  constructor(context: DecisionTimeContext<State>) {
    this.#context = context;
  }

  /**
   * Waits for messages that are on their way; undefined when none could be had in time, or while nothing is
   * judged. The fold may change when it resolves.
   */
  async wait(): Promise<Instant | undefined> {
    const { options, fold, time, unfrozen } = this.#context;
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
      const intake = this.#context.intake();
      if (intake === undefined) return undefined;
      const next = intake.peek();
      if (next !== undefined) return time.instantBefore(next.time, fold.at);
      const { now, state } = await this.#askIntake();
      await unfrozen();
      if (state !== undefined && intake.isDrained(state)) return now;
      await new Promise<void>((resolve) => options.clock.after(WAIT_MS, resolve));
      await unfrozen();
    }
    return undefined;
  }

  /** The same for what need not wait: undefined while a message is on its way. */
  async now(): Promise<Instant | undefined> {
    const { fold, time } = this.#context;
    const intake = this.#context.intake();
    if (intake === undefined) return undefined;
    const next = intake.peek();
    if (next !== undefined) return time.instantBefore(next.time, fold.at);
    const { now, state } = await this.#askIntake();
    const isAll = state !== undefined && intake.isDrained(state);
    return isAll ? Math.max(now, fold.at) : undefined;
  }

  /** What the intake holds, and a time up to which that is all of it; whoever asks meanwhile shares the answer. */
  #askIntake(): Promise<{ now: Instant; state: StreamState | undefined }> {
    const { options, time } = this.#context;
    const now = time.now();
    this.#asking ??= options.writer
      .streamState(intakeStream(options.domain))
      .then((state) => ({ now, state }))
      .finally(() => {
        this.#asking = undefined;
      });
    return this.#asking;
  }
}
