import { checkEnvelope } from "./check.ts";
import type { Envelope } from "./envelope.ts";
import { type ParseOptions, parseJson } from "./parse-json.ts";
import type { Result } from "./result.ts";

/** Bytes to an envelope: the checks before the subject is compared (architecture, section 4). */
export function parseEnvelope(bytes: Uint8Array, options?: ParseOptions): Result<Envelope> {
  const json = parseJson(bytes, options);
  return json.ok ? checkEnvelope(json.value) : json;
}
