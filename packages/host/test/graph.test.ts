import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { decodeGraph, encodeGraph } from "../src/snapshot/graph.ts";

class Point {
  x = 0;
  next: Point | undefined;
  move(by: number): number {
    this.x += by;
    return this.x;
  }
}

const classes = { Point };
const copyOf = <T extends object>(root: T): T =>
  decodeGraph([...encodeGraph(root, classes)], classes) as T;

const anything = fc.anything({
  withMap: true,
  withSet: true,
  withNullPrototype: true,
  key: fc.oneof(fc.string(), fc.constant("__proto__"), fc.constant("constructor")),
});

describe("a graph as lines", () => {
  test("whatever there is comes back as it was, in its order", () => {
    fc.assert(
      fc.property(anything, (value) => {
        const root = { value };
        const copy = copyOf(root);
        assert.deepStrictEqual(copy, root);
        assert.deepEqual([...encodeGraph(copy, classes)], [...encodeGraph(root, classes)]);
      }),
      { numRuns: 1_000 },
    );
  });

  test("what is shared stays one, what is circular stays so, and instances are of their class", () => {
    const point = new Point();
    point.next = point;
    const map = new Map<object, unknown>([[point, "by reference"]]);
    const copy = copyOf({ a: point, b: [point], map, self: new Set<unknown>([map]) });
    assert.ok(copy.a instanceof Point);
    assert.equal(copy.a.next, copy.a);
    assert.equal(copy.b[0], copy.a);
    assert.equal(copy.map.get(copy.a), "by reference");
    assert.ok(copy.self.has(copy.map));
    assert.equal(copy.a.move(2), 2);
    assert.equal(point.x, 0, "the copy is another");
  });

  test("a list of a million members needs no stack, and no line is long", () => {
    const head = new Point();
    let last = head;
    for (let n = 1; n < 1_000_000; n += 1) {
      last.next = new Point();
      last = last.next;
      last.x = n;
    }
    const root = { head, all: new Map(Array.from({ length: 5_001 }, (_, n) => [`k${n}`, n])) };
    let longest = 0;
    const lines = [...encodeGraph(root, classes)];
    for (const line of lines) longest = Math.max(longest, line.length);
    assert.ok(longest < 20_000, `${longest}`);
    const copy = decodeGraph(lines, classes) as typeof root;
    let count = 0;
    for (let at: Point | undefined = copy.head; at !== undefined; at = at.next) {
      assert.equal(at.x, count);
      count += 1;
    }
    assert.equal(count, 1_000_000);
    assert.deepEqual([...copy.all], [...root.all]);
  });

  test("what could not be put back is refused", () => {
    class Other {}
    for (const bad of [() => 1, Symbol("s"), 1n, new Other(), new Date(0)]) {
      assert.throws(() => [...encodeGraph({ bad }, classes)], TypeError);
    }
  });

  test("lines that nobody wrote are refused and pollute nothing", () => {
    for (const lines of [
      [],
      ["[0]"],
      ['["k","Nobody"]', "[0]"],
      ['["a",[7]]'],
      ['["a","~7"]'],
      ['["a","~!Seven"]'],
      ["x"],
      ['["+",1]'],
    ]) {
      assert.throws(() => decodeGraph(lines, classes));
    }
    const copy = copyOf(JSON.parse('{"__proto__":{"polluted":true}}') as object);
    assert.equal((copy as { polluted?: boolean }).polluted, undefined);
    assert.equal(({} as { polluted?: boolean }).polluted, undefined);
  });
});
