/**
 * Questions that are being answered; neither one source nor one tenant can take the place of all others
 * (architecture, section 3).
 */
import { TenantShares } from "../tenant-shares.ts";

/** In one process; a question costs some 10 KB while it waits. */
const ALL_MAX = 2_000;
/** Of one source, half of them: whoever hands over a thousand tasks at once asks for as many tokens. */
export const READS_PER_SOURCE_MAX = 1_000;
/** Of one tenant, when others have taken all: its agents go on, if more slowly. */
const RESERVED = 50;

export class ReadsUnderWay {
  readonly #bySource = new Map<string, number>();
  readonly #shares = new TenantShares({ all: ALL_MAX, reserved: RESERVED });

  /** False when there are too many, in all or of this source; else `end` must follow. */
  begin(tenant: string, source: string): boolean {
    const key = keyOf(tenant, source);
    const own = this.#bySource.get(key) ?? 0;
    if (own >= READS_PER_SOURCE_MAX || !this.#shares.begin(tenant)) return false;
    this.#bySource.set(key, own + 1);
    return true;
  }

  end(tenant: string, source: string): void {
    const key = keyOf(tenant, source);
    const own = (this.#bySource.get(key) ?? 0) - 1;
    this.#shares.end(tenant);
    if (own > 0) this.#bySource.set(key, own);
    else this.#bySource.delete(key);
  }

  get sources(): number {
    return this.#bySource.size;
  }
}

/** Names hold no control characters, so the pair is unambiguous. */
const keyOf = (tenant: string, source: string): string => `${tenant}\u0000${source}`;
