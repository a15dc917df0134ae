import { HEADER } from "@harmovela/bus";

/** `Hv-Cause`: an intake position or the id of an obligation. */
export type EntryCause = { in: number } | { owed: string };

const DIGITS = /^(?:0|[1-9][0-9]{0,15})$/;

/** A canonical non-negative integer; undefined when the text is none. */
export function readInteger(text: string | undefined): number | undefined {
  if (text === undefined || !DIGITS.test(text)) return undefined;
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : undefined;
}

export function readCause(headers: Readonly<Record<string, string>>): EntryCause | undefined {
  const text = headers[HEADER.cause];
  if (text === undefined) return undefined;
  if (text.startsWith("owed:")) {
    const owed = readOwed(text.slice(5));
    return owed === undefined || owed === "" ? undefined : { owed };
  }
  const seq = text.startsWith("in:") ? readInteger(text.slice(3)) : undefined;
  return seq === undefined ? undefined : { in: seq };
}

/** Positions by domain, empty when nothing is observed; undefined when the header has no such form. */
export function readSeen(
  headers: Readonly<Record<string, string>>,
): ReadonlyArray<readonly [string, number]> | undefined {
  const text = headers[HEADER.seen];
  if (text === undefined || text === "") return [];
  const seen: [string, number][] = [];
  for (const pair of text.split(",")) {
    const colon = pair.indexOf(":");
    const seq = readInteger(pair.slice(colon + 1));
    if (colon < 1 || seq === undefined) return undefined;
    seen.push([pair.slice(0, colon), seq]);
  }
  return seen;
}

/** Further fields of the verdict; undefined when there are none, or nobody can read them. */
export function readVerdict(headers: Readonly<Record<string, string>>): unknown {
  const text = headers[HEADER.verdict];
  if (text === undefined || text === "") return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** White space of an id is escaped, or a header could not hold it at its ends. */
function readOwed(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
