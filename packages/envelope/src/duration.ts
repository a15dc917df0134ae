import { HarmovelaError } from "@harmovela/failure";
import { Temporal } from "temporal-polyfill";
import type { Instant } from "./judging.ts";
import { DURATION_YEARS_MAX, INSTANT_MAX } from "./limits.ts";

/**
 * ISO 8601 durations as this system reads them: `P`, then years, months, weeks, days, then `T` with
 * hours, minutes, seconds, in this order, each at most once, at least one; weeks may stand beside
 * other units; only the last unit of time (H, M or S) may have a fraction, with a point or a comma,
 * of up to nine digits. `P1M` is a month and `PT1M` a minute. No sign, upper case only.
 */
export const DURATION_PATTERN =
  /^P(?=[0-9T])(\d{1,12}Y)?(\d{1,12}M)?(\d{1,12}W)?(\d{1,12}D)?(T(?=[0-9])(\d{1,12}([.,]\d{1,9})?H(?![0-9])|\d{1,12}H)?(\d{1,12}[.,]\d{1,9}M(?![0-9])|\d{1,12}M)?(\d{1,12}([.,]\d{1,9})?S)?)?$/;

const YEAR_DAYS_MAX = DURATION_YEARS_MAX * 366;

/** Whether a value is such a duration and not longer than 1,000 years. Zero is one: stale at once. */
export function isDuration(value: unknown): value is string {
  return typeof value === "string" && readDuration(value) !== undefined;
}

/**
 * The instant that lies an ISO 8601 duration later. Years, months and weeks follow the calendar in
 * UTC, from the given instant: a month after 31 January is the last of February. A result beyond
 * the year 9999 is its last millisecond. Throws HarmovelaError `invalid_envelope` for another text.
 */
export function addDuration(instant: Instant, text: string): Instant {
  const duration = readDuration(text);
  if (duration === undefined)
    throw new HarmovelaError("invalid_envelope", "not an ISO 8601 duration");
  const start = Temporal.Instant.fromEpochMilliseconds(instant).toZonedDateTimeISO("UTC");
  return Math.min(INSTANT_MAX, start.add(duration).epochMilliseconds);
}

function readDuration(text: string): Temporal.Duration | undefined {
  // The pattern bounds the number of digits, so a long text never reaches the parser.
  if (text.length > 128 || !DURATION_PATTERN.test(text)) return undefined;
  let duration: Temporal.Duration;
  try {
    duration = Temporal.Duration.from(text);
  } catch {
    // Out of the range that the calendar can hold.
    return undefined;
  }
  const days =
    duration.years * 366 +
    duration.months * 31 +
    duration.weeks * 7 +
    duration.days +
    duration.hours / 24 +
    duration.minutes / 1440 +
    duration.seconds / 86_400;
  return days <= YEAR_DAYS_MAX ? duration : undefined;
}
