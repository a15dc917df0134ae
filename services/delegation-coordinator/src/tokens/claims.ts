/** What a handoff token says (spec 7), read from the claims of a verified one. */
import { type Instant, isId, isInstant, parseInstant } from "@harmovela/envelope";
import type { JsonObject, JsonValue } from "@harmovela/failure";

/** Clocks may be apart by so much (spec 7, check 6). */
export const SKEW_MS_MAX = 60_000;

/** No token may outlive the memory of used ones (architecture, section 6). */
export const LIFETIME_MS_MAX = 24 * 3_600_000;

/** The claims that are there; times in milliseconds. */
export interface TokenClaims {
  iss: string | undefined;
  sub: string | undefined;
  task_id: string | undefined;
  parent_task_id: string | undefined;
  /** Names are the same in many tenants; absent in tokens that were made before it was said. */
  tenant: string | undefined;
  iat: Instant | undefined;
  exp: Instant | undefined;
  jti: string;
}

/**
 * The claims, or the name of the first one that cannot be read. `jti` must be there: without it
 * nobody could tell a second use. Times are NumericDate, or RFC 3339 as the documents have it.
 */
export function readClaims(claims: JsonObject): TokenClaims | { malformed: string } {
  const read: Partial<Record<keyof TokenClaims, string | number>> = {};
  for (const name of ["iss", "sub", "task_id", "parent_task_id", "tenant", "jti"] as const) {
    const value = ownClaim(claims, name);
    if (value === undefined) continue;
    if (!isId(value)) return { malformed: name };
    read[name] = value;
  }
  for (const name of ["iat", "exp"] as const) {
    const value = ownClaim(claims, name);
    if (value === undefined) continue;
    const at = toInstant(value);
    if (at === undefined) return { malformed: name };
    read[name] = at;
  }
  if (read.jti === undefined) return { malformed: "jti" };
  return read as unknown as TokenClaims;
}

function ownClaim(claims: JsonObject, name: string): JsonValue | undefined {
  const value = Object.hasOwn(claims, name) ? claims[name] : undefined;
  return value === null ? undefined : value;
}

/** Seconds since the epoch, fractions allowed, or an RFC 3339 text. */
function toInstant(value: JsonValue): Instant | undefined {
  if (typeof value === "number") {
    const at = Math.round(value * 1000);
    return Number.isSafeInteger(at) ? at : undefined;
  }
  return isInstant(value) ? parseInstant(value) : undefined;
}
