/** Reads: bounded, and the same reasons in each (issue "belief and freshness tracker", reads). */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { HarmovelaError, type JsonObject } from "@harmovela/failure";
import {
  against,
  derived,
  fact,
  iso,
  NOW,
  read,
  resting,
  retract,
  revise,
  type World,
  world,
} from "./support.ts";

const isBadQuestion = (error: unknown): boolean =>
  error instanceof HarmovelaError && error.code === "invalid_query";

function keys(answer: JsonObject, list: string): unknown[] {
  return (answer[list] as JsonObject[]).map(({ key }) => key);
}

/** A claim that is stale, one in dispute, one that rests on what was retracted, one that stands. */
function assorted(): World {
  const scenario = world().given(
    fact("old", 1, { id: "old", stale_after: "PT1S" }),
    fact("disputed", 1, { id: "d1" }),
    fact("disputed", 2, { id: "d2", source: "agent:b" }),
    fact("base", 1, { id: "base" }),
    fact("conclusion", 1, { id: "conclusion", ...resting("base") }),
    fact("good", 1, { id: "good", confidence: 0.5, belief_scope: "observation" }),
  );
  scenario.settle(NOW + 1000);
  scenario.given(retract("base", { id: "gone" }));
  scenario.settle();
  return scenario;
}

describe("why, in one sentence", () => {
  const sentences: [string, RegExp][] = [
    [
      "old",
      /^memory:old, as agent:a said \(old\) at .*, is stale since 2026-11-30T10:00:01\.000Z$/,
    ],
    ["d1", /is contradicted by agent:b \(2\) since 2026-11-30T10:00:01\.000Z \(hv_[0-9A-Z]{26}\)$/],
    ["conclusion", /rests on retracted memory:base through base \(gone\)$/],
    ["base", /was retracted by agent:a \(gone\) at 2026-11-30T10:00:01\.000Z$/],
    ["good", /stands: nothing speaks against it$/],
  ];
  for (const [id, sentence] of sentences) {
    test(id, () => {
      const params = { event_id: id };
      assert.match(String(read(assorted(), "why", params)), sentence);
    });
  }
});

test("a long value is not cut inside a character", () => {
  for (const filling of ["x", "xx"]) {
    const value = filling + "😀".repeat(200);
    const scenario = world().given(
      fact("f", 1, { id: "f1" }),
      fact("f", value, { id: "f2", source: "agent:b" }),
    );
    scenario.settle();
    const said = String(read(scenario, "why", { event_id: "f1" }));
    assert.match(said, /is contradicted by agent:b \("x+(?:😀)+…\)/u);
    assert.doesNotMatch(said, /\p{Surrogate}/u);
  }
});

test("what a claim looks like", () => {
  const view = read(assorted(), "get", { event_id: "good" });
  assert.deepEqual(view, {
    key: "memory:good",
    source: "agent:a",
    event_id: "good",
    seq: 6,
    asserted_at: iso(NOW),
    is_live: true,
    belief_status: "asserted",
    is_stale: false,
    useable: true,
    reasons: [],
    rests_on: [],
    rests_on_count: 0,
    dependents: 0,
    valid_from: iso(NOW),
    value: 1,
    belief_scope: "observation",
    confidence: 0.5,
  });
});

test("what its own source calls retracted, contradicted or unknown is not to be acted on", () => {
  const reasons = {
    retracted: "withdrawn",
    contradicted: "contradicted",
    unknown: "awaiting_re_evaluation",
  };
  for (const [status, reason] of Object.entries(reasons)) {
    const belief_status = status as keyof typeof reasons;
    const scenario = world().given(
      fact("f", 1, { id: "f", belief_status }),
      revise("x", "y", { id: "d" }),
      revise("y", "none", { id: "e", causation_id: "d", belief_status }),
    );
    for (const event_id of ["f", "e"]) {
      assert.equal(read(scenario, "get", { event_id }).belief_status, status);
      assert.deepEqual(against(scenario, { event_id }), [reason]);
    }
  }
});

test("lists by state and prefix, page by page", () => {
  const scenario = assorted();
  const listed = (params: JsonObject): unknown[] => keys(read(scenario, "list", params), "claims");
  assert.deepEqual(listed({ state: "stale" }), ["memory:old"]);
  assert.deepEqual(listed({ state: "contradicted" }), ["memory:disputed", "memory:disputed"]);
  assert.deepEqual(listed({ state: "unknown" }), ["memory:conclusion"]);
  assert.deepEqual(listed({ prefix: "memory:g" }), ["memory:good"]);
  const pages: unknown[][] = [];
  let after: JsonObject = {};
  for (;;) {
    const page = read(scenario, "list", { limit: 2, ...after });
    pages.push(keys(page, "claims"));
    if (page.next === undefined) break;
    after = { after: String(page.next) };
  }
  assert.deepEqual(pages, [
    ["memory:old", "memory:disputed", "memory:disputed"],
    ["memory:conclusion", "memory:good"],
  ]);
});

test("dependents, nearest first, as many as asked for, with the exact count", () => {
  const scenario = world().given(fact("r", 1, { id: "r" }));
  for (let at = 0; at < 50; at += 1) {
    scenario.given(fact(`d${at}`, 1, { id: `d${at}`, ...resting(at < 5 ? "r" : `d${at - 5}`) }));
  }
  const answer = read(scenario, "dependents", { key: "memory:r", limit: 7 });
  assert.equal(answer.total, 50);
  assert.deepEqual(
    (answer.dependents as JsonObject[]).map(({ depth }) => depth),
    [1, 1, 1, 1, 1, 2, 2],
  );
});

test("what is stale is listed once it is told, the longest stale first", () => {
  const scenario = world();
  for (const [at, ms] of [30, 10, 20].entries()) {
    scenario.given(fact(`s${at}`, 1, { valid_until: iso(NOW + ms) }));
  }
  derived(scenario, NOW + 25);
  assert.deepEqual(keys(read(scenario, "stale", { limit: 1 }), "claims"), ["memory:s1"]);
  assert.equal(read(scenario, "stale", {}).total, 2);
});

test("bad questions are refused", () => {
  const scenario = assorted();
  for (const [verb, params] of [
    ["get", {}],
    ["get", { key: 1 }],
    ["get", { key: "memory:none" }],
    ["why", { event_id: "none" }],
    ["subject", {}],
    ["stale", { limit: 0 }],
    ["stale", { limit: 1001 }],
    ["list", { state: "odd" }],
    ["list", { after: "none" }],
    ["dependents", { event_id: "none" }],
  ] as const) {
    assert.throws(
      () => read(scenario, verb, params),
      isBadQuestion,
      `${verb} ${JSON.stringify(params)}`,
    );
  }
});
