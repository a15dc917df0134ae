import {
  checkEnvelope,
  checkPayload,
  checkType,
  checkVersion,
  type Envelope,
  parseJson,
} from "@harmovela/envelope";
import type { FindingSink } from "./finding.ts";
import { isObject } from "./record.ts";

/** Largest logged event, bytes: the largest sent one and room for what the judge adds to it. */
const MAX_BYTES = 600_000;

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });

/**
 * The envelope of an event entry, held to the wire contract. Undefined when it cannot be read; a
 * payload that breaks the rules of its type is a finding, and the envelope still counts.
 */
export function readEnvelope(data: Uint8Array | string, sink: FindingSink): Envelope | undefined {
  const json = parseJson(typeof data === "string" ? encoder.encode(data) : data, {
    maxBytes: MAX_BYTES,
  });
  if (!json.ok) {
    sink.add("envelope-invalid", json.error.message);
    return undefined;
  }
  return checkContract(json.value, sink);
}

/** The checks of the wire contract on a parsed value. */
export function checkContract(value: unknown, sink: FindingSink): Envelope | undefined {
  const envelope = checkEnvelope(value);
  if (!envelope.ok) {
    sink.add("envelope-invalid", envelope.error.message);
    return undefined;
  }
  for (const check of [checkVersion, checkType]) {
    const result = check(envelope.value);
    if (result.ok) continue;
    sink.add("envelope-invalid", result.error.message);
    return envelope.value;
  }
  const payload = checkPayload(envelope.value);
  if (!payload.ok) sink.add("payload-invalid", payload.error.message);
  return envelope.value;
}

/** The body of a control entry; undefined when it is no JSON object. */
export function readControlBody(data: Uint8Array | string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(typeof data === "string" ? data : decoder.decode(data));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
