/**
 * Seeded lives of the coordinator with crashes, lost acknowledgements, two leaders at once, a trimmed
 * intake and hostile senders (architecture, section 8: P1 to P5). Every fourth
 * seed is lived twice, and must give the same log byte for byte.
 *
 * Long run: HARMOVELA_SIM_SEEDS=5000 node --conditions=development --import tsx --test test/sim/tasks.sim.test.ts
 * From another on: HARMOVELA_SIM_FROM=5001 HARMOVELA_SIM_SEEDS=5000 node …
 * One seed: HARMOVELA_SIM_SEED=17 node --conditions=development --import tsx --test test/sim/tasks.sim.test.ts
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { emptyTally, type Tally } from "./chaos.ts";
import { type Life, simulate } from "./simulate.ts";

const SEEDS_DEFAULT = 120;
/** A second life costs as much as the first: every so many seeds are lived again and compared. */
const TWICE_EVERY = 4;
const COMMAND = "node --conditions=development --import tsx --test test/sim/tasks.sim.test.ts";

/** Lives that once broke a promise (what they met depends on what a life is made of, so it may be something else by now): 595 and 715 at take-overs, 1044 a refusal of a read that was not stored. */
const ONCE_BROKEN = [595, 691, 715, 955, 1044];

function seeds(): number[] {
  const { HARMOVELA_SIM_SEED: one, HARMOVELA_SIM_SEEDS: many, HARMOVELA_SIM_FROM } = process.env;
  if (one !== undefined) return [Number(one)];
  const from = Number(HARMOVELA_SIM_FROM ?? 1);
  const counted = Array.from({ length: Number(many ?? SEEDS_DEFAULT) }, (_, index) => from + index);
  return [...new Set([...counted, ...ONCE_BROKEN])];
}

async function live(seed: number, isTwice: boolean): Promise<Life> {
  try {
    const first = await simulate(seed);
    if (!isTwice) return first;
    const second = await simulate(seed);
    const differs = first.lines.findIndex((line, index) => line !== second.lines[index]);
    assert.equal(differs, -1, `the same seed gave another log: ${first.lines[differs]}`);
    assert.equal(second.lines.length, first.lines.length, "the same seed gave a longer log");
    return first;
  } catch (error) {
    // The reporter of the test runner shows the message and not the cause.
    const reason =
      error instanceof Error ? `${error.message} (${error.cause ?? "no cause"})` : error;
    const repeat = `HARMOVELA_SIM_SEED=${seed} ${COMMAND}`;
    throw new Error(`seed ${seed} failed; to repeat: ${repeat}\n${reason}`, { cause: error });
  }
}

test("every life of the coordinator keeps its promises", async (context) => {
  const tally = emptyTally();
  const names = Object.keys(tally) as (keyof Tally)[];
  let messages = 0;
  let entries = 0;
  let turns = 0;
  const all = seeds();
  for (const seed of all) {
    const life = await live(seed, all.length === 1 || seed % TWICE_EVERY === 0);
    for (const name of names) tally[name] += life.tally[name];
    messages += life.messages;
    entries += life.lines.length;
    turns += life.turns;
  }
  context.diagnostic(`${all.length} seeds: ${JSON.stringify({ messages, entries, turns })}`);
  context.diagnostic(JSON.stringify(tally));
  if (all.length < SEEDS_DEFAULT) return;
  for (const name of names) assert.notEqual(tally[name], 0, `never happened: ${name}`);
});
