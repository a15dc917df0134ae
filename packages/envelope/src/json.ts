import { HarmovelaError, type JsonValue } from "@harmovela/failure";

/** Far above what a message can nest, far below what the call stack can hold. */
const CANONICAL_DEPTH_MAX = 512;

/**
 * The one text of a JSON value (RFC 8785): keys in UTF-16 order, numbers as ECMAScript writes them,
 * no white space. Throws HarmovelaError `invalid_argument` for what is not JSON or nests deeper
 * than 512 levels. Keys whose value is undefined count as absent.
 */
export function canonicalJson(value: JsonValue | object): string {
  return canonical(value, 0);
}

function canonical(value: unknown, depth: number): string {
  if (value === null || typeof value === "boolean" || typeof value === "string")
    return JSON.stringify(value);
  if (typeof value === "number" && Number.isFinite(value)) return JSON.stringify(value);
  if (typeof value !== "object" || depth >= CANONICAL_DEPTH_MAX)
    throw new HarmovelaError("invalid_argument", "not a JSON value");
  if (Array.isArray(value)) return `[${value.map((item) => canonical(item, depth + 1)).join(",")}]`;
  const record = value as Record<string, unknown>;
  const members: string[] = [];
  for (const key of Object.keys(record).sort())
    if (record[key] !== undefined)
      members.push(`${JSON.stringify(key)}:${canonical(record[key], depth + 1)}`);
  return `{${members.join(",")}}`;
}

/**
 * Whether two JSON values are the same: order of keys does not matter, 0 and -0 are one number,
 * strings are compared unit by unit. Iterative and safe for keys such as `__proto__`.
 */
export function sameJson(left: unknown, right: unknown): boolean {
  const pending: [unknown, unknown][] = [[left, right]];
  for (let pair = pending.pop(); pair !== undefined; pair = pending.pop()) {
    const [a, b] = pair;
    if (a === b) continue;
    if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
    if (Array.isArray(a) || Array.isArray(b)) {
      if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
      for (let i = 0; i < a.length; i++) pending.push([a[i], b[i]]);
      continue;
    }
    const keys = presentKeys(a);
    if (keys.length !== presentKeys(b).length) return false;
    for (const key of keys) {
      if (!Object.hasOwn(b, key)) return false;
      pending.push([(a as Record<string, unknown>)[key], (b as Record<string, unknown>)[key]]);
    }
  }
  return true;
}

function presentKeys(value: object): string[] {
  return Object.keys(value).filter((key) => (value as Record<string, unknown>)[key] !== undefined);
}
