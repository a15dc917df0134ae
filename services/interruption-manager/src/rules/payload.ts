/** What an envelope says beside its fields, and which task it speaks of. */
import type { Envelope } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";

export function payloadObject({ payload }: Envelope): JsonObject | undefined {
  return typeof payload === "object" && payload !== null && !Array.isArray(payload)
    ? payload
    : undefined;
}

export function valueIn(envelope: Envelope, key: string): unknown {
  const payload = payloadObject(envelope);
  return payload !== undefined && Object.hasOwn(payload, key) ? payload[key] : undefined;
}

/** A text that says something; an empty one says nothing. */
export function textIn(envelope: Envelope, key: string): string | undefined {
  const value = valueIn(envelope, key);
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** A duration in whole milliseconds; "invalid" for anything else that is present. */
export function millisecondsIn(envelope: Envelope, key: string): number | undefined | "invalid" {
  const value = valueIn(envelope, key);
  if (value === undefined) return undefined;
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0) return "invalid";
  return value;
}

/** Envelope first, then payload; an empty text names nothing. */
export function taskIdOf(envelope: Envelope): string | undefined {
  return envelope.task_id || textIn(envelope, "task_id");
}

export function parentIdOf(envelope: Envelope): string | undefined {
  return envelope.parent_task_id || textIn(envelope, "parent_task_id");
}
