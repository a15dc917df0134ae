/** Changes of bytes that know nothing of what the bytes mean. */
import type { SimRandom } from "@harmovela/testkit";

/** Pieces that mean something to a reader of UTF-8, of JSON, of subjects or of header lines. */
const PIECES: readonly string[] = [
  ...["\xef\xbb\xbf", "\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x80\xa8"],
  ...["\0", "\r\n", "\n", "\r", "\t", " ", "\x7f", "\x1b", '"', "\\", "\\u0000", "\\ud800"],
  ...["\\udc00\\ud800", "{", "}", "[", "]", ":", ",", ".", "*", ">", "-", "%", "%2D", "%FF", "%00"],
  ...["null", "__proto__", "constructor", "1e400", "-0", "9007199254740993", "$JS.API.", "_INBOX."],
  ...["hv.acme.log.tasks.", "Hv-Epoch: 1\r\n", "\r\n\r\n", "NATS/1.0 503\r\n", "=", "+", "/", "~"],
];
/** One insertion; longer ones are made by repeating. */
const REPEATS: readonly number[] = [2, 16, 129, 1_025, 4_096, 70_000];

/** A copy with one change, at most `lengthMax` long. */
export function mutateBytes(
  bytes: string,
  other: string,
  random: SimRandom,
  lengthMax: number,
): string {
  return changed(bytes, other, random).slice(0, lengthMax);
}

function changed(bytes: string, other: string, random: SimRandom): string {
  const at = random.whole(0, bytes.length);
  const to = Math.min(bytes.length, at + random.whole(1, random.pick([1, 4, 64])));
  const piece = random.pick(PIECES) ?? "";
  switch (random.whole(0, 8)) {
    case 0: {
      const unit = (bytes.charCodeAt(at) || 0) ^ (1 << random.whole(0, 7));
      return bytes.slice(0, at) + String.fromCharCode(unit & 0xff) + bytes.slice(at + 1);
    }
    case 1:
      return bytes.slice(0, at) + String.fromCharCode(random.whole(0, 255)) + bytes.slice(at);
    case 2:
      return bytes.slice(0, at) + bytes.slice(to);
    case 3:
      return bytes.slice(0, at) + piece + bytes.slice(at);
    case 4:
      return bytes.slice(0, at) + piece + bytes.slice(to);
    case 5:
      return bytes.slice(0, at) + bytes.slice(at, to).repeat(random.whole(2, 8)) + bytes.slice(to);
    case 6:
      return bytes.slice(0, at);
    case 7:
      return bytes.slice(0, at) + other.slice(random.whole(0, other.length));
    default: {
      const long = piece.repeat(random.chance(0.2) ? (random.pick(REPEATS) ?? 2) : 2);
      return bytes.slice(0, at) + long + bytes.slice(at);
    }
  }
}
