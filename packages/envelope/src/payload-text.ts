/** What a payload says under one of its own keys; agents choose the keys, so nothing is inherited. */
import type { JsonObject, JsonValue } from "@harmovela/failure";
import type { Envelope } from "./envelope.ts";

export function payloadObject({
  payload,
}: Partial<Pick<Envelope, "payload">>): JsonObject | undefined {
  return typeof payload === "object" && payload !== null && !Array.isArray(payload)
    ? payload
    : undefined;
}

export function payloadValue(envelope: Envelope, key: string): JsonValue | undefined {
  const payload = payloadObject(envelope);
  return payload !== undefined && Object.hasOwn(payload, key) ? payload[key] : undefined;
}

/** A text that says something; an empty one says nothing. */
export function payloadText(envelope: Envelope, key: string): string | undefined {
  const value = payloadValue(envelope, key);
  return typeof value === "string" && value !== "" ? value : undefined;
}
