/**
 * Things that may leave the process only when the log entry they speak of is stored
 * (architecture, section 6: tagged with the last folded sequence, released when that is acked).
 */
interface Waiting {
  seq: number;
  release: () => void;
  drop: (() => void) | undefined;
}

export class Releases {
  #waiting: Waiting[] = [];
  #head = 0;
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
      const next = this.#waiting[this.#head];
      if (next === undefined || next.seq > this.#released) break;
      this.#head += 1;
      next.release();
    }
    if (this.#head > 1024 && this.#head * 2 > this.#waiting.length) {
      this.#waiting = this.#waiting.slice(this.#head);
      this.#head = 0;
    }
  }

  /** Gives up what was not released: whoever waits asks again. */
  clear(): void {
    const dropped = this.#waiting.slice(this.#head);
    this.#waiting = [];
    this.#head = 0;
    for (const { drop } of dropped) drop?.();
  }

  get size(): number {
    return this.#waiting.length - this.#head;
  }
}
