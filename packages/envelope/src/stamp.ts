import { HarmovelaError } from "@harmovela/failure";
import type { Envelope } from "./envelope.ts";

const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/**
 * The envelope as it stands in the log: `delivery.cursor` and `delivery.sequence` set, the sender's
 * own values of these two dropped, everything else as it arrived. `bytes` must be a valid JSON text
 * of `envelope`; where that has no `delivery` the stamp is spliced in and nothing is written anew.
 */
export function stampDelivery(
  bytes: Uint8Array,
  envelope: Envelope,
  cursor: string,
  sequence: number,
): Uint8Array {
  if (Object.hasOwn(envelope, "delivery")) return stampEnvelope(envelope, cursor, sequence);
  const end = lastBrace(bytes);
  const isEmpty = lastInk(bytes, end - 1) === OPEN_BRACE && Object.keys(envelope).length === 0;
  const stamp = `${isEmpty ? "" : ","}"delivery":{"cursor":${JSON.stringify(cursor)},"sequence":${sequence}}}`;
  const stamped = Buffer.allocUnsafe(end + Buffer.byteLength(stamp));
  stamped.set(bytes.subarray(0, end));
  stamped.write(stamp, end, "utf8");
  return stamped;
}

/** The same for an envelope that has no bytes yet: written anew. */
export function stampEnvelope(envelope: Envelope, cursor: string, sequence: number): Uint8Array {
  const delivery = { ...envelope.delivery, cursor, sequence };
  return Buffer.from(JSON.stringify({ ...envelope, delivery }));
}

/** Position of the brace that closes the text; only white space may follow it. */
function lastBrace(bytes: Uint8Array): number {
  const at = inkBefore(bytes, bytes.length);
  if (bytes[at] !== CLOSE_BRACE)
    throw new HarmovelaError("invalid_argument", "the bytes are not those of an envelope");
  return at;
}

function lastInk(bytes: Uint8Array, from: number): number | undefined {
  return bytes[inkBefore(bytes, from + 1)];
}

/** Position of the last byte before `end` that is not JSON white space, -1 when there is none. */
function inkBefore(bytes: Uint8Array, end: number): number {
  let at = end - 1;
  while (at >= 0 && isSpace(bytes[at])) at--;
  return at;
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}
