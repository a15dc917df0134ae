/** What is over is forgotten after the retention, and nothing else (architecture, section 6). */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { reachable } from "@harmovela/testkit";
import fc from "fast-check";
import { createBeliefDecider, DEFAULT_BELIEF_SETTINGS, describeState } from "../src/index.ts";
import { type BeliefState, type Claim, isLive } from "../src/state.ts";
import { history, live } from "./generated.ts";
import {
  against,
  derived,
  event,
  fact,
  read,
  resting,
  retract,
  type World,
  world,
} from "./support.ts";

const RETENTION = 100;
const RUNS = 200;

function claimsIn(state: BeliefState): Claim[] {
  return [...reachable(state)].filter(
    (held): held is Claim =>
      (held as Partial<Claim>).kind === "claim" && "subject" in held && "restsOn" in held,
  );
}

function held(scenario: World): { subjects: number; events: number; over: number } {
  const tenant = scenario.state.tenants.get(scenario.tenant);
  return {
    subjects: tenant?.subjects.size ?? 0,
    events: tenant?.events.size ?? 0,
    over: scenario.state.over.size,
  };
}

describe("a withdrawn claim", () => {
  test("is known until the retention is over, and then its tenant is gone too", () => {
    const scenario = world({ retentionMs: RETENTION }).given(
      fact("t", 1, { stale_after: "PT1H" }),
      retract("t"),
    );
    scenario.wait(RETENTION).given(event("context.updated", { context_key: "k" }, { id: "k" }));
    assert.deepEqual(against(scenario, { key: "memory:t" }), ["withdrawn"]);
    scenario.wait(1).given(event("context.invalidated", { context_key: "k" }));
    assert.deepEqual(against(scenario, { key: "memory:t" }), ["unknown"]);
    scenario.wait(RETENTION + 1).given(event("context.retrieval.started", {}));
    assert.equal(scenario.state.tenants.size, 0);
    assert.equal(reachable(scenario.state).size, reachable(world().state).size);
  });

  test("stays while something rests on it, which is marked however late another comes", () => {
    const scenario = world({ retentionMs: RETENTION }).given(fact("t", 1, { id: "t" }));
    scenario.given(fact("d", 1, { id: "d", ...resting("t") }), retract("t")).settle();
    scenario.wait(10 * RETENTION).given(fact("late", 1, { ...resting("t") }));
    assert.equal(derived(scenario).length, 1);
    scenario.given(retract("d"), retract("late")).settle();
    scenario.wait(RETENTION + 1).given(event("context.retrieval.started", {}));
    assert.deepEqual(held(scenario), { subjects: 0, events: 0, over: 0 });
  });

  test("in a cycle of withdrawn ones is forgotten", () => {
    const scenario = world({ retentionMs: RETENTION }).given(
      fact("a", 1, { id: "a", ...resting("b") }),
      fact("b", 1, { id: "b", ...resting("a") }),
    );
    scenario.given(retract("a"), retract("b")).settle();
    scenario.wait(RETENTION + 1).given(event("context.retrieval.started", {}));
    assert.deepEqual(held(scenario), { subjects: 0, events: 0, over: 0 });
  });
});

test("what lives is never forgotten, nor what it stands on", () => {
  const scenario = world({ retentionMs: RETENTION }).given(
    fact("t", 1, { id: "t", stale_after: "PT0.01S" }),
    fact("d", 1, { id: "d", ...resting("t", "elsewhere") }),
  );
  scenario.settle(scenario.now + 100 * RETENTION);
  scenario.given(event("context.retrieval.started", {}));
  assert.deepEqual(against(scenario, { key: "memory:t" }), ["stale"]);
  assert.deepEqual(read(scenario, "get", { key: "memory:d" }).rests_on, ["t", "elsewhere"]);
});

test("a claim that is said again and again holds the ids of one retention", () => {
  const scenario = world({ retentionMs: RETENTION });
  for (let at = 0; at < 5000; at += 1) {
    scenario.wait(1).given(fact("t", at, { id: `e${at}`, ...resting(`x${at}`) }));
  }
  const { events, over } = held(scenario);
  assert.ok(events <= RETENTION + 10 && over <= RETENTION + 10, `${events} ids, ${over} over`);
});

test("a report of a conflict holds nobody back for ever", () => {
  const reported = event("belief.conflict.detected", { subject: "memory:t", claims: [] });
  const scenario = world({ retentionMs: RETENTION }).given(fact("t", 1), reported);
  assert.deepEqual(against(scenario, { key: "memory:t" }), ["contradicted"]);
  scenario.wait(RETENTION + 1).given(event("context.retrieval.started", {}));
  assert.deepEqual(against(scenario, { key: "memory:t" }), []);
});

/** What is over and held must be something that a live claim still rests on. */
function assertForgotten(state: BeliefState, at: number): void {
  for (const claim of claimsIn(state)) {
    const { withdrawn, mark, subject, source } = claim;
    const since = withdrawn?.at;
    if (since === undefined || since + RETENTION >= at) continue;
    assert.ok(!isLive(claim));
    // Plans under way and owed marks hold what they speak of.
    const isSpokenOf = subject.tenant.walks.size > 0 || state.duties.size > 0;
    const isNeeded = (claim.dependents?.size ?? 0) > 0 || isSpokenOf;
    assert.ok(isNeeded, `${subject.key} of ${source}, withdrawn at ${since}, ${mark?.id}`);
  }
}

test("nothing that is over is held longer than the retention, and every fold forgets alike", () => {
  let forgotten = 0;
  fc.assert(
    fc.property(history, fc.nat(100), (moves, percent) => {
      const scenario = world({ retentionMs: RETENTION });
      live(scenario, moves, () => {
        const last = scenario.log.at(-1);
        if (last !== undefined) assertForgotten(scenario.state, last.at);
      });
      const described = describeState(scenario.state);
      assert.deepEqual(describeState(scenario.refold()), described);
      // A leader that took over in the middle and has looked at what is owed.
      const cut = Math.floor((scenario.log.length * percent) / 100);
      const state = scenario.decider.initial();
      for (const [index, entry] of scenario.log.entries()) {
        if (index === cut) scenario.decider.owed(state, entry.at, { requests: new Set() });
        scenario.decider.evolve(state, entry);
      }
      assert.deepEqual(describeState(state), described);
      const whole = createBeliefDecider(DEFAULT_BELIEF_SETTINGS);
      const all = whole.initial();
      for (const entry of scenario.log) whole.evolve(all, entry);
      forgotten += claimsIn(all).length - claimsIn(scenario.state).length;
    }),
    { numRuns: RUNS },
  );
  assert.ok(forgotten > RUNS / 10, `only ${forgotten} claims were forgotten`);
});
