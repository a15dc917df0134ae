/** Every boundary in time of a window that is changed, or of a claim that ends before it (spec 6.2). */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { JsonObject } from "@harmovela/failure";
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
  read,
  retract,
  type World,
  windowChanged,
  world,
} from "./support.ts";

const KEY = "memory:t";

/** A claim of a second ago that holds for another second. */
function claimed(fields: Fields = {}): World {
  const created = { created_at: iso(NOW - 1000), valid_until: iso(NOW + 1000) };
  return world().given(fact("t", 1, { ...created, ...fields }));
}

const changed = (end: number, fields: Fields = {}, previous?: number) =>
  windowChanged(
    KEY,
    {
      new_valid_until: iso(end),
      ...(previous === undefined ? {} : { previous_valid_until: iso(previous) }),
    },
    fields,
  );

describe("a window that is changed", () => {
  for (const [name, end] of [
    ["to now", NOW],
    ["to a millisecond ago", NOW - 1],
    ["to before the claim was made", NOW - 2000],
  ] as const) {
    test(`${name} ends at once`, () => {
      const scenario = claimed();
      scenario.when(changed(end)).accepted({ applied: true });
      assert.deepEqual(against(scenario, { key: KEY }), ["stale"]);
      const [expired, ...more] = derived(scenario);
      assert.deepEqual(more, []);
      assert.equal(expired?.valid_until, iso(end));
      assert.equal(payloadOf(expired).detected_at, iso(NOW));
      assert.deepEqual(derived(scenario, NOW + 1e9), []);
    });
  }

  test("to a millisecond from now ends then, and not at its old end", () => {
    const scenario = claimed().given(changed(NOW + 1));
    const course: Course = [
      [NOW, []],
      [NOW + 1, ["stale"]],
      [NOW + 1000, ["stale"]],
    ];
    assert.deepEqual(follow(scenario, course), [NOW + 1]);
  });

  test("a millisecond before its end is extended in time; at it, it has ended and is fresh again", () => {
    for (const [at, first] of [
      [NOW + 999, []],
      [NOW + 1000, [NOW + 1000]],
      [NOW + 1001, [NOW + 1001]],
    ] as const) {
      const scenario = claimed();
      const told = derived(scenario, at).map(() => at);
      assert.deepEqual(told, first);
      scenario.given(changed(NOW + 2000, { created_at: iso(at) }));
      assert.deepEqual(against(scenario, { key: KEY }), [], `fresh ${at - NOW} ms on`);
      const course: Course = [
        [NOW + 1999, []],
        [NOW + 2000, ["stale"]],
      ];
      assert.deepEqual(follow(scenario, course), [NOW + 2000]);
    }
  });

  for (const [name, sent, isApplied] of [
    ["a millisecond before the claim", NOW - 1001, false],
    ["at the time of the claim", NOW - 1000, true],
    ["a millisecond after it", NOW - 999, true],
  ] as const) {
    test(`decided ${name} it is ${isApplied ? "in force" : "late"}`, () => {
      const scenario = claimed();
      const decision = changed(NOW + 3000, { created_at: iso(sent) });
      const late: JsonObject = isApplied ? {} : { flags: ["late"] };
      const verdict = { applied: isApplied, ...late };
      scenario.when(decision).accepted(verdict);
      assert.equal(
        read(scenario, "get", { key: KEY }).valid_until,
        iso(NOW + (isApplied ? 3000 : 1000)),
      );
    });
  }

  for (const [name, sent, isApplied] of [
    ["a millisecond before the decision in force", NOW - 101, false],
    ["at the same time", NOW - 100, true],
    ["a millisecond after it", NOW - 99, true],
  ] as const) {
    test(`decided ${name} it is ${isApplied ? "in force" : "late"}`, () => {
      const scenario = claimed().given(changed(NOW + 2000, { created_at: iso(NOW - 100) }));
      scenario.given(changed(NOW + 3000, { created_at: iso(sent) }));
      assert.equal(
        read(scenario, "get", { key: KEY }).valid_until,
        iso(NOW + (isApplied ? 3000 : 2000)),
      );
    });
  }

  for (const [off, flags] of [
    [-1, ["previous_valid_until_mismatch"]],
    [0, undefined],
    [1, ["previous_valid_until_mismatch"]],
  ] as const) {
    test(`whose previous end is ${off} ms off is ${flags === undefined ? "right" : "flagged"}`, () => {
      const verdict = { applied: true, ...(flags === undefined ? {} : { flags: [...flags] }) };
      claimed()
        .when(changed(NOW + 5000, {}, NOW + 1000 + off))
        .accepted(verdict);
    });
  }

  test("may name the end that stale_after has set, or the one that was said", () => {
    const span = { stale_after: "PT1.5S" };
    for (const previous of [NOW + 500, NOW + 1000]) {
      claimed(span)
        .when(changed(NOW + 400, {}, previous))
        .accepted({ applied: true });
    }
    const flags = ["previous_valid_until_mismatch"];
    claimed(span)
      .when(changed(NOW + 400, {}, NOW + 501))
      .accepted({ applied: true, flags });
  });
});

describe("a claim that ends otherwise", () => {
  for (const [name, at, count] of [
    ["a millisecond before its window", NOW + 999, 0],
    ["at the end of its window, before that is told", NOW + 1000, 0],
  ] as const) {
    test(`by its retraction ${name} does not expire`, () => {
      const scenario = claimed().at(at).given(retract("t"));
      assert.equal(derived(scenario, NOW + 1e9).length, count);
    });
  }

  test("by its retraction after its end has expired before", () => {
    const scenario = claimed();
    assert.equal(derived(scenario, NOW + 1000).length, 1);
    scenario.given(retract("t"));
    assert.deepEqual(derived(scenario, NOW + 1e9), []);
    assert.equal(read(scenario, "stale", {}).total, 0);
  });
});
