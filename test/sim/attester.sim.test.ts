/**
 * Seeded lives of the attester with crashes, lost acknowledgements, two leaders at once, logs that lose their
 * beginnings, and attestations of what comes later or never. Every fourth seed is lived twice, and must give the
 * same log byte for byte.
 *
 * Long run: HARMOVELA_SIM_SEEDS=300 node --conditions=development --import tsx --test test/sim/attester.sim.test.ts
 * One seed: HARMOVELA_SIM_SEED=17 node …
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type AttesterLife, simulateAttester } from "./attest.ts";

const SEEDS_DEFAULT = 12;
/** Seeds from which on every fault has happened somewhere. */
const SEEDS_MANY = 100;
const TWICE_EVERY = 4;

function seeds(): number[] {
  const { HARMOVELA_SIM_SEED: one, HARMOVELA_SIM_SEEDS: many, HARMOVELA_SIM_FROM } = process.env;
  if (one !== undefined) return [Number(one)];
  const from = Number(HARMOVELA_SIM_FROM ?? 1);
  return Array.from({ length: Number(many ?? SEEDS_DEFAULT) }, (_, index) => from + index);
}

async function live(seed: number, isTwice: boolean): Promise<AttesterLife> {
  try {
    const first = await simulateAttester(seed);
    if (isTwice) {
      const second = await simulateAttester(seed);
      assert.deepEqual(second.lines, first.lines, "the same seed gave another log");
    }
    return first;
  } catch (error) {
    const reason =
      error instanceof Error ? `${error.message} (${error.cause ?? "no cause"})` : error;
    throw new Error(`HARMOVELA_SIM_SEED=${seed} failed\n${reason}`, { cause: error });
  }
}

test("every life of the attester keeps its promises", async (context) => {
  const sums = new Map<string, number>();
  const faults = new Map<string, number>();
  const add = (counts: Map<string, number>, more: Record<string, number>): void => {
    for (const [name, count] of Object.entries(more)) {
      counts.set(name, (counts.get(name) ?? 0) + count);
    }
  };
  const all = seeds();
  for (const seed of all) {
    const { lines, tally, ...outcome } = await live(seed, seed % TWICE_EVERY === 0);
    const { crashes, snapshotStarts, leasesTaken, displacedAppends, pauses, partitions } = tally;
    add(sums, { entries: lines.length, ...outcome });
    add(faults, { crashes, snapshotStarts, leasesTaken, displacedAppends, pauses, partitions });
  }
  const happened = Object.fromEntries([...sums, ...faults]);
  context.diagnostic(`${all.length} seeds: ${JSON.stringify(happened)}`);
  const wanted = [
    ...(all.length < SEEDS_DEFAULT ? [] : sums),
    ...(all.length < SEEDS_MANY ? [] : faults),
  ];
  for (const [name, sum] of wanted) assert.notEqual(sum, 0, `never happened: ${name}`);
});
