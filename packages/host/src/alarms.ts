import type { Logger } from "pino";
import type { Counters } from "./counters.ts";

/** Alarms kept for `status`; older ones are in the process log. */
const KEPT_MAX = 20;

/** Things an operator must see: each once in the log, the newest in the status. */
export class Alarms {
  readonly #logger: Logger;
  readonly #counters: Counters;
  readonly #kept: { alarm: string; count: number }[] = [];

  constructor(logger: Logger, counters: Counters) {
    this.#logger = logger;
    this.#counters = counters;
  }

  raise(alarm: string, detail: Record<string, unknown> = {}): void {
    this.#counters.add("alarms");
    const known = this.#kept.find((kept) => kept.alarm === alarm);
    if (known !== undefined) {
      known.count += 1;
      return;
    }
    this.#kept.push({ alarm, count: 1 });
    if (this.#kept.length > KEPT_MAX) this.#kept.shift();
    this.#logger.error(detail, alarm);
  }

  all(): { alarm: string; count: number }[] {
    return this.#kept.map((kept) => ({ ...kept }));
  }
}
