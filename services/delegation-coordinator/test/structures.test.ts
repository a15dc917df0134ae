import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Heap } from "../src/heap.ts";
import { Ring } from "../src/ring.ts";

interface Item {
  due: number;
  order: number;
  index: number;
}

test("a heap gives its items by due time, then order, whatever is removed", () => {
  const rows = fc.array(fc.record({ due: fc.nat(20), keep: fc.boolean() }), { maxLength: 60 });
  fc.assert(
    fc.property(rows, (drawn) => {
      const heap = new Heap<Item>();
      const items = drawn.map(({ due }, order): Item => ({ due, order, index: -1 }));
      for (const item of items) heap.add(item);
      const kept = items.filter((_, at) => drawn[at]?.keep);
      for (const item of items) if (!kept.includes(item)) heap.remove(item);
      const out: Item[] = [];
      for (let item = heap.peek(); item; item = heap.peek()) {
        out.push(item);
        heap.remove(item);
      }
      assert.deepEqual(
        out.map(({ due, order }) => [due, order]),
        kept
          .map(({ due, order }) => [due, order])
          .sort((a, b) => (a[0] ?? 0) - (b[0] ?? 0) || (a[1] ?? 0) - (b[1] ?? 0)),
      );
      assert.equal(heap.size, 0);
    }),
  );
});

test("a heap takes an item once and forgets it once", () => {
  const heap = new Heap<Item>();
  const item = { due: 1, order: 1, index: -1 };
  heap.add(item);
  heap.add(item);
  assert.equal(heap.size, 1);
  heap.remove(item);
  heap.remove(item);
  assert.equal(heap.size, 0);
});

test("a heap shows what is due by an instant and keeps it", () => {
  const dues = fc.array(fc.nat(20), { maxLength: 60 });
  fc.assert(
    fc.property(dues, fc.nat(20), (drawn, by) => {
      const heap = new Heap<Item>();
      const items = drawn.map((due, order): Item => ({ due, order, index: -1 }));
      for (const item of items) heap.add(item);
      const found = heap.dueBy(by).sort((a, b) => a.order - b.order);
      assert.deepEqual(
        found,
        items.filter(({ due }) => due <= by),
      );
      assert.equal(heap.size, items.length);
    }),
  );
});

interface Member {
  name: string;
  ringNext: Member | undefined;
  ringPrev: Member | undefined;
}

test("a ring serves its members in turn", () => {
  const ring = new Ring<Member>();
  const make = (name: string): Member => ({ name, ringNext: undefined, ringPrev: undefined });
  const [a, b, c] = [make("a"), make("b"), make("c")];
  for (const member of [a, b, c, a]) ring.add(member);
  const served: string[] = [];
  for (let i = 0; i < 4 && ring.head; i++) {
    served.push(ring.head.name);
    ring.rotate(ring.head);
  }
  assert.equal(served.join(""), "abca");
  ring.remove(b);
  ring.remove(b);
  assert.equal(ring.head, c);
  ring.remove(c);
  ring.rotate(a);
  assert.equal(ring.head, a);
  ring.remove(a);
  assert.equal(ring.head, undefined);
});
