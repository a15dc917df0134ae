import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Fifo } from "../src/index.ts";

test("what went in first comes out first, however often the queue grows and shrinks", () => {
  const bursts = fc.array(fc.record({ push: fc.nat(3000), shift: fc.nat(3000) }), { maxLength: 6 });
  fc.assert(
    fc.property(bursts, (list) => {
      const queue = new Fifo<number>();
      const expected: number[] = [];
      let next = 0;
      for (const { push, shift } of list) {
        for (let i = 0; i < push; i += 1) {
          queue.push(next);
          expected.push(next);
          next += 1;
        }
        const left = expected.splice(0, shift);
        assert.deepEqual(
          Array.from({ length: left.length }, () => queue.shift()),
          left,
        );
        assert.equal(queue.size, expected.length);
        assert.equal(queue.peek(), expected[0]);
      }
    }),
    { numRuns: 50 },
  );
  assert.equal(new Fifo<number>().shift(), undefined);
});

test("a queue holds nothing that has left it, and little room for it", () => {
  const queue = new Fifo<object>();
  const leaving = {};
  queue.push(leaving);
  queue.push({});
  queue.shift();
  assert.ok(!queue.items.includes(leaving));
  for (let i = 0; i < 100_000; i += 1) {
    queue.push({});
    queue.shift();
  }
  assert.ok(queue.items.length < 5000, `${queue.items.length} places for one item`);
});
