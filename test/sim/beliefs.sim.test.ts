/**
 * The real decider of beliefs under random talk: the checker, built from the protocol alone, finds nothing
 * in what it writes, on no prefix and at rest. HARMOVELA_SIM_SEEDS: how many lives.
 */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { checkLog } from "@harmovela/check";
import { BeliefTraffic } from "./belief-traffic.ts";

const LIVES = Number(process.env.HARMOVELA_SIM_SEEDS ?? 200);

function live(seed: number, envelopes: number): Map<string, number> {
  const traffic = new BeliefTraffic(seed);
  traffic.run(envelopes);
  const records = traffic.records();
  const options = { domain: "beliefs", stream: "HV_LOG_BELIEFS", settled: true } as const;
  assert.deepEqual(checkLog(records, options).findings, [], `seed ${seed}`);
  const said = new Map<string, number>();
  for (const { subject } of records) {
    const [, type] = /\.service:belief-tracker\.-\.(.*)$/.exec(subject) ?? [];
    if (type !== undefined) said.set(type, (said.get(type) ?? 0) + 1);
  }
  return said;
}

describe("the belief tracker under random talk", () => {
  it(`keeps every rule in ${LIVES} short lives`, () => {
    for (let seed = 1; seed <= LIVES; seed += 1) live(seed, 40);
  });

  it("keeps every rule in long ones, in which everything happens that it says by itself", () => {
    for (let seed = 1; seed <= 4; seed += 1) {
      const said = live(seed, 400);
      for (const type of [
        "belief.conflict.detected",
        "belief.revised",
        "freshness.expired",
        "state.invalidated",
      ]) {
        assert.ok((said.get(type) ?? 0) > 0, `seed ${seed}: no ${type}`);
      }
    }
  });
});
