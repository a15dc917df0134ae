import type { JsonObject, JsonValue } from "./error-payload.ts";

/** A refusal is read by people and kept in the log: what it lists has to stay small. */
export const DETAIL_LIST_MAX = 20;
export const DETAIL_TEXT_MAX = 512;
export const DETAIL_KEYS_MAX = 32;
export const DETAIL_DEPTH_MAX = 4;

/**
 * A copy with long lists cut (`<key>_count` says how many there were), long texts cut (ending in
 * "…"), at most 32 keys an object and four levels. Values that are not JSON are left out, whole numbers
 * beyond 2^53-1 are told as text.
 */
export function boundedDetails(details: Readonly<Record<string, unknown>>): JsonObject {
  return boundedObject(details, DETAIL_DEPTH_MAX);
}

/**
 * A text of at most `max` UTF-16 units that does not end in half a character. Half a surrogate pair, which
 * nobody who reads strictly would take, is told as U+FFFD.
 */
export function boundedText(text: string, max: number = DETAIL_TEXT_MAX): string {
  if (text.length <= max) return wellFormed(text);
  const cut = text.slice(0, max - 1);
  const last = cut.charCodeAt(cut.length - 1);
  return `${wellFormed(last >= 0xd800 && last <= 0xdbff ? cut.slice(0, -1) : cut)}…`;
}

function wellFormed(text: string): string {
  return text.replace(LONE_SURROGATE, "\ufffd");
}

const LONE_SURROGATE = /\p{Surrogate}/gu;

function boundedObject(source: object, depth: number): JsonObject {
  const target: JsonObject = {};
  let keys = 0;
  for (const [key, value] of Object.entries(source)) {
    if (keys++ >= DETAIL_KEYS_MAX) break;
    const bounded = boundedValue(value, depth - 1);
    if (bounded === undefined) continue;
    setOwn(target, boundedText(key), bounded);
    if (Array.isArray(value) && value.length > DETAIL_LIST_MAX)
      setOwn(target, `${boundedText(key)}_count`, value.length);
  }
  return target;
}

/** Also for a key named `__proto__`, which an assignment would take for the prototype. */
function setOwn(target: JsonObject, key: string, value: JsonValue): void {
  Object.defineProperty(target, key, {
    value,
    enumerable: true,
    writable: true,
    configurable: true,
  });
}

/** A whole number beyond 2^53-1 is told as text: as a number nobody would take it. */
function boundedNumber(value: number): JsonValue | undefined {
  if (!Number.isFinite(value)) return undefined;
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? String(value) : value;
}

function boundedValue(value: unknown, depth: number): JsonValue | undefined {
  if (value === null || typeof value === "boolean") return value;
  if (typeof value === "string") return boundedText(value);
  if (typeof value === "number") return boundedNumber(value);
  if (typeof value !== "object" || depth < 0) return undefined;
  if (!Array.isArray(value))
    return value instanceof Error ? undefined : boundedObject(value, depth);
  const list: JsonValue[] = [];
  for (const item of value.slice(0, DETAIL_LIST_MAX)) {
    const bounded = boundedValue(item, depth - 1);
    if (bounded !== undefined) list.push(bounded);
  }
  return list;
}
