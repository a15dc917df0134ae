/** What a walk over a parsed value shows. Recursion is safe: the depth was bounded before parsing. */
export interface Tally {
  keys: number;
  /** A number that became infinite: it has no JSON form. */
  hasInfinity: boolean;
  /** A whole number whose neighbours cannot be told apart from it. */
  hasUnsafeInteger: boolean;
}

export function tally(value: object): Tally {
  const result: Tally = { keys: 0, hasInfinity: false, hasUnsafeInteger: false };
  walk(value, result);
  return result;
}

function walk(value: object, result: Tally): void {
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) weigh(value[i], result);
    return;
  }
  // for…in sees exactly the own keys here: a parsed object inherits nothing enumerable.
  for (const key in value) {
    result.keys++;
    weigh((value as Record<string, unknown>)[key], result);
  }
}

function weigh(part: unknown, result: Tally): void {
  if (typeof part === "object") {
    if (part !== null) walk(part, result);
  } else if (typeof part === "number" && !(part <= 9007199254740991 && part >= -9007199254740991)) {
    if (Number.isFinite(part)) result.hasUnsafeInteger ||= Number.isInteger(part);
    else result.hasInfinity = true;
  }
}
