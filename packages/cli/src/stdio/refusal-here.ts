/** Rejections of lines that never reach an intake (spec 9.11): written to stderr, logged nowhere. */
import { MESSAGE_BYTES_MAX as INTAKE_BYTES_MAX } from "@harmovela/bus";
import { type Envelope, MESSAGE_BYTES_MAX, newEventId, parseJson } from "@harmovela/envelope";
import { type ErrorPayload, HarmovelaError, reject } from "@harmovela/failure";
import { STAND_IN } from "./address.ts";

/** A line may be as long as an intake takes, less what its headers need. */
export const LINE_BYTES_MAX = INTAKE_BYTES_MAX - 8 * 1024;

/** The rejection of a line; `sent` is its value, where it has one. */
export function refusalHere(error: ErrorPayload, sent?: unknown): Envelope {
  const id = idIn(sent);
  const { code, message, retryable, details } = error;
  return {
    spec_version: "0.2",
    id: newEventId(),
    type: "event.rejected",
    source: STAND_IN,
    created_at: new Date().toISOString(),
    ...(id === undefined ? {} : { causation_id: id }),
    payload: {
      error: { code, message, retryable, ...(details === undefined ? {} : { details }) },
      ...(id === undefined ? {} : { acknowledged_event_id: id }),
    },
  };
}

/** What the judge would say about bytes that are no JSON. */
export function refusalOfBytes(bytes: Uint8Array): Envelope {
  const parsed = parseJson(bytes);
  if (!parsed.ok) return refusalHere(parsed.error);
  throw new HarmovelaError("invariant_broken", "bytes are JSON for one reader and not for another");
}

/** What the judge would say about a line of so many bytes, too long to be kept. */
export function refusalOfLength(bytes: number): Envelope {
  const message = `the message is larger than ${MESSAGE_BYTES_MAX} bytes`;
  return refusalHere(reject("invalid_envelope", message, { bytes }, { stage: "parse" }));
}

function idIn(value: unknown): string | undefined {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, "id")) return undefined;
  const { id } = value as { id?: unknown };
  return typeof id === "string" && id !== "" && Buffer.byteLength(id) <= 128 ? id : undefined;
}
