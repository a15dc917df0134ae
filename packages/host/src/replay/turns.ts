/** Work that may be under way so many times at once, and for each asker; the rest waits for its turn. */
import { Fifo } from "@harmovela/envelope";
import { HarmovelaError } from "@harmovela/failure";

export class Turns {
  readonly #max: number;
  readonly #maxEach: number;
  readonly #waiting = new Fifo<() => void>();
  /** Under way or waiting, by asker. */
  readonly #asked = new Map<string, number>();
  #running = 0;

  constructor(max: number, maxEach: number) {
    this.#max = max;
    this.#maxEach = maxEach;
  }

  /** Throws a retryable `internal_error` when the asker has too much under way. */
  async run<T>(asker: string, work: () => Promise<T>): Promise<T> {
    const asked = this.#asked.get(asker) ?? 0;
    if (asked >= this.#maxEach)
      throw new HarmovelaError("internal_error", "too many replays at a time", {
        category: "dependency",
      });
    this.#asked.set(asker, asked + 1);
    try {
      if (this.#running >= this.#max)
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
