/** Until when an assertion is fresh, and which decision about that counts (spec 6.2). */
import {
  addDuration,
  type Envelope,
  type Instant,
  isInstant,
  parseInstant,
  payloadText,
} from "@harmovela/envelope";
import type { Claim } from "../state.ts";

export interface Validity {
  validFrom: Instant;
  validUntil: Instant | undefined;
  staleAt: Instant | undefined;
}

/** Durations follow the calendar in UTC from `created_at`; zero is stale at once. */
export function validityOf(envelope: Envelope): Validity {
  const { valid_from: from, valid_until: until, stale_after: staleAfter } = envelope;
  const createdAt = parseInstant(envelope.created_at);
  return {
    validFrom: from === undefined ? createdAt : parseInstant(from),
    validUntil: until === undefined ? undefined : parseInstant(until),
    staleAt: staleAfter === undefined ? undefined : addDuration(createdAt, staleAfter),
  };
}

/** The earliest bound governs. */
export function endOf({ validUntil, staleAt }: Omit<Validity, "validFrom">): Instant | undefined {
  if (validUntil === undefined) return staleAt;
  return staleAt === undefined ? validUntil : Math.min(validUntil, staleAt);
}

/** What is odd about a decision; "late" and "without_end" ones change nothing. */
export type ChangeFlag = "late" | "without_end" | "previous_valid_until_mismatch";

export interface ChangeVerdict {
  isApplied: boolean;
  flags: ChangeFlag[];
  newValidUntil: Instant | undefined;
}

/** A decision that is older than the one in force comes too late; of two of one time the later entry counts. */
export function judgeChange(claim: Claim, envelope: Envelope): ChangeVerdict {
  const flags: ChangeFlag[] = [];
  const createdAt = parseInstant(envelope.created_at);
  const newValidUntil = instantIn(envelope, "new_valid_until");
  const previous = instantIn(envelope, "previous_valid_until");
  if (createdAt < (claim.change?.createdAt ?? claim.createdAt)) flags.push("late");
  if (newValidUntil === undefined) flags.push("without_end");
  const isApplied = flags.length === 0;
  if (previous !== undefined && previous !== claim.validUntil && previous !== endOf(claim)) {
    flags.push("previous_valid_until_mismatch");
  }
  return { isApplied, flags, newValidUntil };
}

function instantIn(envelope: Envelope, key: string): Instant | undefined {
  const text = payloadText(envelope, key);
  return isInstant(text) ? parseInstant(text) : undefined;
}
