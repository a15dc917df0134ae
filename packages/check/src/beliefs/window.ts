import { addDuration, type Envelope, INSTANT_MAX, parseInstant } from "@harmovela/envelope";

/** When the content of an assertion holds (spec 6.2). */
export interface Window {
  readonly from: number;
  /** Where `stale_after` ends it, whatever `valid_until` says: the earliest end governs. */
  readonly bound: number;
  /** Its end; INSTANT_MAX + 1 for none. */
  end: number;
  /** Ends that are as right as that one, where the protocol does not say which decision is the newer. */
  readonly others: Set<number>;
  /** `created_at` of the assertion, and of the change in force. */
  readonly createdAt: number;
  changedAt: number | undefined;
  /** The newest change of which nobody says whether it is in force. */
  doubtfulAt: number;
}

/** The end of what never ends. */
export const NEVER = INSTANT_MAX + 1;

export function windowOf(envelope: Envelope): Window {
  const createdAt = parseInstant(envelope.created_at);
  const { valid_from: from, valid_until: until, stale_after: span } = envelope;
  const bound = span === undefined ? NEVER : addDuration(createdAt, span);
  return {
    from: from === undefined ? createdAt : parseInstant(from),
    bound,
    end: Math.min(until === undefined ? NEVER : parseInstant(until), bound),
    others: new Set(),
    createdAt,
    changedAt: undefined,
    doubtfulAt: -Infinity,
  };
}

/** Takes a change over, if it is newer than the one in force (spec 6.2); whether the end may be another now. */
export function changeWindow(window: Window, newEnd: number, createdAt: number): boolean {
  if (window.changedAt !== undefined && createdAt < window.changedAt) return false;
  const end = Math.min(newEnd, window.bound);
  // Whether what was decided before the assertion was made still counts, nobody says.
  if (createdAt < Math.max(window.createdAt, window.doubtfulAt)) {
    window.others.add(end);
    return true;
  }
  window.end = end;
  window.others.clear();
  window.changedAt = createdAt;
  return true;
}

/** Somebody changes it of whom nobody says whether he means this one. */
export function perhapsChangeWindow(window: Window, newEnd: number, createdAt: number): void {
  window.others.add(Math.min(newEnd, window.bound));
  window.doubtfulAt = Math.max(window.doubtfulAt, createdAt);
}
