/** When an envelope without a verdict is sent again. */
export interface RetryOptions {
  /** Wait for the first verdict, milliseconds; each further wait is twice as long. Default 5,000. */
  firstMs?: number;
  /** Longest wait between two sends, milliseconds. Default 60,000. */
  maxMs?: number;
  /** After so long without a verdict the outcome is uncertain, milliseconds. Default 600,000. */
  giveUpMs?: number;
  /** How long nobody may listen before that is the answer, milliseconds. Default 1,500. */
  noServiceMs?: number;
}

export type RetryBounds = Required<RetryOptions>;

export const RETRY_DEFAULTS: RetryBounds = {
  firstMs: 5_000,
  maxMs: 60_000,
  giveUpMs: 600_000,
  noServiceMs: 1_500,
};

/** Wait after the given attempt (from 1), never shorter than stated: `random` in [0, 1) adds up to a fifth. */
export function waitAfter(attempt: number, bounds: RetryBounds, random: number): number {
  const plain = Math.min(bounds.maxMs, bounds.firstMs * 2 ** Math.min(attempt - 1, 30));
  return plain * (1 + random / 5);
}
