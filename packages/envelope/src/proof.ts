/**
 * What an envelope that says it is signed is worth on arrival (spec 4.2 security.v1, section 8; section 11,
 * C15). The same in every domain: who made the signature is found out by the host, here it is held
 * against the times at which the key was good.
 */
import { type ErrorPayload, type JsonObject, reject } from "@harmovela/failure";
import type { Envelope } from "./envelope.ts";
import { isRecord } from "./field.ts";
import { parseInstant } from "./instant.ts";
import type { Decision, Instant, Judged, SignatureFacts } from "./judging.ts";
import type { SessionBook } from "./sessions/book.ts";
import { profilesInForce, type SessionSettings } from "./sessions/judge-session.ts";
import { SIGNATURE_SCHEME } from "./signing.ts";

const SECURITY = "harmovela.security.v1";
/** Clocks of agents may differ by as much, ms (spec 7, check 6). */
export const SKEW_MS = 60_000;
/** How old a signed envelope may be when it arrives where nothing else is set, ms. */
export const SIGNATURE_AGE_MS = 600_000;

export interface ProofSettings extends SessionSettings {
  /** Senders are proved by the connection. */
  authenticated: boolean;
  /** How old a signed envelope may be when it arrives, ms. */
  signatureAgeMs: number;
}

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

/**
 * Whether the rules of security.v1 hold for an envelope: where senders are proved for every one, else
 * where the profile is in force for it (spec 4.2).
 */
export function isSecured(
  book: SessionBook,
  tenant: string,
  envelope: Envelope,
  settings: Pick<ProofSettings, "authenticated" | keyof SessionSettings>,
): boolean {
  return (
    settings.authenticated || profilesInForce(book, tenant, envelope, settings).includes(SECURITY)
  );
}

/**
 * Why an envelope is refused for what it says of its own proof: `unauthorized` with `details.check`. That
 * is `scheme` for an `authorization` of a kind that nobody here can check, whatever is in force; and
 * `signature` with `details.reason` for one that says `signed` under security.v1 and is not.
 */
export function proofRefusal(
  book: SessionBook,
  { envelope, tenant, signature }: Judged,
  settings: ProofSettings,
  now: Instant,
): ErrorPayload | undefined {
  const { authorization } = envelope;
  if (isRecord(authorization) && authorization.scheme !== SIGNATURE_SCHEME) {
    const details = { check: "scheme", known: [SIGNATURE_SCHEME] };
    return reject("unauthorized", "nobody here can check an authorization of this scheme", details);
  }
  const reason = problemOf(envelope, signature, settings, now);
  if (reason === undefined || !isSecured(book, tenant, envelope, settings)) return undefined;
  const details = { check: "signature", reason };
  return reject("unauthorized", "the signature does not prove this envelope", details);
}

/**
 * The decision with what its verdict says of the signature: `signed_by`, the key that was verified, or the
 * flag `signature_<problem>`. One that takes nothing, or an envelope that says nothing, stays as it is.
 */
export function tellProof(
  decision: Decision,
  { envelope, signature }: Judged,
  settings: Pick<ProofSettings, "signatureAgeMs">,
  now: Instant,
): Decision {
  if (envelope.source_trust !== "signed") return decision;
  if (!("accept" in decision) && !("begin" in decision)) return decision;
  const problem = problemOf(envelope, signature, settings, now);
  const { verdict = {} } = decision;
  if (problem === undefined) {
    if (signature?.kind !== "verified") return decision;
    return { ...decision, verdict: { signed_by: signature.kid, ...verdict } };
  }
  const flags = [`signature_${problem}`, ...flagsIn(verdict)];
  return { ...decision, verdict: { ...verdict, flags } };
}

function flagsIn({ flags }: JsonObject): string[] {
  return Array.isArray(flags) ? flags.filter((flag) => typeof flag === "string") : [];
}

function problemOf(
  envelope: Envelope,
  signature: SignatureFacts | undefined,
  { signatureAgeMs }: Pick<ProofSettings, "signatureAgeMs">,
  now: Instant,
): SignatureProblem | undefined {
  if (envelope.source_trust !== "signed") return undefined;
  const createdAt = parseInstant(envelope.created_at);
  return arrivingProblem(signature, { createdAt, now, ageMs: signatureAgeMs });
}

/**
 * What is wrong with a signature when it arrives: it is judged now. It is fresh, and a key that is revoked
 * signs nothing any more, whatever date its bearer writes. Undefined: it is good.
 */
function arrivingProblem(
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

/**
 * What is wrong with a stored one: it is judged at its own time, `created_at`, bounded by when it was
 * logged, so a key that ended or was revoked later takes nothing back. Undefined: it is good.
 */
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
export function signerIn(verdict: JsonObject | undefined): string | undefined {
  const signer = verdict?.signed_by;
  return typeof signer === "string" ? signer : undefined;
}
