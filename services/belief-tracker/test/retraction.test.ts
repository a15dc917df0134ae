/** What rests on what was retracted is marked (spec 6.1); probe f06. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { DomainEntry, Envelope } from "@harmovela/envelope";
import {
  against,
  derived,
  envelopesOf,
  event,
  fact,
  NOW,
  payloadOf,
  read,
  resting,
  retract,
  revise,
  type World,
  world,
} from "./support.ts";

/** Event ids that the entries mark. */
function marked(entries: readonly (DomainEntry | Envelope)[]): string[] {
  const envelopes = entries.flatMap((entry) =>
    "kind" in entry ? envelopesOf([entry as DomainEntry]) : [entry as Envelope],
  );
  return envelopes
    .filter(
      ({ type, belief_status: status }) => type === "state.invalidated" && status === "unknown",
    )
    .map((envelope) => String(payloadOf(envelope).event_id));
}

const named = (id: string, on: string[], more = {}): Envelope =>
  fact(id, id, { id, ...resting(...on), ...more });

describe("a retraction", () => {
  test("f06: the conclusion is marked by a logged invalidation before the retraction itself is", () => {
    const base = fact("b", 1, { id: "base", source: "memory:main" });
    const conclusion = revise("x", "y", { id: "derived", ...resting("base") });
    const scenario = world().given(base, conclusion);
    const gone = retract("b", { id: "gone", source: "memory:main", causation_id: "base" });
    scenario.when(gone).begun("memory.fact.invalidated");
    assert.deepEqual(against(scenario, { key: "memory:b" }), ["withdrawn"], "it holds at once");
    const [mark, end, ...more] = envelopesOf(scenario.settle());
    assert.deepEqual(more, []);
    assert.equal(mark?.type, "state.invalidated");
    assert.equal(mark?.belief_status, "unknown");
    assert.equal(mark?.causation_id, "gone");
    assert.deepEqual(payloadOf(mark), {
      resource: "belief:base",
      event_id: "derived",
      source: "agent:a",
      depends_on: ["base"],
      retracted: "memory:b",
      reason: "rests on what was retracted",
    });
    assert.equal(end?.id, "gone");
    assert.deepEqual(against(scenario, { event_id: "derived" }), ["awaiting_re_evaluation"]);
    assert.equal(read(scenario, "get", { event_id: "derived" }).belief_status, "unknown");
    assert.equal(scenario.owed(), undefined);
  });

  test("reaches chains, diamonds and cycles once each, and nothing else", () => {
    const scenario = world().given(
      fact("base", 1, { id: "base" }),
      named("a", ["base"]),
      named("b", ["base"]),
      named("c", ["a", "b"]),
      named("d", ["c"]),
      named("a2", ["d"]),
      fact("e", 1, { id: "e" }),
      named("f", ["e"]),
    );
    // `c` rests on `a2` too, which rests on it.
    scenario.given(fact("c", "c", { id: "c2", ...resting("a2", "a", "b") }));
    scenario.given(retract("base"));
    const found = marked(scenario.settle());
    assert.deepEqual([...found].sort(), ["a", "a2", "b", "c2", "d"]);
    assert.deepEqual(against(scenario, { key: "memory:f" }), []);
  });

  test("without `retracted` a fact is withdrawn and nothing is marked; a context marks always", () => {
    const scenario = world().given(
      fact("base", 1, { id: "base" }),
      named("a", ["base"]),
      event("context.updated", { context_key: "k", new_value: 1 }, { id: "ctx" }),
      named("b", ["ctx"]),
      event("state.snapshot.ready", { resource: "cart" }, { id: "state" }),
      named("c", ["state"]),
    );
    scenario.when(event("memory.fact.invalidated", { fact_id: "base" })).accepted();
    assert.deepEqual(derived(scenario), []);
    scenario.given(event("context.invalidated", { context_key: "k" }));
    assert.deepEqual(marked(scenario.settle()), ["b"]);
    scenario.given(event("state.invalidated", { resource: "cart" }));
    assert.deepEqual(marked(scenario.settle()), ["c"]);
  });

  test("K7 what was invalidated is never current again, whatever the type said", () => {
    const scenario = world().given(
      fact("t", 1),
      event("memory.fact.invalidated", { fact_id: "t" }),
    );
    assert.deepEqual(against(scenario, { key: "memory:t" }), ["withdrawn"]);
    assert.equal(read(scenario, "get", { key: "memory:t" }).belief_status, "retracted");
  });

  test("looks through what is over at what rests on it", () => {
    const scenario = world().given(
      fact("base", 1, { id: "base" }),
      named("a", ["base"]),
      named("b", ["a"]),
      event("memory.fact.invalidated", { fact_id: "a" }),
      retract("base"),
    );
    assert.deepEqual(marked(scenario.settle()), ["b"]);
  });

  test("comes to its end where what is over rests on itself", () => {
    const scenario = world().given(
      fact("base", 1, { id: "base" }),
      named("a", ["base", "b"]),
      named("b", ["a"]),
      named("c", ["b"]),
      event("memory.fact.invalidated", { fact_id: "a" }),
      event("memory.fact.invalidated", { fact_id: "b" }),
      retract("base"),
    );
    assert.deepEqual(marked(scenario.settle()), ["c"]);
  });

  test("of what takes the place of another puts that one in doubt again", () => {
    const scenario = world().given(fact("old", 1, { id: "old" }), fact("new", 2, { id: "new" }));
    scenario.given(event("memory.fact.invalidated", { fact_id: "old", replaced_by: "new" }));
    scenario.given(retract("new"));
    assert.deepEqual(marked(scenario.settle()), ["old"]);
  });

  test("of one claim that is repeated finds what cites any of its events", () => {
    const scenario = world().given(
      fact("base", 1, { id: "base1" }),
      named("a", ["base1"]),
      fact("base", 2, { id: "base2" }),
      named("b", ["base2"]),
      named("c", ["base1"]),
    );
    scenario.given(retract("base"));
    assert.deepEqual(marked(scenario.settle()).sort(), ["a", "b", "c"]);
  });

  test("two at once mark each conclusion once, and both come to their end", () => {
    const scenario = world().given(
      fact("x", 1, { id: "x" }),
      fact("y", 1, { id: "y" }),
      named("a", ["x", "y"]),
      named("b", ["a"]),
      named("c", ["y"]),
    );
    scenario.given(retract("x", { id: "gone-x" }), retract("y", { id: "gone-y" }));
    const entries = scenario.settle();
    assert.deepEqual(marked(entries).sort(), ["a", "b", "c"]);
    const ends = envelopesOf(entries).filter(({ type }) => type === "memory.fact.invalidated");
    assert.deepEqual(ends.map(({ id }) => id).sort(), ["gone-x", "gone-y"]);
  });
});

describe("a conclusion", () => {
  function retracted(): World {
    const scenario = world().given(
      fact("base", 1, { id: "base" }),
      named("a", ["base"]),
      named("b", ["a"]),
    );
    scenario.given(retract("base", { id: "gone" })).settle();
    return scenario;
  }

  test("that is said again on new evidence is clean; what was concluded from the old one is not", () => {
    const scenario = retracted().given(fact("n", 1, { id: "n" }));
    scenario.given(fact("a", "a", { id: "a2", ...resting("n") }));
    assert.deepEqual(derived(scenario), []);
    assert.deepEqual(against(scenario, { key: "memory:a" }), []);
    assert.deepEqual(against(scenario, { key: "memory:b" }), ["awaiting_re_evaluation"]);
    scenario.given(named("c", ["a2"]));
    assert.deepEqual(derived(scenario), []);
  });

  test("that is revised by its source is clean, though the revision names it as its cause", () => {
    const scenario = retracted().given(revise("a", "new", { causation_id: "a" }));
    assert.deepEqual(derived(scenario), []);
    assert.deepEqual(against(scenario, { key: "memory:a" }), []);
  });

  test("that comes after the retraction is marked at once, also below what is marked", () => {
    const scenario = retracted();
    scenario.given(named("late", ["base"]));
    const [mark, ...more] = derived(scenario);
    assert.deepEqual(more, []);
    assert.equal(mark?.causation_id, "gone");
    scenario.given(named("later", ["b"]), named("latest", ["late"]));
    assert.deepEqual(marked(derived(scenario)), ["later", "latest"]);
    assert.deepEqual(against(scenario, { key: "memory:latest" }), ["awaiting_re_evaluation"]);
  });

  test("that is said again on the retracted evidence is marked again", () => {
    const scenario = retracted();
    scenario.given(fact("a", "a", { id: "a2", ...resting("base") }));
    assert.deepEqual(marked(derived(scenario)), ["a2"]);
  });

  test("that comes late with others waiting for it takes them along", () => {
    const scenario = world().given(named("leaf", ["mid"]), fact("base", 1, { id: "base" }));
    scenario.given(retract("base")).settle();
    scenario.given(named("mid", ["base"]));
    const entries = scenario.settle();
    assert.equal(entries[0]?.kind, "begun");
    assert.deepEqual(marked(entries), ["leaf", "mid"]);
    assert.equal(scenario.owed(), undefined);
  });

  test("that comes while a walk to what it rests on is under way is not missed", () => {
    const scenario = world().given(fact("base", 1, { id: "base" }));
    for (let at = 0; at < 10; at += 1) scenario.given(named(`a${at}`, ["base"]));
    scenario.given(retract("base"));
    scenario.step();
    scenario.given(named("x", ["a0"]), named("y", ["a9"]), named("z", ["base"]));
    const found = marked(scenario.settle());
    assert.deepEqual(
      [...found].sort(),
      [...found].sort().filter((id, at, all) => all[at - 1] !== id),
    );
    assert.equal(marked(scenario.log).length, 13);
  });

  test("that moves to new evidence while the walk is under way is left alone", () => {
    const scenario = world().given(fact("base", 1, { id: "base" }));
    for (let at = 0; at < 3; at += 1) scenario.given(named(`a${at}`, ["base"]));
    scenario.given(retract("base"));
    scenario.step();
    scenario.given(fact("n", 1, { id: "n" }), fact("a2", "a2", { id: "again", ...resting("n") }));
    scenario.settle();
    assert.deepEqual(marked(scenario.log), ["a0", "a1"]);
  });
});

test("what rests on a late conclusion is not missed while those below it are being marked", () => {
  const scenario = world().given(named("leaf", ["mid"]), fact("base", 1, { id: "base" }));
  scenario.given(retract("base")).settle();
  scenario.given(named("mid", ["base"]));
  scenario.step();
  scenario.step();
  scenario.given(named("x", ["mid"]));
  scenario.settle();
  assert.deepEqual(marked(scenario.log).sort(), ["leaf", "mid", "x"]);
});

test("plans take turns", () => {
  const scenario = world();
  for (const of of ["p", "q"]) {
    scenario.given(fact(of, 1, { id: of }), named(`${of}1`, [of]), named(`${of}2`, [of]));
  }
  scenario.given(retract("p"), retract("q"));
  assert.deepEqual(marked(scenario.settle()), ["p1", "q1", "p2", "q2"]);
});

describe("what nobody has asserted yet", () => {
  test("its retraction marks what cites it, and meets it when it comes", () => {
    const scenario = world().given(named("a", ["unseen"]));
    scenario.given(retract("u", { causation_id: "unseen" }));
    assert.deepEqual(marked(scenario.settle()), ["a"]);
    scenario.given(fact("u", 1, { id: "unseen" }));
    assert.deepEqual(against(scenario, { key: "memory:u" }), ["withdrawn"]);
  });

  test("comes, and what cited it rests on its claim", () => {
    const scenario = world().given(named("a", ["late"]), fact("l", 1, { id: "late" }));
    scenario.given(retract("l"));
    assert.deepEqual(marked(scenario.settle()), ["a"]);
  });
});

test("a plan that cannot be written is given up", () => {
  const scenario = world().given(fact("base", 1, { id: "base" }), named("a", ["base"]));
  scenario.given(retract("base", { id: "gone" }));
  scenario.fail("gone");
  assert.equal(scenario.owed(), undefined);
  assert.deepEqual(against(scenario, { key: "memory:base" }), ["withdrawn"]);
});

test("an id that names a plan under way is not used for anything else", () => {
  const scenario = world().given(fact("base", 1, { id: "base" }), named("a", ["base"]));
  scenario.given(retract("base", { id: "gone" }));
  const envelope = fact("x", 1, { id: "gone" });
  const input = { envelope, tenant: scenario.tenant, source: "agent:a", intake: 99 };
  const context = { now: NOW, deriveId: () => "" };
  const decision = scenario.decider.decide(scenario.state, input, context);
  assert.ok("reject" in decision);
});

for (const shape of ["star", "chain"] as const) {
  test(`100,000 dependents in a ${shape} are marked once each, step by step`, () => {
    const scenario = world().given(fact("base", 1, { id: "d-1" }));
    const count = 100_000;
    for (let at = 0; at < count; at += 1) {
      scenario.judge(named(`d${at}`, [shape === "star" ? "d-1" : `d${at - 1}`]));
    }
    const before = scenario.log.length;
    scenario.given(retract("base"));
    const began = performance.now();
    const entries = scenario.settle();
    assert.equal(new Set(marked(entries)).size, count);
    assert.equal(entries.length, count + 1);
    assert.equal(scenario.log.length, before + count + 2);
    assert.ok(performance.now() - began < 60_000);
  });
}
