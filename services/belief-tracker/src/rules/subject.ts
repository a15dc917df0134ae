/** What an envelope speaks about, and what it says of it (spec 6.1, tracker key). */
import { canonicalJson, type Envelope } from "@harmovela/envelope";
import type { JsonObject, JsonValue } from "@harmovela/failure";

/** What an event asserts. `text`: the value as canonical JSON; undefined when it names none. */
export interface Assertion {
  /** Undefined for `belief.revised`: its subject is that of what it revises. */
  key: string | undefined;
  text: string | undefined;
  /** An update that names no value leaves it as it is. */
  keepsValue?: boolean;
}

export interface Invalidation {
  key: string;
  /** What rests on it must be evaluated again. */
  isRetraction: boolean;
}

export function payloadObject({ payload }: Envelope): JsonObject | undefined {
  return typeof payload === "object" && payload !== null && !Array.isArray(payload)
    ? payload
    : undefined;
}

export function textIn(envelope: Envelope, key: string): string | undefined {
  const value = valueIn(envelope, key);
  return typeof value === "string" && value !== "" ? value : undefined;
}

function valueIn(envelope: Envelope, key: string): JsonValue | undefined {
  const payload = payloadObject(envelope);
  return payload !== undefined && Object.hasOwn(payload, key) ? payload[key] : undefined;
}

function jsonIn(envelope: Envelope, key: string): string | undefined {
  const value = valueIn(envelope, key);
  return value === undefined ? undefined : canonicalJson(value);
}

/** Types that assert what has no name of its own: the event, or the resource that it names. */
const UNNAMED: ReadonlySet<string> = new Set([
  "memory.episode.stored",
  "memory.preference.updated",
  "memory.constraint.updated",
  "memory.summary.ready",
  "memory.retrieval.ready",
  "context.retrieval.completed",
  "state.snapshot.ready",
  "state.delta.applied",
]);

/** Undefined for what asserts nothing: requests, failures, invalidations, news of the tracker. */
export function assertionOf(envelope: Envelope): Assertion | undefined {
  const { type, id } = envelope;
  switch (type) {
    case "memory.fact.added":
      return { key: factKey(envelope), text: jsonIn(envelope, "value") };
    case "memory.fact.updated":
      return { key: factKey(envelope), text: jsonIn(envelope, "new_value"), keepsValue: true };
    case "context.updated":
      return isRemoval(envelope)
        ? undefined
        : { key: contextKey(envelope), text: jsonIn(envelope, "new_value") };
    case "context.snapshot.ready": {
      const name = textIn(envelope, "context_key") ?? textIn(envelope, "snapshot_id");
      return { key: `context:${name ?? id}`, text: jsonIn(envelope, "data") };
    }
    case "belief.revised":
      return { key: undefined, text: revisedText(textIn(envelope, "corrected") ?? "") };
    default:
      if (!UNNAMED.has(type)) return undefined;
      return { key: textIn(envelope, "resource") ?? `belief:${id}`, text: undefined };
  }
}

/**
 * What an event takes back (spec 6.1): a fact with its dependents only when it says `retracted`, a
 * context or a state always.
 */
export function invalidationOf(envelope: Envelope): Invalidation | undefined {
  const { type, belief_status: status } = envelope;
  switch (type) {
    case "memory.fact.invalidated":
      return { key: factKey(envelope), isRetraction: status === "retracted" };
    case "context.invalidated":
      return { key: contextKey(envelope), isRetraction: true };
    case "context.updated":
      return isRemoval(envelope) ? { key: contextKey(envelope), isRetraction: false } : undefined;
    case "state.invalidated": {
      const key = textIn(envelope, "resource");
      return key === undefined ? undefined : { key, isRetraction: true };
    }
    default:
      return undefined;
  }
}

function isRemoval(envelope: Envelope): boolean {
  return textIn(envelope, "change_type") === "removed";
}

function factKey(envelope: Envelope): string {
  return `memory:${textIn(envelope, "fact_id") ?? ""}`;
}

function contextKey(envelope: Envelope): string {
  return `context:${textIn(envelope, "context_key") ?? ""}`;
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
