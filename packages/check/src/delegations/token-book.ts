/** A token stays interesting for this long after it has expired, ms (architecture, section 6). */
const SKEW_MS = 60_000;

const SWEEP_MIN = 1_000;

/** What the log tells about one handoff token; never the token. */
export interface KnownToken {
  /** Expiry, ms since the epoch. */
  exp: number;
  /** To what it is bound, when the service issued it. */
  bound?: { iss: string; sub: string; task: string; parent: string | undefined };
  isSpent: boolean;
  /** Worth nothing though unused: its offer was answered, superseded or withdrawn (spec 7). */
  isVoid: boolean;
}

/** Tokens by tenant and `jti`, until they have expired for everybody. */
export class TokenBook {
  readonly #known = new Map<string, KnownToken>();
  #sweepAt = SWEEP_MIN;

  get(tenant: string, jti: string, at: number): KnownToken | undefined {
    const known = this.#known.get(keyOf(tenant, jti));
    return known !== undefined && at <= known.exp + SKEW_MS ? known : undefined;
  }

  set(tenant: string, jti: string, token: KnownToken, at: number): void {
    this.#known.set(keyOf(tenant, jti), token);
    if (this.#known.size < this.#sweepAt) return;
    for (const [key, { exp }] of this.#known) if (at > exp + SKEW_MS) this.#known.delete(key);
    this.#sweepAt = Math.max(SWEEP_MIN, 2 * this.#known.size);
  }

  /** Those of an offer that were not used. */
  void(tenant: string, jtis: readonly string[]): void {
    for (const jti of jtis) {
      const known = this.#known.get(keyOf(tenant, jti));
      if (known !== undefined && !known.isSpent) known.isVoid = true;
    }
  }
}

const keyOf = (tenant: string, jti: string): string => `${tenant.length}:${tenant}${jti}`;
