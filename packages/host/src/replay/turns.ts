/** Work that may be under way so many times at once, and for each asker; the rest waits for its turn. */
import { Fifo } from "@harmovela/envelope";
import { HarmovelaError } from "@harmovela/failure";

/** How much may be under way; of `each` and `all` what waits is counted too. */
export interface TurnBounds {
  atOnce: number;
  each: number;
  all: number;
}

export class Turns {
  readonly #bounds: TurnBounds;
  readonly #waiting = new Fifo<() => void>();
  /** Under way or waiting, by asker. */
  readonly #asked = new Map<string, number>();
  #running = 0;

  constructor(bounds: TurnBounds) {
    this.#bounds = bounds;
  }

  /** Throws a retryable `internal_error` when the asker, or all together, have too much under way. */
  async run<T>(asker: string, work: () => Promise<T>): Promise<T> {
    const { atOnce, each, all } = this.#bounds;
    const asked = this.#asked.get(asker) ?? 0;
    if (asked >= each || this.#running + this.#waiting.size >= all)
      throw new HarmovelaError("internal_error", "too much is asked at a time", {
        category: "dependency",
      });
    this.#asked.set(asker, asked + 1);
    try {
      if (this.#running >= atOnce)
        await new Promise<void>((resolve) => this.#waiting.push(resolve));
      else this.#running += 1;
      try {
        return await work();
      } finally {
        const next = this.#waiting.shift();
        if (next) next();
        else this.#running -= 1;
      }
    } finally {
      const left = (this.#asked.get(asker) ?? 1) - 1;
      if (left > 0) this.#asked.set(asker, left);
      else this.#asked.delete(asker);
    }
  }
}
