/** Questions that are being answered; one source cannot take the place of all others (architecture, section 3). */

/** In one process; a question costs some 10 KB while it waits. */
const ALL_MAX = 2_000;
/** Of one source, half of them: whoever hands over a thousand tasks at once asks for as many tokens. */
export const READS_PER_SOURCE_MAX = 1_000;

export class ReadsUnderWay {
  readonly #bySource = new Map<string, number>();
  #all = 0;

  /** False when there are too many, in all or of this source; else `end` must follow. */
  begin(tenant: string, source: string): boolean {
    const key = keyOf(tenant, source);
    const own = this.#bySource.get(key) ?? 0;
    if (this.#all >= ALL_MAX || own >= READS_PER_SOURCE_MAX) return false;
    this.#all += 1;
    this.#bySource.set(key, own + 1);
    return true;
  }

  end(tenant: string, source: string): void {
    const key = keyOf(tenant, source);
    const own = (this.#bySource.get(key) ?? 0) - 1;
    this.#all -= 1;
    if (own > 0) this.#bySource.set(key, own);
    else this.#bySource.delete(key);
  }

  get sources(): number {
    return this.#bySource.size;
  }
}

/** Names hold no control characters, so the pair is unambiguous. */
const keyOf = (tenant: string, source: string): string => `${tenant}\u0000${source}`;
