import { ID_BYTES_MAX } from "./limits.ts";

/**
 * Whether a value can be an id or a name: 1 to 128 bytes of UTF-8, no control characters (Unicode
 * Cc), no lone surrogates. Ids are compared byte for byte; nothing is normalised.
 */
export function isId(value: unknown): value is string {
  if (typeof value !== "string") return false;
  const length = value.length;
  if (length === 0 || length > ID_BYTES_MAX) return false;
  return !NOT_PLAIN.test(value) || isWideId(value);
}

/** Anything but printable ASCII. */
const NOT_PLAIN = /[^\x20-\x7e]/;

function isWideId(value: string): boolean {
  let bytes = 0;
  for (const character of value) {
    const point = character.codePointAt(0) ?? 0;
    if (point < 0x20 || (point >= 0x7f && point <= 0x9f)) return false;
    if (point >= 0xd800 && point <= 0xdfff) return false;
    bytes += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x1_0000 ? 3 : 4;
  }
  return bytes <= ID_BYTES_MAX;
}

/** Whether a text has a surrogate without its partner: it has no UTF-8 form. */
export function hasLoneSurrogate(text: string): boolean {
  return LONE_SURROGATE.test(text);
}

const LONE_SURROGATE = /\p{Surrogate}/u;
