/** Agents that were told that their work has ended, or that it stands still, and go on with it (case A13). */

import type { Alarms } from "./alarms.ts";
import type { Counters } from "./counters.ts";

export interface Late {
  tenant: string;
  source: string;
  /** What is over or stopped, as the decider names it. */
  work: string;
}

/** What was under way when the end came is refused too, and says nothing about who sent it. */
const REFUSALS_UNTIL_SURE = 3;
/** Works remembered at once; the longest silent one is forgotten first. */
const WORKS_MAX = 1_000;

export class LateWork {
  readonly #refusals = new Map<string, number>();
  readonly #counters: Counters;
  readonly #alarms: Alarms;

  constructor(counters: Counters, alarms: Alarms) {
    this.#counters = counters;
    this.#alarms = alarms;
  }

  /** Work on what is over or stopped was refused: counted, and an alarm when its agent evidently goes on. */
  refused(late: Late): void {
    this.#counters.add("late");
    if (!this.#goesOn(late)) return;
    // One alarm for each agent, however many works: their number is its count, their names are in the log.
    const { source, tenant } = late;
    this.#alarms.raise(`${source} of ${tenant} goes on working at what is over or stopped`, {
      ...late,
    });
  }

  /** True once for each work. */
  #goesOn({ tenant, source, work }: Late): boolean {
    const key = JSON.stringify([tenant, source, work]);
    const count = (this.#refusals.get(key) ?? 0) + 1;
    this.#refusals.delete(key);
    this.#refusals.set(key, count);
    if (this.#refusals.size > WORKS_MAX) {
      for (const oldest of this.#refusals.keys()) {
        this.#refusals.delete(oldest);
        break;
      }
    }
    return count === REFUSALS_UNTIL_SURE;
  }
}
