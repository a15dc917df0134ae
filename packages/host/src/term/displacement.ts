/** T4: appends find out by themselves that another leads; a leader with nothing to write looks now and then. */
import { intakeStream, logStream } from "@harmovela/bus";
import type { Fold } from "../fold.ts";
import type { IntakeQueue } from "../intake-queue.ts";
import type { LogWriter } from "../log-writer.ts";
import type { HostOptions } from "../options.ts";
import { assertSameStream } from "../same-streams.ts";

export interface DisplacementContext<State> {
  options: HostOptions<State>;
  fold: Fold<State>;
  writer: LogWriter<State>;
  isOpen(): boolean;
}

/** Another has written to the log; or the intake has lost everything up to there, and no later message will show it. */
type Finding = "displaced" | { missingUpTo: number } | undefined;

export class DisplacementWatch<State> {
  readonly #context: DisplacementContext<State>;
  #lookedAt: number;

  constructor(context: DisplacementContext<State>) {
    this.#context = context;
    this.#lookedAt = context.options.clock.monotonic();
  }

  /** Milliseconds between two looks. */
  get everyMs(): number {
    return this.#context.options.leaseTtlMs / 3;
  }

  /** Looks when it is time and nothing was written since. Throws when a stream is not the one it was (same-streams). */
  async look(intake: IntakeQueue): Promise<Finding> {
    const { options, fold, writer, isOpen } = this.#context;
    const { clock, domain } = options;
    const now = clock.monotonic();
    if (!writer.isIdle) this.#lookedAt = now;
    if (now - this.#lookedAt < this.everyMs) return undefined;
    this.#lookedAt = now;
    // Taken first: a token may be recorded while the questions are under way.
    const { acked } = writer;
    const stored = await options.writer.streamState(logStream(domain));
    const asked = await options.writer.streamState(intakeStream(domain));
    if (!isOpen() || !writer.isIdle) return undefined;
    assertSameStream("log", stored, fold.leadership, acked);
    assertSameStream("intake", asked, fold.leadership, intake.judged);
    if ((stored?.lastSeq ?? 0) > writer.acked) return "displaced";
    if (asked === undefined || !intake.isDrained(asked) || asked.lastSeq <= intake.judged) return;
    return { missingUpTo: asked.lastSeq };
  }
}
