/**
 * What is over is remembered for a while and then forgotten (architecture, section 6).
 *
 * F1 Counted in the entries' own times, so that every fold forgets alike.
 * F2 What lives is never forgotten, nor what it stands on: that is for whoever queues it to see to.
 * F3 One entry lets go of a bounded number; what is left goes with the next ones.
 */
import type { Fifo } from "./fifo.ts";
import type { Instant } from "./judging.ts";

/** More than one entry can end, so that the queue gets shorter (F3). */
export const FORGOTTEN_MAX = 64;

/**
 * Lets go of what ended longer ago than the retention at the time of an entry: takes it off the queue, whose
 * oldest stands first, and hands it over.
 */
export function forgetOver<Over extends { readonly at: Instant }>(
  queue: Fifo<Over>,
  { retentionMs, at }: { retentionMs: number; at: Instant },
  forget: (over: Over) => void,
): void {
  for (let left = FORGOTTEN_MAX; left > 0; left -= 1) {
    const oldest = queue.peek();
    if (oldest === undefined || oldest.at + retentionMs >= at) return;
    queue.shift();
    forget(oldest);
  }
}
