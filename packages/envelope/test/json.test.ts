import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { canonicalJson, sameJson } from "../src/index.ts";

test("RFC 8785: keys in UTF-16 order, numbers as ECMAScript writes them, no white space", () => {
  const value = JSON.parse(
    '{"\\u20ac":1,"\\r":2,"\\ufb33":3,"1":4,"\\ud83d\\ude00":5,"\\u0080":6,"\\u00f6":7,"n":[333333333.33333329,1e30,4.50,2e-3,1e-27,-0,1e21],"s":"\\u20ac$\\u000F\\nA\'B\\"\\\\/","l":[null,true,false]}',
  );
  assert.equal(
    canonicalJson(value),
    '{"\\r":2,"1":4,"l":[null,true,false],"n":[333333333.3333333,1e+30,4.5,0.002,1e-27,0,1e+21],"s":"€$\\u000f\\nA\'B\\"\\\\/","\u0080":6,"ö":7,"€":1,"😀":5,"\ufb33":3}',
  );
});

test("the canonical text does not depend on the order of keys and reads back as the value", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
      const reversed = Object.fromEntries(Object.entries(value).reverse());
      const text = canonicalJson(value);
      assert.equal(text, canonicalJson(reversed));
      assert.equal(text, canonicalJson(JSON.parse(text)));
      assert.ok(sameJson(JSON.parse(text), value));
    }),
  );
});

test("hostile keys are keys", () => {
  const value = JSON.parse('{"__proto__":{"a":1},"constructor":2}');
  assert.equal(canonicalJson(value), '{"__proto__":{"a":1},"constructor":2}');
  assert.ok(sameJson(value, JSON.parse('{"constructor":2,"__proto__":{"a":1}}')));
  assert.equal(sameJson(JSON.parse('{"__proto__":{}}'), { a: 1 }), false);
  assert.equal(sameJson({ toString: 1 }, { b: 1 }), false);
  assert.equal(sameJson({ b: 1 }, JSON.parse('{"__proto__":1}')), false);
});

test("what is not JSON, or nests without end, is an error and not a crash", () => {
  const circle: Record<string, unknown> = {};
  circle.self = circle;
  for (const bad of [
    circle,
    { a: Number.NaN },
    [Number.POSITIVE_INFINITY],
    { f: () => 1 },
    [undefined],
  ])
    assert.throws(() => canonicalJson(bad), { code: "invalid_argument" });
  assert.equal(canonicalJson({ a: undefined, b: 1 }), '{"b":1}');
});

test("sameness is that of JSON", () => {
  const rows: [unknown, unknown, boolean][] = [
    [{ a: 1, b: [1, { c: null }] }, { b: [1, { c: null }], a: 1 }, true],
    [0, -0, true],
    [[1, 2], [2, 1], false],
    [[], {}, false],
    [null, {}, false],
    [1, "1", false],
    [{ a: 1 }, { a: 1, b: 2 }, false],
    [{ a: undefined }, {}, true],
    ["\u00e9", "e\u0301", false],
  ];
  for (const [left, right, same] of rows) {
    assert.equal(sameJson(left, right), same);
    assert.equal(sameJson(right, left), same);
  }
});

test("sameness agrees with equal canonical texts, on equal and on nearly equal values", () => {
  const pair = fc.tuple(fc.jsonValue({ maxDepth: 3 }), fc.jsonValue({ maxDepth: 3 }));
  const near = fc.tuple(
    fc.dictionary(fc.constantFrom("a", "b"), fc.constantFrom(0, 1, null, "", [], {})),
    fc.dictionary(fc.constantFrom("a", "b"), fc.constantFrom(0, 1, null, "", [], {})),
  );
  fc.assert(
    fc.property(fc.oneof(pair, near), ([left, right]) => {
      const wrapped = [{ v: left }, { v: right }] as const;
      assert.equal(sameJson(...wrapped), canonicalJson(wrapped[0]) === canonicalJson(wrapped[1]));
      assert.ok(sameJson(left, structuredClone(left)));
    }),
  );
});

test("very deep values are compared without a stack", () => {
  const deep = (): unknown => {
    let value: unknown = 1;
    for (let i = 0; i < 100_000; i++) value = [value];
    return value;
  };
  assert.ok(sameJson(deep(), deep()));
});
