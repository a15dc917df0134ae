/**
 * Second looks at a JSON text that is known to be valid and not too deep. They run only when a
 * quick look found something, so they are written for clearness.
 */
import { endOfString } from "./scan.ts";
import { hasLoneSurrogate } from "./text.ts";

/**
 * The tokens that matter: strings with their quotes, numbers, structural characters. By hand and not
 * by a regular expression, whose stack a string of half a megabyte could exhaust.
 */
function* tokensOf(text: string): Generator<string> {
  let at = 0;
  while (at < text.length) {
    const from = at;
    const first = text.charAt(at++);
    if (first === '"') at = endOfString(text, at);
    else if (first === "-" || (first >= "0" && first <= "9"))
      while (NUMBER_PART.includes(text.charAt(at)) && at < text.length) at++;
    else if (!STRUCTURE.includes(first)) continue;
    yield text.slice(from, at);
  }
}

const NUMBER_PART = "0123456789.eE+-";
const STRUCTURE = "{}[]:";

/** The first key that occurs twice in one object, as it reads unescaped. */
export function duplicateKeyOf(text: string): string | undefined {
  const open: Set<string>[] = [];
  let lastString = "";
  for (const token of tokensOf(text)) {
    if (token === "{" || token === "[") open.push(new Set());
    else if (token === "}" || token === "]") open.pop();
    else if (token.startsWith('"')) lastString = token;
    else if (token === ":") {
      const keys = open.at(-1);
      const key = String(JSON.parse(lastString));
      if (keys?.has(key)) return key;
      keys?.add(key);
    }
  }
  return undefined;
}

/**
 * The first whole number written without fraction and exponent that is beyond 2^53−1 either way:
 * what is read is not what was written. (1e21 says itself that it is approximate, and stays.)
 */
export function unsafeIntegerOf(text: string): string | undefined {
  for (const token of tokensOf(text))
    if (/^-?\d+$/.test(token) && !Number.isSafeInteger(Number(token))) return token;
  return undefined;
}

/** Whether any key or string of a parsed value has a surrogate without its partner. */
export function holdsLoneSurrogate(value: unknown): boolean {
  if (typeof value === "string") return hasLoneSurrogate(value);
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(value)) return value.some(holdsLoneSurrogate);
  return Object.entries(value).some(
    ([key, part]) => hasLoneSurrogate(key) || holdsLoneSurrogate(part),
  );
}
