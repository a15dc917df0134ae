/** Every boundary in time, at it and one millisecond to each side (spec 6.2). */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  against,
  type Course,
  derived,
  type Fields,
  fact,
  follow,
  iso,
  NOW,
  payloadOf,
  world,
} from "./support.ts";

const KEY = "memory:t";
describe("from the beginning of a window to its end", () => {
  const rows: [string, Fields, Course, number[]][] = [
    [
      "valid_until",
      { valid_until: iso(NOW + 10) },
      [
        [NOW, []],
        [NOW + 9, []],
        [NOW + 10, ["stale"]],
        [NOW + 11, ["stale"]],
      ],
      [NOW + 10],
    ],
    [
      "stale_after",
      { stale_after: "PT0.01S" },
      [
        [NOW + 9, []],
        [NOW + 10, ["stale"]],
        [NOW + 11, ["stale"]],
      ],
      [NOW + 10],
    ],
    [
      "both, equal",
      { valid_until: iso(NOW + 10), stale_after: "PT0.01S" },
      [
        [NOW + 9, []],
        [NOW + 10, ["stale"]],
      ],
      [NOW + 10],
    ],
    [
      "both, valid_until a millisecond earlier",
      { valid_until: iso(NOW + 9), stale_after: "PT0.01S" },
      [
        [NOW + 8, []],
        [NOW + 9, ["stale"]],
      ],
      [NOW + 9],
    ],
    [
      "both, valid_until a millisecond later",
      { valid_until: iso(NOW + 11), stale_after: "PT0.01S" },
      [
        [NOW + 9, []],
        [NOW + 10, ["stale"]],
      ],
      [NOW + 10],
    ],
    [
      "valid_from in the future",
      { valid_from: iso(NOW + 10) },
      [
        [NOW, ["not_yet_valid"]],
        [NOW + 9, ["not_yet_valid"]],
        [NOW + 10, []],
        [NOW + 11, []],
      ],
      [],
    ],
    [
      "valid_from now",
      { valid_from: iso(NOW) },
      [
        [NOW, []],
        [NOW + 1, []],
      ],
      [],
    ],
    [
      "valid_from a millisecond from now",
      { valid_from: iso(NOW + 1) },
      [
        [NOW, ["not_yet_valid"]],
        [NOW + 1, []],
      ],
      [],
    ],
    [
      "valid_from in the past",
      { valid_from: iso(NOW - 1), valid_until: iso(NOW + 1) },
      [
        [NOW, []],
        [NOW + 1, ["stale"]],
      ],
      [NOW + 1],
    ],
    [
      "a created_at in the future, without valid_from",
      { created_at: iso(NOW + 10), stale_after: "PT0.01S" },
      [
        [NOW + 9, ["not_yet_valid"]],
        [NOW + 10, []],
        [NOW + 19, []],
        [NOW + 20, ["stale"]],
      ],
      [NOW + 20],
    ],
    [
      "valid_from, which does not move stale_after",
      { valid_from: iso(NOW + 10), stale_after: "PT0.02S" },
      [
        [NOW + 9, ["not_yet_valid"]],
        [NOW + 10, []],
        [NOW + 20, ["stale"]],
      ],
      [NOW + 20],
    ],
    [
      "a window of one millisecond",
      { valid_from: iso(NOW + 10), valid_until: iso(NOW + 11) },
      [
        [NOW + 9, ["not_yet_valid"]],
        [NOW + 10, []],
        [NOW + 11, ["stale"]],
      ],
      [NOW + 11],
    ],
    [
      "an empty window",
      { valid_from: iso(NOW + 10), valid_until: iso(NOW + 10) },
      [
        [NOW + 9, ["not_yet_valid"]],
        [NOW + 10, ["stale"]],
      ],
      [NOW + 10],
    ],
    [
      "a window that ends before it begins",
      { valid_from: iso(NOW + 10), valid_until: iso(NOW + 5) },
      [
        [NOW + 4, ["not_yet_valid"]],
        [NOW + 5, ["stale"]],
        [NOW + 10, ["stale"]],
      ],
      [NOW + 5],
    ],
  ];
  for (const [name, fields, course, told] of rows) {
    test(name, () => {
      assert.deepEqual(follow(world().given(fact("t", 1, fields)), course), told);
    });
  }
});

describe("on arrival", () => {
  const rows: [string, Fields, string[]][] = [
    ["a millisecond before its end", { valid_until: iso(NOW + 1) }, []],
    ["at its end", { valid_until: iso(NOW) }, ["stale"]],
    ["a millisecond after its end", { valid_until: iso(NOW - 1) }, ["stale"]],
    ["at the end of a span", { created_at: iso(NOW - 10), stale_after: "PT0.01S" }, ["stale"]],
    ["a millisecond before that", { created_at: iso(NOW - 9), stale_after: "PT0.01S" }, []],
    ["a millisecond after that", { created_at: iso(NOW - 11), stale_after: "PT0.01S" }, ["stale"]],
  ];
  for (const [name, fields, reasons] of rows) {
    test(name, () => {
      const scenario = world().given(fact("t", 1, fields));
      assert.deepEqual(against(scenario, { key: KEY }), reasons);
      const said = derived(scenario);
      assert.equal(said.length, reasons.length);
      for (const expired of said) assert.equal(payloadOf(expired).detected_at, iso(NOW));
      assert.equal(derived(scenario, NOW + 1).length, 1 - reasons.length);
      assert.deepEqual(derived(scenario, NOW + 1e9), []);
    });
  }
});
