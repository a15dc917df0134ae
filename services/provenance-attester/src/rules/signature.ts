/**
 * What the signature of an envelope is worth (spec 4.2 security.v1, section 8). Who made it is found out
 * by the host; here it is held against the times at which the key was good.
 *
 * S1 What arrives is judged now: it is fresh, and a key that is revoked signs nothing any more, whatever
 *    date its bearer writes.
 * S2 What is stored is judged at its own time, `created_at`, bounded by when it was logged: a key that
 *    ended or was revoked later takes nothing back.
 */
import type { EventEntry, Instant, SignatureFacts } from "@harmovela/envelope";
import { SKEW_MS } from "../settings.ts";

export type SignatureProblem =
  | "missing"
  | "malformed"
  | "unknown_key"
  | "forged"
  | "not_yet_valid"
  | "expired"
  | "revoked"
  | "in_future"
  | "too_old";

/** S1; undefined: it is good. */
export function arrivingProblem(
  facts: SignatureFacts | undefined,
  times: { createdAt: Instant; now: Instant; ageMs: number },
): SignatureProblem | undefined {
  const { createdAt, now, ageMs } = times;
  const problem = keyProblem(facts, createdAt);
  if (problem !== undefined || facts?.kind !== "verified") return problem;
  if (facts.revokedAt !== undefined && facts.revokedAt <= now) return "revoked";
  if (createdAt > now + SKEW_MS) return "in_future";
  return createdAt < now - ageMs ? "too_old" : undefined;
}

/** S2; undefined: it is good. */
export function storedProblem(
  facts: SignatureFacts | undefined,
  times: { createdAt: Instant; at: Instant },
): SignatureProblem | undefined {
  const signedAt = Math.min(times.createdAt, times.at);
  const problem = keyProblem(facts, signedAt);
  if (problem !== undefined || facts?.kind !== "verified") return problem;
  return facts.revokedAt !== undefined && facts.revokedAt <= signedAt ? "revoked" : undefined;
}

function keyProblem(
  facts: SignatureFacts | undefined,
  signedAt: Instant,
): SignatureProblem | undefined {
  if (facts === undefined) return "missing";
  if (facts.kind !== "verified") return facts.kind;
  if (signedAt < facts.from) return "not_yet_valid";
  return facts.until !== undefined && signedAt >= facts.until ? "expired" : undefined;
}

/** The key that was found to have signed an entry, as its verdict says. */
export function signerIn(verdict: EventEntry["verdict"]): string | undefined {
  const signer = verdict?.signed_by;
  return typeof signer === "string" ? signer : undefined;
}
