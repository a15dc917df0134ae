import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  boundedDetails,
  boundedText,
  DETAIL_DEPTH_MAX,
  DETAIL_KEYS_MAX,
  DETAIL_LIST_MAX,
  DETAIL_TEXT_MAX,
} from "../src/index.ts";

test("a long list is cut and counted", () => {
  const children = Array.from({ length: 1000 }, (_, i) => `task_${i}`);
  const details = boundedDetails({ active_children: children, state: "started" });
  assert.deepEqual(details, {
    active_children: children.slice(0, DETAIL_LIST_MAX),
    active_children_count: 1000,
    state: "started",
  });
});

test("half a surrogate pair is no character: who reads the refusal must be able to parse it", () => {
  const wild = { "\ud800k": ["\udc00", "a\ud800b"], text: "😀\ud83d" };
  const bounded = boundedDetails(wild);
  assert.deepEqual(bounded, { "\ufffdk": ["\ufffd", "a\ufffdb"], text: "😀\ufffd" });
  assert.equal(boundedText("\udfff"), "\ufffd");
});

test("a whole number that others would read as another one is told as text", () => {
  const first = 9_007_199_254_740_992;
  const told = boundedDetails({ at: [first, -first], most: first - 1, wide: 1e300, part: 0.1 });
  assert.deepEqual(told, {
    at: ["9007199254740992", "-9007199254740992"],
    most: first - 1,
    wide: "1e+300",
    part: 0.1,
  });
});

test("a list that fits carries no count", () => {
  assert.deepEqual(boundedDetails({ a: [1, null, true] }), { a: [1, null, true] });
});

test("a long text is cut, and not inside a character", () => {
  assert.equal(boundedText("abc", 3), "abc");
  assert.equal(boundedText("abcd", 3), "ab…");
  assert.equal(boundedText("a😀cd", 3), "a…");
  const { text } = boundedDetails({ text: "x".repeat(9999) });
  assert.equal(String(text).length, DETAIL_TEXT_MAX);
});

test("a key named __proto__ is a key like any other and changes nothing", () => {
  const details = boundedDetails(JSON.parse('{"__proto__":{"isAdmin":true},"constructor":1}'));
  assert.deepEqual(Object.keys(details), ["__proto__", "constructor"]);
  assert.equal(Reflect.get({}, "isAdmin"), undefined);
  assert.equal(Object.getPrototypeOf(details), Object.prototype);
});

/** Whether a value is JSON within the bounds, `depth` levels deep at most. */
function isSmallJson(value: unknown, depth: number): boolean {
  if (value === null || typeof value === "boolean" || Number.isFinite(value)) return true;
  if (typeof value === "string") return value.length <= DETAIL_TEXT_MAX;
  if (typeof value !== "object" || value === null || depth < 0) return false;
  if (Array.isArray(value))
    return value.length <= DETAIL_LIST_MAX && value.every((item) => isSmallJson(item, depth - 1));
  const entries = Object.entries(value);
  // A list that was cut adds its count beside the keys that are counted.
  return (
    entries.length <= 2 * DETAIL_KEYS_MAX &&
    entries.every(([, item]) => isSmallJson(item, depth - 1))
  );
}

test("whatever comes in, what goes out is JSON within the bounds", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.anything()), (given) => {
      assert.ok(isSmallJson(boundedDetails(given), DETAIL_DEPTH_MAX));
    }),
  );
  const wide = Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`k${i}`, [i]]));
  assert.ok(isSmallJson(boundedDetails({ wide, list: [wide] }), DETAIL_DEPTH_MAX));
});

test("nesting without end is cut", () => {
  const circle: Record<string, unknown> = {};
  circle.self = circle;
  assert.equal(JSON.stringify(boundedDetails(circle)), '{"self":{"self":{"self":{"self":{}}}}}');
});
