import { hash, randomBytes } from "node:crypto";
import type { Instant } from "./judging.ts";

/** Crockford base32: no I, L, O, U. */
const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const DERIVED_PREFIX = "hv_";
const DERIVED = /^hv_[0-9A-HJKMNP-TV-Z]{26}$/;
/** A ULID has 48 bits of time. */
const ULID_TIME_MAX = 2 ** 48 - 1;

/**
 * The id of an event that follows from a cause (architecture, section 2): `hv_` and a ULID whose
 * time is `atMs` and whose other 80 bits come from tenant, cause and index. Same input, same id;
 * each part is hashed with its length, so no two inputs run together.
 */
export function deriveId(
  tenant: string,
  cause: string,
  index: string | number,
  atMs: Instant,
): string {
  const name = String(index);
  const parts = `${tenant.length}:${tenant}${cause.length}:${cause}${name.length}:${name}`;
  const digest = hash("sha256", parts, "buffer");
  return DERIVED_PREFIX + ulid(atMs, digest);
}

/** Whether an id has the derived form, which agents may not use for their own events. */
export function isDerivedId(id: string): boolean {
  return id.length === 29 && DERIVED.test(id);
}

/** A fresh id for an agent's event: `evt_` and a random ULID of now. Not for deciders. */
export function newEventId(): string {
  return newId("evt");
}

/** A fresh id `<prefix>_<ULID>` (spec 1.3). Not for deciders. */
export function newId(prefix: string): string {
  return `${prefix}_${ulid(Date.now(), randomBytes(10))}`;
}

/** The time last written and its text: many ids are made within one millisecond. */
let writtenTime = -1;
let timeText = "";

/** 10 characters of time and 16 from the first 80 bits of `random`. */
function ulid(atMs: Instant, random: Uint8Array): string {
  const time = Math.min(ULID_TIME_MAX, Math.max(0, Math.floor(atMs)));
  if (time !== writtenTime) {
    timeText = textOfTime(time);
    writtenTime = time;
  }
  let text = timeText;
  let bits = 0;
  let held = 0;
  for (let i = 0; i < 10; i++) {
    bits = ((bits << 8) | (random[i] ?? 0)) & 0xfff;
    held += 8;
    while (held >= 5) {
      held -= 5;
      text += ALPHABET.charAt((bits >> held) & 31);
    }
  }
  return text;
}

function textOfTime(time: number): string {
  let text = "";
  for (let i = 0; i < 10; i++) {
    text = ALPHABET.charAt(time % 32) + text;
    time = Math.floor(time / 32);
  }
  return text;
}
