import assert from "node:assert/strict";
import { test } from "node:test";
import { Fifo, FORGOTTEN_MAX, forgetOver } from "@harmovela/envelope";

function queueOf(...times: number[]): Fifo<{ at: number }> {
  const queue = new Fifo<{ at: number }>();
  for (const at of times) queue.push({ at });
  return queue;
}

function forgotten(queue: Fifo<{ at: number }>, retentionMs: number, at: number): number[] {
  const gone: number[] = [];
  forgetOver(queue, { retentionMs, at }, (over) => gone.push(over.at));
  return gone;
}

test("what is over goes when more than the retention has passed, the oldest first", () => {
  const queue = queueOf(1, 2, 3);
  assert.deepEqual(forgotten(queue, 10, 11), []);
  assert.deepEqual(forgotten(queue, 10, 12), [1]);
  assert.deepEqual(forgotten(queue, 10, 100), [2, 3]);
  assert.deepEqual(forgotten(queue, 10, 1_000), []);
});

test("one entry lets go of a bounded number, the next one of more", () => {
  const queue = queueOf(...Array.from({ length: FORGOTTEN_MAX + 2 }, (_, at) => at));
  assert.equal(forgotten(queue, 0, 1_000).length, FORGOTTEN_MAX);
  assert.equal(queue.size, 2);
  assert.equal(forgotten(queue, 0, 1_000).length, 2);
});

test("it is off the queue before it is let go of", () => {
  const queue = queueOf(1, 2);
  const left: number[] = [];
  forgetOver(queue, { retentionMs: 0, at: 9 }, () => left.push(queue.size));
  assert.deepEqual(left, [1, 0]);
});
