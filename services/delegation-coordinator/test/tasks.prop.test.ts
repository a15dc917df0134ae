import assert from "node:assert/strict";
import { test } from "node:test";
import { deriveId } from "@harmovela/envelope";
import { assertTenantsApart } from "@harmovela/testkit";
import fc from "fast-check";
import { describeState } from "../src/index.ts";
import { command, envelopeOf, failing, run } from "./random-runs.ts";
import { SERVICE } from "./support.ts";

const RUNS = 300;
const sequences = fc.array(command, { minLength: 10, maxLength: 80, size: "max" });

test("B7 every prefix of every log keeps the rules, and every plan finishes", () => {
  fc.assert(
    fc.property(sequences, (commands) => {
      const { scenario, oracle } = run(commands);
      scenario.settle();
      oracle.read(scenario.log);
      assert.equal(oracle.openPlans(), 0, "a begun plan that never ends");
      // Past every grace that any test here gives, nothing that was asked to end is live.
      scenario.settle(Date.UTC(9999, 11, 31, 23, 59, 59, 999));
      oracle.read(scenario.log);
      assert.equal(scenario.state.tenants.get("acme")?.plans.size ?? 0, 0);
      assert.equal(scenario.state.gentleCount, 0);
      assert.equal(scenario.owed(), undefined);
      for (const cause of oracle.cited) assert.ok(oracle.ids.has(cause), `no entry ${cause}`);
    }),
    { numRuns: RUNS, includeErrorInReport: true },
  );
});

test("a fresh fold of the log gives the same state, and owes the same", () => {
  fc.assert(
    fc.property(sequences, (commands) => {
      const { scenario } = run(commands);
      const live = describeState(scenario.state);
      const refolded = scenario.refold();
      assert.deepEqual(describeState(refolded), live);
      scenario.state = refolded;
      scenario.settle(Date.UTC(9999, 11, 31, 23, 59, 59, 999));
      assert.equal(refolded.tenants.get("acme")?.plans.size ?? 0, 0);
    }),
    { numRuns: RUNS, includeErrorInReport: true },
  );
});

test("decide and owed change nothing that matters", () => {
  fc.assert(
    fc.property(sequences, command, (commands, last) => {
      const { scenario } = run(commands);
      const before = JSON.stringify(describeState(scenario.state));
      const envelope = envelopeOf(scenario, [], last);
      if (envelope) {
        scenario.decider.decide(
          scenario.state,
          {
            envelope: { ...envelope, id: "evt_last" },
            tenant: "acme",
            source: envelope.source,
            intake: 1,
          },
          { now: scenario.now, deriveId: (index) => deriveId("acme", "in:1", index, 0) },
        );
      }
      scenario.owed();
      assert.equal(JSON.stringify(describeState(scenario.state)), before);
    }),
    { numRuns: RUNS, includeErrorInReport: true },
  );
});

test("obligations that cannot be met stop neither the fold nor the rest", () => {
  fc.assert(
    fc.property(fc.array(failing, { minLength: 10, maxLength: 80, size: "max" }), (commands) => {
      const { scenario, oracle } = run(commands);
      scenario.settle(Date.UTC(9999, 11, 31, 23, 59, 59, 999));
      oracle.read(scenario.log);
      assert.equal(scenario.owed(), undefined);
      assert.deepEqual(describeState(scenario.refold()), describeState(scenario.state));
    }),
    { numRuns: RUNS, includeErrorInReport: true },
  );
});

test("the generated runs reach what they are meant to attack", () => {
  const seen = new Map<string, number>();
  const note = (what: string) => seen.set(what, (seen.get(what) ?? 0) + 1);
  for (const commands of fc.sample(sequences, { numRuns: 200, seed: 7 })) {
    const { scenario, decisions } = run(commands);
    for (const decision of decisions) note(Object.keys(decision)[0] ?? "");
    for (const entry of scenario.log) {
      if (entry.kind === "begun") note(`begun ${entry.plan.kind}`);
      if (entry.kind === "event" && entry.envelope.source === SERVICE) note(entry.envelope.type);
      if (
        entry.kind === "event" &&
        JSON.stringify(entry.envelope.payload).includes("settling_by")
      ) {
        note("settling_by");
      }
      if (
        entry.kind === "event" &&
        JSON.stringify(entry.envelope.payload).includes('"forced":true')
      ) {
        note("forced");
      }
    }
  }
  const wanted = [
    "accept",
    "begin",
    "reject",
    "duplicate",
    "begun task.cancelled",
    "begun task.failed",
    "begun task.timed_out",
    "task.cancelled",
    "task.cancel.requested",
    "task.timed_out",
    "settling_by",
    "forced",
  ];
  for (const what of wanted)
    assert.ok((seen.get(what) ?? 0) >= 10, `${what}: ${seen.get(what) ?? 0}`);
});

test("a tenant notices nothing of another one that has the same names", () => {
  fc.assert(
    fc.property(fc.array(command, { minLength: 10, maxLength: 80, size: "max" }), (commands) => {
      assertTenantsApart(run(commands).scenario, describeState);
    }),
    { numRuns: 100, includeErrorInReport: true },
  );
});
