/** What waits until an entry is stored, and what is held of it afterwards. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Releases } from "../src/releases.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

/** What is released with an object that nobody else holds. */
function addLarge(releases: Releases, seq: number, done: number[]): WeakRef<object> {
  const large = { seq };
  releases.add(seq, () => done.push(large.seq));
  return new WeakRef(large);
}

test("what is released is held no longer, though others still wait", async () => {
  const releases = new Releases();
  const done: number[] = [];
  const held = Array.from({ length: 10 }, (_, index) => addLarge(releases, index + 1, done));
  releases.releaseUpTo(9);
  assert.deepEqual(done, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
  assert.equal(releases.size, 1);
  // References live until the job that made them is over.
  await new Promise((resolve) => setImmediate(resolve));
  collect();
  assert.deepEqual(
    held.map((ref) => ref.deref() !== undefined),
    [...Array.from({ length: 9 }, () => false), true],
  );
});

test("what is given up is dropped, in order, and not released", () => {
  const releases = new Releases();
  const told: string[] = [];
  releases.add(1, () => told.push("released 1"));
  for (const seq of [2, 3]) {
    releases.add(
      seq,
      () => told.push(`released ${seq}`),
      () => told.push(`dropped ${seq}`),
    );
  }
  releases.releaseUpTo(1);
  releases.clear();
  releases.releaseUpTo(3);
  assert.deepEqual(told, ["released 1", "dropped 2", "dropped 3"]);
  releases.add(3, () => told.push("at once"));
  assert.equal(told.at(-1), "at once");
});
