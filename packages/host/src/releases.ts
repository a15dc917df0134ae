/**
 * Things that may leave the process only when the log entry they speak of is stored
 * (architecture, section 6: tagged with the last folded sequence, released when that is acked).
 */
import { Fifo } from "@harmovela/envelope";

interface Waiting {
  seq: number;
  release: () => void;
  drop: (() => void) | undefined;
}

export class Releases {
  #waiting = new Fifo<Waiting>();
  #released = 0;

  /**
   * Calls `release` when everything up to `seq` is stored, at once when it already is; `drop` instead
   * when nobody will ever know.
   */
  add(seq: number, release: () => void, drop?: () => void): void {
    if (seq <= this.#released) release();
    else this.#waiting.push({ seq, release, drop });
  }

  /** Everything up to `acked` is stored. */
  releaseUpTo(acked: number): void {
    this.#released = Math.max(this.#released, acked);
    for (;;) {
      const next = this.#waiting.peek();
      if (next === undefined || next.seq > this.#released) break;
      this.#waiting.shift();
      next.release();
    }
  }

  /** Gives up what was not released: whoever waits asks again. */
  clear(): void {
    const dropped = this.#waiting;
    this.#waiting = new Fifo();
    for (let next = dropped.shift(); next !== undefined; next = dropped.shift()) next.drop?.();
  }

  get size(): number {
    return this.#waiting.size;
  }
}
