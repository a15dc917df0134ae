/** Time for whoever waits. The wall clock is deliberately absent: the broker's time judges. */
export interface Clock {
  /** Milliseconds that never go back; the origin means nothing. */
  monotonic(): number;
  /** Calls `fn` once after `ms` (bounded waits only, at most 2^31-1); the result cancels it. */
  after(ms: number, fn: () => void): () => void;
  /** Calls `fn` after what has already arrived was delivered (one loop turn). */
  soon(fn: () => void): void;
}

export const systemClock: Clock = {
  monotonic: () => performance.now(),
  after(ms, fn) {
    const timer = setTimeout(fn, ms);
    return () => clearTimeout(timer);
  },
  soon(fn) {
    setImmediate(fn);
  },
};
