/** Entries that keep a restart short and refusals counted when nothing else is logged (architecture, sections 4, 6). */
import type { Clock } from "@harmovela/bus";
import type { Fold } from "./fold.ts";
import type { LogWriter } from "./log-writer.ts";
import type { RefusalRate } from "./refusal-rate.ts";

/** Messages that leave no entry (duplicates, refusals beyond the rate) are re-judged after a restart: at most so many, … */
const UNLOGGED_MAX = 1_000;
/** … or for so long. */
const UNLOGGED_MS_MAX = 60_000;
const REFUSED_ENTRY_EVERY_MS = 1_000;

export interface PositionKeeperContext<State> {
  clock: Clock;
  fold: Fold<State>;
  writer: LogWriter<State>;
  rate: RefusalRate;
}

export class PositionKeeper<State> {
  readonly #context: PositionKeeperContext<State>;
  #unloggedSince: number | undefined;
  #refusedAt = 0;

  constructor(context: PositionKeeperContext<State>) {
    this.#context = context;
  }

  /** Writes what is due; everything of the intake up to `judged` is judged. */
  keep(judged: number): void {
    const { clock, fold, writer, rate } = this.#context;
    const now = clock.monotonic();
    const frame = { cause: { in: judged }, at: fold.at };
    if (rate.uncounted > 0 && now - this.#refusedAt >= REFUSED_ENTRY_EVERY_MS) {
      this.#refusedAt = now;
      writer.control({ kind: "refused", body: rate.drain(), ...frame });
    }
    const unlogged = judged - fold.intake;
    if (unlogged <= 0) {
      this.#unloggedSince = undefined;
      return;
    }
    this.#unloggedSince ??= now;
    if (unlogged >= UNLOGGED_MAX || now - this.#unloggedSince >= UNLOGGED_MS_MAX) {
      writer.control({ kind: "position", body: { intake: judged }, ...frame });
      this.#unloggedSince = undefined;
    }
  }

  /** Milliseconds after which something may be due; none when nothing is kept back. */
  get waits(): number[] {
    const waits: number[] = [];
    if (this.#context.rate.uncounted > 0) waits.push(REFUSED_ENTRY_EVERY_MS);
    if (this.#unloggedSince !== undefined) waits.push(UNLOGGED_MS_MAX);
    return waits;
  }
}
