/**
 * What a handoff token proves (spec 7, section 11 C14 and C15). The signature was looked at before;
 * here it is held against the event, the state and the clock.
 *
 * K1 A handoff uses its token up; a wrong presentation uses up nothing.
 * K2 A token proves something only for its `iss` in a handoff, and for its `sub` anywhere else.
 * K3 A token that nobody here can see inside proves nothing, and is let through where no profile
 *    demands a proof. One of ours that fails a check is refused everywhere.
 * K4 A refusal names the check and never quotes the token.
 */
import type { Instant, TokenFacts } from "@harmovela/envelope";
import { type ErrorPayload, type JsonObject, reject } from "@harmovela/failure";
import { LIFETIME_MS_MAX, readClaims, SKEW_MS_MAX, type TokenClaims } from "./claims.ts";
import type { TokenMemory } from "./memory.ts";

export type TokenCheck =
  | "issuer"
  | "delegate"
  | "binding"
  | "expiry"
  | "replay"
  | "timeliness"
  | "superseded"
  | "malformed";

/** What a token must be bound to. */
export interface TokenBinding {
  delegatedBy: string;
  delegatedTo: string;
  taskId: string;
  parentId: string | undefined;
}

interface Presented {
  facts: TokenFacts | undefined;
  /** Who presents it. */
  source: string;
  /** A profile in force demands a proof (coordination.v1, security.v1). */
  isDemanded: boolean;
  now: Instant;
}

/** What was proved; nothing by an opaque token. */
export interface Proof {
  jti: string;
  exp: Instant;
}

export type TokenVerdict = { proof: Proof | undefined } | { refused: ErrorPayload };

/**
 * The token of a handoff, all seven checks (K1, K2). `isCurrent` says whether a token of these
 * parties is still good for the task. Its own event again: that event's log position.
 */
export function judgeHandoffToken(
  memory: TokenMemory,
  presented: Presented & {
    eventId: string;
    binding: TokenBinding;
    isCurrent: (claims: TokenClaims) => boolean;
  },
): TokenVerdict | { usedBySame: number } {
  const read = inside(presented);
  if ("refused" in read || read.claims === undefined) return toVerdict(read);
  const { claims } = read;
  const failed =
    bindingRefusal(claims, presented.binding, memory) ??
    presenterRefusal(claims.iss, presented.source, "issuer") ??
    expiryRefusal(claims, presented.now);
  if (failed) return { refused: failed };
  const spentBy = memory.known.get(claims.jti)?.spentBy;
  if (spentBy?.id === presented.eventId) return { usedBySame: spentBy.seq };
  if (spentBy) return { refused: refusedBy("replay", { used_by: spentBy.id }) };
  const untimely = timelinessRefusal(claims, presented.now);
  if (untimely) return { refused: untimely };
  return current(claims, presented, memory);
}

/**
 * The token of a query or of another delegation event: checks 1 to 4 and 6, and that it is the one by
 * which the task came to its presenter (C14). Parties that were replaced have no say at all.
 */
export function judgeShownToken(
  memory: TokenMemory,
  presented: Presented & {
    binding: TokenBinding | undefined;
    isFormer: (claims: TokenClaims) => boolean;
    isCurrent: (claims: TokenClaims) => boolean;
  },
): TokenVerdict {
  const read = inside(presented);
  if ("refused" in read || read.claims === undefined) return toVerdict(read);
  const { claims } = read;
  const { binding, source, now } = presented;
  if (binding === undefined) return { refused: refusedBy("binding") };
  if (presented.isFormer(claims)) return { refused: refusedBy("superseded") };
  const failed =
    bindingRefusal(claims, binding, memory) ??
    presenterRefusal(claims.sub, source, "delegate") ??
    expiryRefusal(claims, now) ??
    timelinessRefusal(claims, now);
  return failed ? { refused: failed } : current(claims, presented, memory);
}

type Inside = { claims: TokenClaims | undefined } | { refused: ErrorPayload };

function toVerdict(read: Inside): TokenVerdict {
  return "refused" in read ? read : { proof: undefined };
}

/** K3. */
function inside({ facts, isDemanded }: Presented): Inside {
  if (facts === undefined || facts.kind === "opaque") {
    return isDemanded ? { refused: refusedBy("malformed") } : { claims: undefined };
  }
  if (facts.kind === "forged") return { refused: refusedBy("malformed") };
  const claims = readClaims(facts.claims);
  return "malformed" in claims
    ? { refused: refusedBy("malformed", { claim: claims.malformed }) }
    : { claims };
}

function bindingRefusal(
  claims: TokenClaims,
  binding: TokenBinding,
  { tenant }: TokenMemory,
): ErrorPayload | undefined {
  if (claims.tenant !== undefined && claims.tenant !== tenant) {
    return refusedBy("binding", { claim: "tenant" });
  }
  if (claims.iss !== binding.delegatedBy) return refusedBy("issuer");
  if (claims.sub !== binding.delegatedTo) return refusedBy("delegate");
  const isBound = claims.task_id === binding.taskId && claims.parent_task_id === binding.parentId;
  return isBound ? undefined : refusedBy("binding");
}

/** K2. */
function presenterRefusal(
  entitled: string | undefined,
  source: string,
  check: TokenCheck,
): ErrorPayload | undefined {
  return entitled === source ? undefined : refusedBy(check, { reason: "presented by another" });
}

/** A token is good until its `exp` and not at it. */
function expiryRefusal({ exp, iat }: TokenClaims, now: Instant): ErrorPayload | undefined {
  if (exp === undefined) return refusedBy("expiry", { claim: "exp", reason: "missing" });
  if (now >= exp) return refusedBy("expiry", { claim: "exp", late_by_ms: now - exp });
  if (iat === undefined || exp - iat <= LIFETIME_MS_MAX) return undefined;
  return refusedBy("expiry", { claim: "exp", lifetime_ms_max: LIFETIME_MS_MAX });
}

function timelinessRefusal({ iat }: TokenClaims, now: Instant): ErrorPayload | undefined {
  if (iat === undefined) return refusedBy("timeliness", { claim: "iat", reason: "missing" });
  if (iat - now <= SKEW_MS_MAX) return undefined;
  const details = { claim: "iat", early_by_ms: iat - now, skew_ms_max: SKEW_MS_MAX };
  return refusedBy("timeliness", details);
}

function current(
  claims: TokenClaims,
  { isCurrent }: { isCurrent: (claims: TokenClaims) => boolean },
  memory: TokenMemory,
): TokenVerdict {
  const known = memory.known.get(claims.jti);
  const isVoid = known !== undefined && known.spentBy === undefined;
  if (isVoid || !isCurrent(claims)) return { refused: refusedBy("superseded") };
  return { proof: { jti: claims.jti, exp: claims.exp ?? 0 } };
}

function refusedBy(check: TokenCheck, details: JsonObject = {}): ErrorPayload {
  return reject("unauthorized", `the handoff token fails the check "${check}"`, {
    check,
    ...details,
  });
}
