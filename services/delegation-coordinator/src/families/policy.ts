/** The L1 policy of a session: of two declarations the stricter one, dimension by dimension (spec 4.3). */
import type { JsonObject, JsonValue } from "@harmovela/failure";

const BLOCKS = ["budget", "timeouts", "allowed_actions", "termination"] as const;

/** Consequences from lenient to strict, as far as the documents name them. */
const CONSEQUENCES: readonly JsonValue[] = ["ignore", "warn", "escalate", "fail", "terminate"];

/**
 * The blocks that either side declares. Of two numbers the smaller is kept, of two lists what both
 * allow, of two consequences the harder; where nothing says which is stricter the service's own stays.
 */
export function effectivePolicy(own: JsonObject, theirs: JsonObject): JsonObject {
  const effective: JsonObject = {};
  for (const block of BLOCKS) {
    const value = stricter(own[block], theirs[block]);
    if (value !== undefined) effective[block] = value;
  }
  return effective;
}

function stricter(
  own: JsonValue | undefined,
  theirs: JsonValue | undefined,
): JsonValue | undefined {
  if (own === undefined || own === null) return theirs;
  if (theirs === undefined || theirs === null) return own;
  if (typeof own === "number" && typeof theirs === "number") return Math.min(own, theirs);
  if (Array.isArray(own) && Array.isArray(theirs)) {
    const allowed = new Set(theirs);
    return own.filter((value) => allowed.has(value));
  }
  if (isObject(own) && isObject(theirs)) {
    const keys = new Set([...Object.keys(own), ...Object.keys(theirs)]);
    return Object.fromEntries(
      [...keys].map((key) => [key, stricter(ownValue(own, key), ownValue(theirs, key)) ?? null]),
    );
  }
  const rank = CONSEQUENCES.indexOf(theirs);
  return rank > CONSEQUENCES.indexOf(own) && CONSEQUENCES.includes(own) ? theirs : own;
}

function ownValue(object: JsonObject, key: string): JsonValue | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
