import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { addDuration, formatInstant, INSTANT_MAX, isDuration, parseInstant } from "../src/index.ts";

const from = (start: string, text: string): string =>
  formatInstant(addDuration(parseInstant(start), text));

test("K1 one grammar: a minute is not a month, weeks count, nothing becomes 0 silently", () => {
  const rows: [string, string][] = [
    ["P1W", "2026-02-07T00:00:00.000Z"],
    ["P3W3D", "2026-02-24T00:00:00.000Z"],
    ["PT36H", "2026-02-01T12:00:00.000Z"],
    ["P1M", "2026-02-28T00:00:00.000Z"],
    ["PT1M", "2026-01-31T00:01:00.000Z"],
    ["P1Y", "2027-01-31T00:00:00.000Z"],
    ["PT0.5S", "2026-01-31T00:00:00.500Z"],
    ["PT0,5S", "2026-01-31T00:00:00.500Z"],
    ["PT0.5H", "2026-01-31T00:30:00.000Z"],
    ["PT1H0.5M", "2026-01-31T01:00:30.000Z"],
    ["P0D", "2026-01-31T00:00:00.000Z"],
    ["P1Y2M3W4DT5H6M7S", "2027-04-25T05:06:07.000Z"],
    ["P1000Y", "3026-01-31T00:00:00.000Z"],
  ];
  for (const [text, expected] of rows) {
    assert.ok(isDuration(text), text);
    assert.equal(from("2026-01-31T00:00:00Z", text), expected, text);
  }
  assert.equal(from("2024-02-29T00:00:00Z", "P1Y"), "2025-02-28T00:00:00.000Z");
});

test("what is not such a duration is refused", () => {
  const rows = [
    "",
    "P",
    "PT",
    "P1",
    "1D",
    "T1M",
    "-P1D",
    "+P1D",
    "P-1D",
    "P1DT",
    "P0.5D",
    "P1.5Y",
    "PT1.5H1M",
    "PT1.5M1S",
    "PT1S1M",
    "P1D1W",
    "P1D2D",
    "PT1.S",
    "PT.5S",
    "PT0.1234567890S",
    "p1d",
    "P 1D",
    "P1D ",
    "P1001Y",
    "P13000M",
    "PT9999999999H",
    "P999999999999D",
    "P9999999999999D",
    `P${"9".repeat(400)}Y`,
    "P1Y\n",
    "P١D",
  ];
  for (const row of rows) {
    assert.equal(isDuration(row), false, row);
    assert.throws(() => addDuration(0, row), { code: "invalid_envelope" }, row);
  }
  for (const value of [null, undefined, 5, {}, ["P1D"]]) assert.equal(isDuration(value), false);
});

test("a result beyond the last instant is the last instant", () => {
  assert.equal(addDuration(INSTANT_MAX - 5, "PT1S"), INSTANT_MAX);
  assert.equal(addDuration(INSTANT_MAX, "P1000Y"), INSTANT_MAX);
});

test("a longer duration is never earlier", () => {
  const unit = fc.constantFrom("D", "W", "M", "Y");
  fc.assert(
    fc.property(fc.nat({ max: 4e12 }), fc.nat({ max: 900 }), unit, (start, count, name) => {
      const shorter = addDuration(start, `P${count}${name}`);
      assert.ok(shorter >= start);
      assert.ok(addDuration(start, `P${count}${name}T1S`) === shorter + 1000);
    }),
  );
});
