const QUOTE = 0x22;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** What one pass over a JSON text shows before it is parsed. */
export interface Scan {
  /** Colons outside strings: in a valid text, the number of members with duplicates. */
  colons: number;
  /** Deepest nesting reached. */
  depth: number;
}

/**
 * One pass over a JSON text. Its figures are exact for valid texts and of no meaning for others.
 * It stops early beyond `depthMax`, so that a hostile text is not read further. Most of a message
 * is inside strings, and these are passed over with `indexOf`, which looks at many bytes at once.
 */
export function scanJson(text: string, depthMax: number): Scan {
  const length = text.length;
  let colons = 0;
  let depth = 0;
  let deepest = 0;
  let at = 0;
  while (at < length) {
    const unit = text.charCodeAt(at++);
    if (unit === QUOTE) {
      at = endOfString(text, at);
    } else if (unit === COLON) {
      colons++;
    } else if (unit === OPEN_BRACE || unit === OPEN_BRACKET) {
      if (++depth > deepest) {
        deepest = depth;
        if (deepest > depthMax) break;
      }
    } else if (unit === CLOSE_BRACE || unit === CLOSE_BRACKET) {
      depth--;
    }
  }
  return { colons, depth: deepest };
}

/** Position after the quote that ends the string which begins at `from`. */
export function endOfString(text: string, from: number): number {
  let at = from;
  for (;;) {
    const quote = text.indexOf('"', at);
    if (quote < 0) return text.length;
    at = quote + 1;
    if (text.charCodeAt(quote - 1) !== BACKSLASH || isUnescaped(text, quote)) return at;
  }
}

/** Whether an even number of backslashes stands before a quote. They cannot reach over the opening one. */
function isUnescaped(text: string, quote: number): boolean {
  let at = quote - 1;
  while (text.charCodeAt(at) === BACKSLASH) at--;
  return (quote - at) % 2 === 1;
}
