import { HarmovelaError } from "@harmovela/failure";
import type { Instant } from "./judging.ts";
import { INSTANT_MAX, INSTANT_MIN, INSTANT_TEXT_MAX } from "./limits.ts";

/** What the grammar can say; that the day exists in its month is checked apart. */
export const INSTANT_PATTERN =
  /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])[Tt]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$/;

const DAYS_BY_MONTH = [0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/**
 * Whether a value is an RFC 3339 date-time of the years 0001 to 9999 in UTC, at most 64 characters.
 * 30 February, second 60 and a missing zone are refused: a leap second cannot be told from the
 * second after it, and a zone-less stamp means another instant on every machine.
 */
export function isInstant(value: unknown): value is string {
  return typeof value === "string" && !Number.isNaN(readInstant(value));
}

/**
 * Milliseconds since the epoch of an RFC 3339 date-time; digits beyond milliseconds are cut.
 * Throws HarmovelaError `invalid_envelope` for any other text.
 */
export function parseInstant(text: string): Instant {
  const instant = readInstant(text);
  if (Number.isNaN(instant))
    throw new HarmovelaError("invalid_envelope", "not an RFC 3339 date-time");
  return instant;
}

/**
 * RFC 3339 in UTC with milliseconds. Instants outside the years 0001 to 9999 are moved to the
 * nearest one that can be written; NaN throws HarmovelaError `invalid_argument`.
 */
export function formatInstant(instant: Instant): string {
  if (Number.isNaN(instant)) throw new HarmovelaError("invalid_argument", "not an instant");
  return new Date(Math.min(INSTANT_MAX, Math.max(INSTANT_MIN, instant))).toISOString();
}

/** Stands for "no digits": so far below zero that every sum with it fails the checks of range. */
const NO_DIGITS = -1_000_000;

/** Two digits at a position. Small integers throughout, because this runs for every message. */
function two(text: string, at: number): number {
  const tens = text.charCodeAt(at) - 48;
  const ones = text.charCodeAt(at + 1) - 48;
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : NO_DIGITS;
}

/** The instant, or NaN. */
function readInstant(text: string): number {
  if (text.length < 20 || text.length > INSTANT_TEXT_MAX) return Number.NaN;
  const year = two(text, 0) * 100 + two(text, 2);
  const month = two(text, 5);
  const day = two(text, 8);
  const hour = two(text, 11);
  const minute = two(text, 14);
  const second = two(text, 17);
  const isSeparated =
    text.charCodeAt(4) === 0x2d &&
    text.charCodeAt(7) === 0x2d &&
    (text.charCodeAt(10) | 0x20) === 0x74 &&
    text.charCodeAt(13) === 0x3a &&
    text.charCodeAt(16) === 0x3a;
  const isInRange =
    year >= 0 &&
    month >= 1 &&
    month <= 12 &&
    day >= 1 &&
    hour >= 0 &&
    hour <= 23 &&
    minute >= 0 &&
    minute <= 59 &&
    second >= 0 &&
    second <= 59;
  if (!isSeparated || !isInRange) return Number.NaN;
  if (day > (DAYS_BY_MONTH[month] ?? 0) || (month === 2 && day === 29 && !isLeap(year)))
    return Number.NaN;
  let at = 19;
  let millis = 0;
  if (text.charCodeAt(at) === 0x2e) {
    let scale = 100;
    const from = ++at;
    for (; at < text.length; at++) {
      const digit = text.charCodeAt(at) - 48;
      if (digit < 0 || digit > 9) break;
      millis += digit * scale;
      // 100, 10, 1, and then 0: digits beyond milliseconds are cut.
      scale = (scale / 10) | 0;
    }
    if (at === from) return Number.NaN;
  }
  const offset = offsetMinutes(text, at);
  const instant =
    epochDays(year, month, day) * 86_400_000 +
    hour * 3_600_000 +
    (minute - offset) * 60_000 +
    second * 1000 +
    millis;
  return instant >= INSTANT_MIN && instant <= INSTANT_MAX ? instant : Number.NaN;
}

/** The zone at the end of the text as minutes east of UTC, or NaN. */
function offsetMinutes(text: string, at: number): number {
  const sign = text.charCodeAt(at);
  if ((sign | 0x20) === 0x7a) return at + 1 === text.length ? 0 : Number.NaN;
  if (sign !== 0x2b && sign !== 0x2d) return Number.NaN;
  if (at + 6 !== text.length || text.charCodeAt(at + 3) !== 0x3a) return Number.NaN;
  const hours = two(text, at + 1);
  const minutes = two(text, at + 4);
  if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59) return Number.NaN;
  return (sign === 0x2d ? -1 : 1) * (hours * 60 + minutes);
}

function isLeap(year: number): boolean {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
}

/** Days from 1970-01-01 in the proleptic Gregorian calendar, counted in years that begin in March. */
function epochDays(year: number, month: number, day: number): number {
  const shifted = month <= 2 ? year - 1 : year;
  const era = Math.floor(shifted / 400);
  const yearOfEra = shifted - era * 400;
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1;
  const dayOfEra =
    yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear;
  return era * 146_097 + dayOfEra - 719_468;
}
