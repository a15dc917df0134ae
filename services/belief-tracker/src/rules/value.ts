/** What an assertion says of its subject (spec 6.1), as canonical JSON: equal texts are equal values. */
import { canonicalJson, type Envelope, payloadText, payloadValue } from "@harmovela/envelope";
import type { JsonValue } from "@harmovela/failure";

export interface Value {
  /** Undefined when it names none. */
  readonly text: string | undefined;
  /** An update that names no value leaves it as it is. */
  readonly keepsValue: boolean;
}

const FIELDS: ReadonlyMap<string, string> = new Map([
  ["memory.fact.added", "value"],
  ["memory.fact.updated", "new_value"],
  ["context.updated", "new_value"],
  ["context.snapshot.ready", "data"],
]);

export function statedBy(envelope: Envelope): Value {
  const { type } = envelope;
  if (type === "belief.revised") {
    return { text: revisedText(payloadText(envelope, "corrected") ?? ""), keepsValue: false };
  }
  const field = FIELDS.get(type);
  const value = field === undefined ? undefined : payloadValue(envelope, field);
  const text = value === undefined ? undefined : canonicalJson(value);
  return { text, keepsValue: text === undefined && type === "memory.fact.updated" };
}

/** A revision carries text; where that is the canonical form of a JSON value it means the value (spec 11, C31). */
export function revisedText(text: string): string {
  try {
    const value = JSON.parse(text) as JsonValue;
    if (canonicalJson(value) === text) return text;
  } catch {
    // Not JSON: the text itself is the value.
  }
  return canonicalJson(text);
}
