/** What has happened to one task, for as many readers as like; each sees it from the beginning. */
import type { Observed } from "./lane.ts";

/** Entries that are kept for readers who come later or are slow; then the oldest go. */
const KEPT_MAX = 1_000;

export class EventFeed {
  #kept: Observed[] = [];
  /** How many entries have gone. */
  #gone = 0;
  #isOver = false;
  #wake: (() => void)[] = [];

  push(entry: Observed): void {
    if (this.#isOver) return;
    this.#kept.push(entry);
    if (this.#kept.length > KEPT_MAX) {
      this.#kept.shift();
      this.#gone += 1;
    }
    this.#rouse();
  }

  /** Readers end when they have seen everything. */
  end(): void {
    this.#isOver = true;
    this.#rouse();
  }

  async *read(): AsyncGenerator<Observed, undefined> {
    for (let at = 0; ; at++) {
      at = Math.max(at, this.#gone);
      while (at >= this.#gone + this.#kept.length) {
        if (this.#isOver) return undefined;
        await new Promise<void>((resolve) => this.#wake.push(resolve));
      }
      const entry = this.#kept[Math.max(at, this.#gone) - this.#gone];
      if (entry) yield entry;
    }
  }

  #rouse(): void {
    for (const wake of this.#wake.splice(0)) wake();
  }
}
