/** Which task an envelope speaks of, and which parent it names (spec 5.4, 5.5). */
import type { Envelope } from "@harmovela/envelope";
import type { JsonObject, JsonValue } from "@harmovela/failure";

export function payloadObject(envelope: Envelope): JsonObject | undefined {
  const { payload } = envelope;
  return isObject(payload) ? payload : undefined;
}

function isObject(value: JsonValue): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function ownText(payload: JsonObject | undefined, key: string): string | undefined {
  if (payload === undefined || !Object.hasOwn(payload, key)) return undefined;
  const value = payload[key];
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Envelope first, then payload; an empty text names nothing. */
export function taskIdOf(envelope: Envelope): string | undefined {
  return envelope.task_id || ownText(payloadObject(envelope), "task_id");
}

export function parentIdOf(envelope: Envelope): string | undefined {
  return envelope.parent_task_id || ownText(payloadObject(envelope), "parent_task_id");
}

/** Envelope and payload name different parents. */
export function hasTwoParents(envelope: Envelope): boolean {
  const inPayload = ownText(payloadObject(envelope), "parent_task_id");
  return Boolean(envelope.parent_task_id && inPayload && envelope.parent_task_id !== inPayload);
}

export function textOf(envelope: Envelope, key: string): string | undefined {
  return ownText(payloadObject(envelope), key);
}

/** A duration in whole milliseconds; "invalid" for anything else that is present. */
export function millisecondsOf(envelope: Envelope, key: string): number | undefined | "invalid" {
  const payload = payloadObject(envelope);
  if (payload === undefined || !Object.hasOwn(payload, key)) return undefined;
  const value = payload[key];
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0) return "invalid";
  return value;
}
