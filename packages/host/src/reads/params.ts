/** The body of a question. */
import { HarmovelaError, type JsonObject } from "@harmovela/failure";

const PARAMS_BYTES_MAX = 64 * 1024;

const decoder = new TextDecoder();

/** A JSON object; nothing at all is an empty one. Throws `invalid_query`. */
export function parseParams(data: Uint8Array, bytesMax = PARAMS_BYTES_MAX): JsonObject {
  if (data.length === 0) return {};
  if (data.length > bytesMax) throw new HarmovelaError("invalid_query", "too large");
  let params: unknown;
  try {
    params = JSON.parse(decoder.decode(data));
  } catch {
    throw new HarmovelaError("invalid_query", "the question is not JSON");
  }
  if (params === null || typeof params !== "object" || Array.isArray(params)) {
    throw new HarmovelaError("invalid_query", "the question must be a JSON object");
  }
  return params as JsonObject;
}
