import type { Envelope } from "@harmovela/envelope";
import { isObject } from "./record.ts";

/** Whether two envelopes are the same event, the judge's stamps (cursor, sequence) aside. */
export function sameEvent(a: Envelope, b: Envelope): boolean {
  return sameValue(withoutStamps(a), withoutStamps(b));
}

function withoutStamps(envelope: Envelope): Record<string, unknown> {
  const { delivery, ...rest } = envelope;
  const { cursor: _cursor, sequence: _sequence, ...kept } = delivery ?? {};
  return Object.keys(kept).length === 0 ? rest : { ...rest, delivery: kept };
}

/** Equality of JSON values; their depth is bounded by the wire contract (64). */
function sameValue(a: unknown, b: unknown): boolean {
  if (Object.is(a, b) || a === b) return true;
  if (Array.isArray(a)) {
    return (
      Array.isArray(b) && a.length === b.length && a.every((item, at) => sameValue(item, b[at]))
    );
  }
  if (!isObject(a) || !isObject(b)) return false;
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length) return false;
  return keys.every((key) => Object.hasOwn(b, key) && sameValue(a[key], b[key]));
}
