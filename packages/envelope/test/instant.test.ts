import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { formatInstant, INSTANT_MAX, INSTANT_MIN, isInstant, parseInstant } from "../src/index.ts";

test("K3 what is not a real RFC 3339 date-time is refused", () => {
  const rows = [
    "soon",
    "",
    "2026-02-30T00:00:00Z",
    "2023-02-29T00:00:00Z",
    "1900-02-29T00:00:00Z",
    "2026-04-31T00:00:00Z",
    "2026-00-01T00:00:00Z",
    "2026-13-01T00:00:00Z",
    "2026-06-30T23:59:60Z",
    "2026-06-30T24:00:00Z",
    "2026-06-30T10:60:00Z",
    "2026-06-30T10:00:00",
    "2026-06-30T10:00Z",
    "2026-06-30 10:00:00Z",
    "2026-06-30",
    "2026-6-30T10:00:00Z",
    "2026-06-30T10:00:00.Z",
    "2026-06-30T10:00:00,5Z",
    "2026-06-30T10:00:00+0200",
    "2026-06-30T10:00:00+24:00",
    "2026-06-30T10:00:00+02:60",
    "2026-06-30T10:00:00ZZ",
    "2026-06-30T10:00:00Z ",
    "+002026-06-30T10:00:00Z",
    "20260630T100000Z",
    `2026-06-30T10:00:00.${"0".repeat(60)}Z`,
    "２０２６-06-30T10:00:00Z",
  ];
  for (const row of rows) {
    assert.equal(isInstant(row), false, row);
    assert.throws(() => parseInstant(row), { code: "invalid_envelope" });
  }
  for (const value of [null, undefined, 0, new Date(), ["2026-06-30T10:00:00Z"]])
    assert.equal(isInstant(value), false);
});

test("instants are read to the millisecond, whatever their zone", () => {
  const rows: [string, number][] = [
    ["2026-06-30T10:00:00Z", Date.UTC(2026, 5, 30, 10)],
    ["2026-06-30t10:00:00z", Date.UTC(2026, 5, 30, 10)],
    ["2026-06-30T10:00:00.1Z", Date.UTC(2026, 5, 30, 10, 0, 0, 100)],
    ["2026-06-30T10:00:00.123999999Z", Date.UTC(2026, 5, 30, 10, 0, 0, 123)],
    ["2026-06-30T10:00:00.0009Z", Date.UTC(2026, 5, 30, 10)],
    ["2026-06-30T10:00:00+02:30", Date.UTC(2026, 5, 30, 7, 30)],
    ["2026-06-30T10:00:00-00:00", Date.UTC(2026, 5, 30, 10)],
    ["2000-02-29T00:00:00-23:59", Date.UTC(2000, 1, 29, 23, 59)],
    ["1969-12-31T23:59:59.999Z", -1],
  ];
  for (const [text, expected] of rows) assert.equal(parseInstant(text), expected, text);
});

test("the years are 0001 to 9999 in UTC", () => {
  assert.equal(parseInstant("0001-01-01T00:00:00Z"), INSTANT_MIN);
  assert.equal(parseInstant("9999-12-31T23:59:59.999Z"), INSTANT_MAX);
  assert.equal(isInstant("0000-12-31T23:59:59Z"), false);
  assert.equal(isInstant("0001-01-01T00:00:00+00:01"), false);
  assert.equal(isInstant("9999-12-31T23:59:59-00:01"), false);
});

test("every instant that can be written is read back, as the platform reads it", () => {
  fc.assert(
    fc.property(fc.integer({ min: INSTANT_MIN, max: INSTANT_MAX }), (instant) => {
      const text = formatInstant(instant);
      assert.equal(parseInstant(text), instant);
      assert.equal(Date.parse(text), instant);
    }),
    { numRuns: 1000 },
  );
});

test("instants that cannot be written move to the nearest that can, and NaN is an error", () => {
  assert.equal(formatInstant(Number.POSITIVE_INFINITY), "9999-12-31T23:59:59.999Z");
  assert.equal(formatInstant(-1e18), "0001-01-01T00:00:00.000Z");
  assert.throws(() => formatInstant(Number.NaN), { code: "invalid_argument" });
});
