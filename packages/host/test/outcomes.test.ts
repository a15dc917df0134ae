/** The memory of settled ids evicts by the entries' own time, so that every fold forgets the same. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { OutcomeMemory } from "../src/outcomes.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const START = 1_764_500_000_000;

function fill(memory: OutcomeMemory, from: number, count: number, at: number): void {
  for (let seq = from; seq < from + count; seq += 1) memory.set("acme", `e${seq}`, seq, at);
}

describe("the memory of settled ids", () => {
  test("the newest entry of an id counts, per tenant", () => {
    const memory = new OutcomeMemory();
    memory.set("acme", "e", 1, START);
    memory.set("other", "e", 2, START);
    memory.set("acme", "e", 3, START + 4 * HOUR);
    assert.equal(memory.get("acme", "e"), 3);
    assert.equal(memory.get("other", "e"), 2);
    assert.equal(memory.get("acm", "ee"), undefined);
  });

  test("an id is kept for at least 21 hours of few entries and forgotten after at most 27", () => {
    const memory = new OutcomeMemory();
    memory.set("acme", "old", 1, START);
    for (let hour = 1; hour <= 21; hour += 1)
      memory.set("acme", `h${hour}`, hour, START + hour * HOUR);
    assert.equal(memory.get("acme", "old"), 1);
    for (let hour = 22; hour <= 27; hour += 1)
      memory.set("acme", `h${hour}`, hour, START + hour * HOUR);
    assert.equal(memory.get("acme", "old"), undefined);
    assert.equal(memory.get("acme", "h27"), 27);
  });

  test("a flood is bounded by count, and nothing younger than ten minutes goes before that", () => {
    const memory = new OutcomeMemory();
    fill(memory, 0, 1_000_000, START);
    assert.equal(memory.get("acme", "e0"), 0);
    fill(memory, 1_000_000, 3_500_000, START + 1);
    assert.ok(memory.size <= 4_000_000, `${memory.size} ids`);
    assert.equal(memory.get("acme", "e0"), undefined);
    assert.equal(memory.get("acme", "e4499999"), 4_499_999);
  });

  test("two folds forget alike: it depends on the entries and not on who looked when", () => {
    const entry = fc.record({
      id: fc.nat({ max: 40 }).map((id) => `e${id}`),
      later: fc.integer({ min: 0, max: 4 * HOUR }),
      isAsked: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 80 }), (entries) => {
        const asked = new OutcomeMemory();
        const silent = new OutcomeMemory();
        let at = START;
        for (const [seq, { id, later, isAsked }] of entries.entries()) {
          at += later;
          asked.set("acme", id, seq, at);
          silent.set("acme", id, seq, at);
          if (isAsked) for (let other = 0; other <= 40; other += 1) asked.get("acme", `e${other}`);
        }
        for (let id = 0; id <= 40; id += 1) {
          assert.equal(asked.get("acme", `e${id}`), silent.get("acme", `e${id}`));
        }
        assert.equal(asked.size, silent.size);
      }),
      { numRuns: 200 },
    );
  });
});
