/**
 * One subject token for one name (architecture, section 3): what may stand in a subject stands there as
 * it is, every other byte is `%XX`, absent is `-`, a name that is a lone `-` is `%2D`. There is exactly
 * one spelling of each name, so that two subjects are equal when the names are.
 */
import { HarmovelaError } from "@harmovela/failure";

const PLAIN = /^[A-Za-z0-9_:@=/+~-]+$/;
const CANONICAL = /^(?:[A-Za-z0-9_:@=/+~-]|%[0-9A-F]{2})+$/;

/** The token of a name; `-` when there is none (an empty name is none). Throws `invalid_argument` on half a surrogate pair. */
export function encodeToken(text: string | undefined): string {
  if (text === undefined || text === "") return "-";
  if (text === "-") return "%2D";
  if (PLAIN.test(text)) return text;
  return escaped(text);
}

/** The name of a token; undefined when it is absent (`-`) or not in the one canonical spelling. */
export function decodeToken(token: string): string | undefined {
  if (PLAIN.test(token)) return token === "-" ? undefined : token;
  if (!CANONICAL.test(token)) return undefined;
  let text: string;
  try {
    text = decodeURIComponent(token);
  } catch {
    // The only cause is a sequence of bytes that is not UTF-8, which no name encodes to.
    return undefined;
  }
  return encodeToken(text) === token ? text : undefined;
}

function escaped(text: string): string {
  let encoded: string;
  try {
    encoded = encodeURIComponent(text);
  } catch (cause) {
    // The only cause is half a surrogate pair, which has no UTF-8 form.
    throw new HarmovelaError("invalid_argument", "a name holds half a surrogate pair", { cause });
  }
  return encoded
    .replace(/%(?:3A|40|3D|2F|2B)/g, (plain) => decodeURIComponent(plain))
    .replace(/[!'()*.]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
}
