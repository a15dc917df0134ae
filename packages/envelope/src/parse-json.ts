import { isAscii, isUtf8 } from "node:buffer";
import type { JsonObject } from "@harmovela/failure";
import { duplicateKeyOf, holdsLoneSurrogate, unsafeIntegerOf } from "./json-text.ts";
import { DEPTH_MAX, MESSAGE_BYTES_MAX } from "./limits.ts";
import { type Result, refuse } from "./result.ts";
import { scanJson } from "./scan.ts";
import { tally } from "./tally.ts";

export interface ParseOptions {
  /** Largest message, bytes. Default 512 KiB. */
  maxBytes?: number;
}

/**
 * Bytes as a JSON object that means the same to every reader and can be written again (architecture,
 * section 4): valid UTF-8, at most 64 levels, no key twice, no lone surrogate, no number that is
 * infinite or a whole number beyond 2^53−1. Refusals are `invalid_envelope`.
 */
export function parseJson(bytes: Uint8Array, options: ParseOptions = {}): Result<JsonObject> {
  const maxBytes = options.maxBytes ?? MESSAGE_BYTES_MAX;
  if (bytes.length > maxBytes)
    return unreadable(`the message is larger than ${maxBytes} bytes`, { bytes: bytes.length });
  const text = textOf(bytes);
  if (text === undefined) return unreadable("the message is not UTF-8");
  const scan = scanJson(text, DEPTH_MAX);
  if (scan.depth > DEPTH_MAX) return unreadable(`nested deeper than ${DEPTH_MAX} levels`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // The parser's message quotes the text, which must not travel in a refusal.
    return unreadable("the message is not JSON");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    return unreadable("the message is not a JSON object");
  const seen = tally(value);
  if (seen.keys !== scan.colons) return duplicateKey(text);
  if (seen.hasInfinity) return unreadable("a number is too large to be written again");
  if (seen.hasUnsafeInteger && unsafeIntegerOf(text) !== undefined)
    return unreadable(
      "a whole number is beyond 2^53-1 and would be read as another; send it as a string",
    );
  if (mayHoldSurrogate(text) && holdsLoneSurrogate(value))
    return unreadable("a string holds half of a surrogate pair");
  return { ok: true, value: value as JsonObject };
}

/** The text, or undefined when the bytes are not UTF-8. */
function textOf(bytes: Uint8Array): string | undefined {
  const buffer =
    bytes instanceof Buffer ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (isAscii(buffer)) return buffer.toString("latin1");
  return isUtf8(buffer) ? buffer.toString("utf8") : undefined;
}

/** Valid UTF-8 holds no surrogates, so only an escape can make one. */
function mayHoldSurrogate(text: string): boolean {
  return text.includes("\\") && (text.includes("\\ud") || text.includes("\\uD"));
}

function duplicateKey(text: string): Result<JsonObject> {
  const path = duplicateKeyOf(text) ?? "";
  return refuse({
    code: "invalid_envelope",
    message: "a key stands twice in one object",
    stage: "parse",
    path,
  });
}

function unreadable(message: string, details?: Record<string, unknown>): Result<JsonObject> {
  return refuse({ code: "invalid_envelope", message, stage: "parse", details });
}
