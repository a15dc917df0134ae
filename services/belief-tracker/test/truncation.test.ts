/** Evidence that was lost puts what rests on it in doubt, at once, and is told step by step (spec section 8). */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Envelope, Owed } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import { cut, Fold, instantPacking, readSnapshot } from "@harmovela/host";
import fc from "fast-check";
import { describeState } from "../src/index.ts";
import {
  against,
  derived,
  event,
  fact,
  NOW,
  observe,
  payloadOf,
  resting,
  retract,
  type World,
  world,
} from "./support.ts";

const truncated = (missing: JsonObject, id = "cut"): Envelope =>
  event(
    "provenance.chain.truncated",
    { earliest_available: "x", reason: "retention", ...missing },
    { source: "service:provenance-attester", id },
  );

const lose = (scenario: World, missing: string, id?: string): World =>
  observe(scenario, "provenance", truncated({ missing_from: missing }, id));

const named = (id: string, ...on: string[]): Envelope => fact(id, 1, { id, ...resting(...on) });

function marks(events: readonly Envelope[]): string[] {
  return events
    .filter(({ type }) => type === "state.invalidated")
    .map((mark) => String(payloadOf(mark).event_id));
}

function urgencyOf(owed: Owed | undefined): string | undefined {
  return owed !== undefined && "urgency" in owed ? owed.urgency : undefined;
}

describe("evidence that was lost", () => {
  test("marks what rests on it, with what rests on that, and whatever comes later", () => {
    const scenario = world().given(named("a", "gone"), named("b", "a"), fact("c", 1));
    lose(scenario, "gone");
    assert.deepEqual(
      derived(scenario).map((mark) => [mark.type, mark.causation_id, payloadOf(mark)]),
      ["b", "a"].map((id) => [
        "state.invalidated",
        "cut",
        {
          resource: `memory:${id}`,
          event_id: id,
          source: "agent:a",
          depends_on: [id === "b" ? "a" : "gone"],
          retracted: "gone",
          reason: "rests on what was retracted",
        },
      ]),
    );
    assert.deepEqual(against(scenario, { key: "memory:c" }), []);
    scenario.given(named("d", "gone"));
    assert.deepEqual(marks(derived(scenario)), ["d"]);
  });

  test("marks no claim that stands, though what was said of it once is gone; what rests on it", () => {
    const scenario = world().given(fact("a", 1, { id: "a" }), named("b", "a"), named("c", "b"));
    lose(scenario, "a");
    assert.deepEqual(against(scenario, { key: "memory:a" }), []);
    assert.deepEqual(against(scenario, { key: "memory:b" }), ["awaiting_re_evaluation"]);
    assert.deepEqual(marks(derived(scenario, NOW + 1)), ["c", "b"]);
    assert.deepEqual(against(scenario, { key: "memory:a" }), []);
    scenario.given(named("d", "a"));
    assert.deepEqual(derived(scenario), [], "it still stands for what is concluded from it");
  });

  test("told of by an agent puts its own conclusion in doubt, with what rests on that, and no other", () => {
    const scenario = world().given(
      fact("base", 1, { id: "base", source: "agent:b" }),
      named("own", "base", "gone"),
      named("below", "own"),
      fact("other", 1, { id: "other", source: "agent:b", ...resting("base", "gone") }),
    );
    for (const [at, missing] of ["base", "gone"].entries()) {
      const said = truncated({ missing_from: missing }, `cut${at}`);
      observe(scenario, "provenance", { ...said, source: "agent:a", causation_id: "own" });
    }
    assert.deepEqual(marks(derived(scenario)), ["below", "own"]);
    for (const key of ["memory:base", "memory:other"]) {
      assert.deepEqual(against(scenario, { key }), []);
    }
    scenario.given(fact("late", 1, { source: "agent:b", ...resting("gone") }));
    assert.deepEqual(derived(scenario), [], "for others it is not lost");
  });

  test("named by the cause where `missing_from` is not there; what is not known is nothing", () => {
    const scenario = world().given(named("a", "gone"));
    observe(scenario, "provenance", { ...truncated({}), causation_id: "gone" });
    assert.deepEqual(marks(derived(scenario)), ["a"]);
    lose(scenario, "unheard", "cut2");
    assert.equal(scenario.owed(), undefined);
  });

  test("that comes after all stands, and so does what is concluded from it then", () => {
    const scenario = world().given(named("a", "gone"));
    lose(scenario, "gone");
    derived(scenario);
    scenario.given(fact("g", 1, { id: "gone" }), named("b", "gone"));
    assert.deepEqual(derived(scenario), []);
    assert.deepEqual(against(scenario, { key: "memory:g" }), []);
    assert.deepEqual(against(scenario, { key: "memory:b" }), []);
    assert.deepEqual(against(scenario, { key: "memory:a" }), ["awaiting_re_evaluation"]);
  });

  test("is looked for below what is over", () => {
    const scenario = world().given(named("a", "gone"), named("b", "a"), named("c", "b"));
    scenario.given(event("memory.fact.invalidated", { fact_id: "a" }));
    lose(scenario, "gone");
    assert.deepEqual(marks(derived(scenario)), ["c", "b"]);
  });

  test("twice marks nothing twice", () => {
    const scenario = world().given(named("a", "gone"), named("b", "gone"));
    lose(scenario, "gone");
    scenario.step();
    lose(scenario, "gone", "cut2");
    lose(scenario, "gone");
    assert.deepEqual(marks(derived(scenario)), ["b"]);
    assert.equal(scenario.state.tenants.get(scenario.tenant)?.losses.size, 0);
  });

  test("holds everybody back at once, while the marks wait for their turn", () => {
    const scenario = world();
    for (let at = 0; at < 5; at += 1) scenario.given(named(`a${at}`, "gone"));
    lose(scenario, "gone");
    assert.equal(urgencyOf(scenario.owed()), "step", "other messages need not wait for it");
    assert.deepEqual(against(scenario, { key: "memory:a4" }), ["awaiting_re_evaluation"]);
    scenario.step();
    scenario.given(named("late", "a4"), fact("other", 1));
    assert.equal(urgencyOf(scenario.owed()), "timer", "what comes late is marked at once");
    assert.deepEqual(marks(derived(scenario)), ["late", "a1", "a2", "a3", "a4"]);
    assert.deepEqual(against(scenario, { key: "memory:other" }), []);
  });

  test("takes turns with plans", () => {
    const scenario = world().given(named("a", "gone"), named("b", "gone"));
    scenario.given(fact("base", 1, { id: "base" }), named("c", "base"), named("d", "base"));
    lose(scenario, "gone");
    scenario.given(retract("base"));
    assert.deepEqual(marks(derived(scenario)), ["a", "c", "b", "d"]);
  });

  test("whose mark cannot be written is given up, and the next one follows", () => {
    const scenario = world().given(named("a", "gone"), named("b", "gone"));
    lose(scenario, "gone");
    const owed = scenario.owed();
    assert.ok(owed && "event" in owed);
    const { id } = owed.event;
    const cause = { owed: owed.cause };
    const { tenant } = scenario;
    scenario.append({ kind: "obligation_failed", id, reason: "too long", cause, tenant });
    assert.deepEqual(marks(derived(scenario)), ["b"]);
    assert.equal(scenario.owed(), undefined);
  });
});

const spec = world().decider.snapshots;
assert.ok(spec);

/** The state as another leader reads it from a snapshot. */
async function reread({ state, decider }: World): Promise<World["state"]> {
  assert.ok(spec);
  const taken = await cut(
    "beliefs",
    new Fold(decider, { ...new Fold(decider).record, state }),
    spec,
    async () => true,
  );
  assert.ok(taken);
  const packed = await instantPacking.pack(taken.text);
  return new Fold(decider, (await readSnapshot(packed, spec, instantPacking)).record).state;
}

test("each conclusion is marked once, whatever comes between, and after a snapshot", async () => {
  let all = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(fc.nat(9), { maxLength: 2 }), { minLength: 4, maxLength: 10 }),
      fc.array(fc.record({ of: fc.nat(9), steps: fc.nat(3) }), { minLength: 1, maxLength: 3 }),
      async (edges, losses) => {
        const scenario = world();
        for (const [at, on] of edges.entries()) {
          scenario.given(named(`c${at}`, ...on.map((other) => `c${other}`), `e${at % 3}`));
        }
        for (const [at, { of, steps }] of losses.entries()) {
          lose(scenario, of % 2 === 0 ? `e${of % 3}` : `c${of}`, `cut${at}`);
          for (let step = 0; step < steps; step += 1) scenario.step();
          scenario.state = await reread(scenario);
        }
        scenario.settle();
        const said = marks(scenario.events().map(({ envelope }) => envelope));
        assert.equal(new Set(said).size, said.length);
        assert.deepEqual(
          said.sort(),
          below(
            edges,
            losses.map(({ of }) => of),
          ),
        );
        assert.deepEqual(describeState(await reread(scenario)), describeState(scenario.state));
        all += said.length;
      },
    ),
    { numRuns: 200 },
  );
  assert.ok(all > 200, `only ${all} marks`);
});

/** Told from the edges alone: what rests on what is lost, or on what is marked. */
function below(edges: readonly number[][], losses: readonly number[]): string[] {
  const lost = new Set(losses.map((of) => (of % 2 === 0 ? `e${of % 3}` : `c${of}`)));
  const marked = new Set<string>();
  for (let before = -1; before !== marked.size; ) {
    before = marked.size;
    for (const [at, on] of edges.entries()) {
      const grounds = [...on.map((other) => `c${other}`), `e${at % 3}`];
      const hasFallen = (id: string) => id !== `c${at}` && (lost.has(id) || marked.has(id));
      if (grounds.some(hasFallen)) marked.add(`c${at}`);
    }
  }
  return [...marked].sort();
}

test("20,000 conclusions that rest on one lost event are steps, marked once each", () => {
  const scenario = world();
  const count = 20_000;
  for (let at = 0; at < count; at += 1) scenario.judge(named(`d${at}`, "gone"));
  lose(scenario, "gone");
  const said = marks(derived(scenario));
  assert.equal(said.length, count);
  assert.equal(new Set(said).size, count);
});
