/**
 * Things that may leave the process only when the log entry they speak of is stored
 * (architecture, section 6: tagged with the last folded sequence, released when that is acked).
 */
export class Releases {
  #waiting: { seq: number; release: () => void }[] = [];
  #head = 0;
  #released = 0;

  /** Calls `release` when everything up to `seq` is stored; at once when it already is. */
  add(seq: number, release: () => void): void {
    if (seq <= this.#released && this.size === 0) release();
    else this.#waiting.push({ seq, release });
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

  /** Forgets what was not released: whoever waits asks again. */
  clear(): void {
    this.#waiting = [];
    this.#head = 0;
  }

  get size(): number {
    return this.#waiting.length - this.#head;
  }
}
