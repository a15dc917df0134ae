/** Lines of a byte stream: LF or CRLF, a last line without an end, none of them kept beyond a bound. */

/** A line without its end; `bytes` is undefined when it was longer than the bound. */
export interface InputLine {
  /** From 1, blank lines counted. */
  number: number;
  bytes: Uint8Array | undefined;
  /** What it held, kept or not. */
  length: number;
}

const LF = 0x0a;
const CR = 0x0d;

/** Every line that is not blank (spec 9.11), in order. */
export async function* readLines(
  chunks: AsyncIterable<Uint8Array>,
  lengthMax: number,
): AsyncGenerator<InputLine> {
  let kept: Uint8Array[] = [];
  let length = 0;
  let number = 0;
  const take = (part: Uint8Array): void => {
    length += part.length;
    if (length <= lengthMax) kept.push(part);
    else kept = [];
  };
  const finish = (): InputLine | undefined => {
    number += 1;
    const line = toLine(number, kept, length, lengthMax);
    kept = [];
    length = 0;
    return line;
  };
  for await (const chunk of chunks) {
    let from = 0;
    for (;;) {
      const end = chunk.indexOf(LF, from);
      if (end < 0) break;
      take(chunk.subarray(from, end));
      from = end + 1;
      const line = finish();
      if (line) yield line;
    }
    if (from < chunk.length) take(chunk.subarray(from));
  }
  const last = length > 0 ? finish() : undefined;
  if (last) yield last;
}

function toLine(
  number: number,
  kept: Uint8Array[],
  length: number,
  lengthMax: number,
): InputLine | undefined {
  if (length > lengthMax) return { number, bytes: undefined, length };
  const whole = kept.length === 1 && kept[0] !== undefined ? kept[0] : Buffer.concat(kept);
  const bytes = whole.at(-1) === CR ? whole.subarray(0, -1) : whole;
  return isBlank(bytes) ? undefined : { number, bytes, length };
}

function isBlank(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0x20 || byte === 0x09 || byte === CR);
}
