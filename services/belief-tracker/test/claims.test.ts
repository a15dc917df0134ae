/** Claims, conflicts and their end (spec 6.1). */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Envelope } from "@harmovela/envelope";
import type { JsonObject, JsonValue } from "@harmovela/failure";
import {
  against,
  derived,
  event,
  fact,
  payloadOf,
  read,
  retract,
  revise,
  world,
} from "./support.ts";

const KEY = "memory:t";
const byB = { source: "agent:b" };

function conflicts(events: readonly Envelope[]): Envelope[] {
  return events.filter(({ type }) => type === "belief.conflict.detected");
}

describe("who says what", () => {
  test("the same source again is an update; another one with the same value agrees", () => {
    const scenario = world().given(fact("t", 1), fact("t", 2), fact("t", 2, byB));
    assert.deepEqual(derived(scenario), []);
    const { claims } = read(scenario, "subject", { key: KEY });
    assert.deepEqual(
      (claims as JsonObject[]).map(({ source, value }) => [source, value]),
      [
        ["agent:a", 2],
        ["agent:b", 2],
      ],
    );
    assert.deepEqual(against(scenario, { key: KEY }), []);
  });

  const same: [JsonValue, JsonValue][] = [
    [
      { a: 1, b: [1, { c: null }] },
      { b: [1, { c: null }], a: 1 },
    ],
    [0, -0],
    ["x", "x"],
  ];
  for (const [one, other] of same) {
    test(`${JSON.stringify(one)} and ${JSON.stringify(other)} are one value`, () => {
      assert.deepEqual(derived(world().given(fact("t", one), fact("t", other, byB))), []);
    });
  }

  const different: [JsonValue, JsonValue][] = [
    [1, "1"],
    [
      [1, 2],
      [2, 1],
    ],
    [{ a: 1 }, { a: 1, b: null }],
    [null, false],
  ];
  for (const [one, other] of different) {
    test(`${JSON.stringify(one)} and ${JSON.stringify(other)} contradict each other`, () => {
      assert.equal(
        conflicts(derived(world().given(fact("t", one), fact("t", other, byB)))).length,
        1,
      );
    });
  }

  test("other types of a subject: context, snapshots, revisions of an event", () => {
    const scenario = world().given(
      event("context.updated", { context_key: "k", new_value: 1 }),
      event("context.snapshot.ready", { snapshot_id: "s", context_key: "k", data: 2 }, byB),
      revise("x", "y", { causation_id: "evt_elsewhere" }),
      revise("x", "z", { causation_id: "evt_elsewhere", ...byB }),
    );
    assert.deepEqual(
      derived(scenario).map((envelope) => payloadOf(envelope).subject),
      ["context:k", "belief:evt_elsewhere"],
    );
  });

  test("an update without a value keeps it; a value that is told as a difference is not known", () => {
    const scenario = world().given(
      fact("t", 1),
      event("memory.fact.updated", { fact_id: "t", reason: "seen again" }),
      event("context.updated", { context_key: "k", new_value: 1 }),
      event("context.updated", { context_key: "k", diff: "+1" }),
    );
    assert.equal(read(scenario, "get", { key: KEY }).value, 1);
    assert.equal("value" in read(scenario, "get", { key: "context:k" }), false);
  });

  test("too many sources for one subject are refused", () => {
    const scenario = world({ sourcesMax: 2 }).given(fact("t", 1), fact("t", 1, byB));
    scenario.when(fact("t", 1, { source: "agent:c" })).rejected("protocol_error");
    scenario.when(fact("t", 3)).accepted();
  });

  test("a subject that is too long to be repeated is refused", () => {
    world()
      .when(fact("x".repeat(2000), 1))
      .rejected("invalid_envelope");
  });
});

describe("a conflict", () => {
  test("lists the claims with their confidence, once; names its cause", () => {
    const second = fact("t", "25C", { ...byB, confidence: 0.85 });
    const first = fact("t", "22C", { confidence: 0.9 });
    const scenario = world().given(first, second);
    const [conflict, ...more] = derived(scenario);
    assert.deepEqual(more, []);
    assert.equal(conflict?.type, "belief.conflict.detected");
    assert.equal(conflict?.belief_status, "contradicted");
    assert.equal(conflict?.causation_id, second.id);
    assert.deepEqual(payloadOf(conflict), {
      subject: KEY,
      claims: [
        { source: "agent:a", value: "22C", confidence: 0.9, event_id: first.id },
        { source: "agent:b", value: "25C", confidence: 0.85, event_id: second.id },
      ],
      claim_count: 2,
    });
    // Whatever the confidence, neither may be acted on.
    assert.deepEqual(against(scenario, { key: KEY }), ["contradicted"]);
    scenario.given(fact("t", "22C"));
    assert.deepEqual(derived(scenario), [], "said again, and no other conflict");
  });

  test("with another claim in it is another conflict; with one less it is not", () => {
    const scenario = world().given(fact("t", 1), fact("t", 2, byB));
    derived(scenario);
    const [more] = derived(scenario.given(fact("t", 3, { source: "agent:c" })));
    assert.equal(payloadOf(more).claim_count, 3);
    const gone = retract("t", { source: "agent:c" });
    assert.deepEqual(derived(scenario.given(gone)), []);
    assert.deepEqual(against(scenario, { key: KEY }), ["contradicted"]);
  });

  test("is bounded, with a count; a long value is cut", () => {
    const scenario = world();
    for (let at = 0; at < 50; at += 1) {
      scenario.given(fact("t", `${at} ${"x".repeat(3000)}`, { source: `agent:${at}` }));
    }
    const last = derived(scenario).at(-1);
    const { claims, claim_count: count } = payloadOf(last);
    assert.equal((claims as JsonObject[]).length, 20);
    assert.equal(count, 50);
    assert.equal((claims as JsonObject[])[0]?.is_cut, true);
    assert.ok(JSON.stringify(last).length < 100_000);
  });

  const noOverlap = [
    [{ valid_until: "2026-11-30T10:05:00Z" }, { valid_from: "2026-11-30T10:05:00Z" }],
    [{ stale_after: "PT5M" }, { created_at: "2026-11-30T10:05:00Z" }],
    [{ stale_after: "PT0S" }, {}],
  ] as const;
  for (const [one, other] of noOverlap) {
    test(`is none where ${JSON.stringify(one)} and ${JSON.stringify(other)} do not overlap`, () => {
      const scenario = world().given(fact("t", 1, one), fact("t", 2, { ...byB, ...other }));
      assert.deepEqual(conflicts(derived(scenario)), []);
    });
  }

  test("is one where they overlap by a millisecond", () => {
    const one = { valid_until: "2026-11-30T10:05:00.001Z" };
    const other = { ...byB, valid_from: "2026-11-30T10:05:00Z" };
    assert.equal(
      conflicts(derived(world().given(fact("t", 1, one), fact("t", 2, other)))).length,
      1,
    );
  });
});

describe("the end of a conflict", () => {
  function disputed() {
    const first = fact("t", 1);
    const second = fact("t", 2, byB);
    const scenario = world().given(first, second);
    const [conflict] = derived(scenario);
    assert.ok(conflict);
    return { scenario, first, second, conflict };
  }

  test("all but one withdrawn: a revision of the service says so", () => {
    const { scenario, conflict } = disputed();
    const gone = retract("t", byB);
    const [revised, ...more] = derived(scenario.given(gone));
    assert.deepEqual(more, []);
    assert.equal(revised?.type, "belief.revised");
    assert.equal(revised?.causation_id, conflict.id);
    assert.equal(revised?.correlation_id, gone.id);
    assert.equal(payloadOf(revised).corrected, "1");
    assert.equal(payloadOf(revised).previous, "[1,2]");
    assert.deepEqual(against(scenario, { key: KEY }), []);
    const { resolved } = read(scenario, "subject", { key: KEY });
    assert.equal((resolved as JsonObject).by, gone.id);
  });

  test("one gives in by saying the other's value", () => {
    const { scenario } = disputed();
    const [revised] = derived(scenario.given(fact("t", 2)));
    assert.equal(payloadOf(revised).corrected, "2");
    assert.deepEqual(against(scenario, { key: KEY }), []);
  });

  test("one gives in by a revision of its own claim, which says it all", () => {
    const { scenario, first } = disputed();
    scenario.given(revise("1", "2", { causation_id: first.id }));
    assert.deepEqual(derived(scenario), []);
    assert.deepEqual(against(scenario, { key: KEY }), []);
    assert.equal(read(scenario, "get", { key: KEY, source: "agent:a" }).value, 2);
  });

  test("a third value is another conflict", () => {
    const { scenario, first } = disputed();
    const [again] = derived(scenario.given(revise("1", "3", { causation_id: first.id })));
    assert.equal(again?.type, "belief.conflict.detected");
  });

  test("a revision that names the conflict decides it: who says otherwise is overruled until it speaks again", () => {
    const { scenario, conflict } = disputed();
    const decided = revise("2", "1", { source: "agent:boss", causation_id: conflict.id });
    scenario.given(decided);
    assert.deepEqual(derived(scenario), []);
    assert.deepEqual(against(scenario, { key: KEY, source: "agent:a" }), []);
    assert.deepEqual(against(scenario, { key: KEY, source: "agent:b" }), ["revised"]);
    assert.deepEqual(against(scenario, { key: KEY }), []);
    const [again] = derived(scenario.given(fact("t", 2, byB)));
    assert.equal(again?.type, "belief.conflict.detected");
  });

  test("a revision that names a contested claim decides it too", () => {
    const { scenario, second } = disputed();
    scenario.given(revise("2", "1", { source: "agent:boss", causation_id: second.id }));
    assert.deepEqual(against(scenario, { key: KEY, source: "agent:b" }), ["revised"]);
  });

  test("the same dispute after its end is another conflict", () => {
    const { scenario } = disputed();
    derived(scenario.given(fact("t", 2)));
    const [again] = derived(scenario.given(fact("t", 1)));
    assert.equal(again?.type, "belief.conflict.detected");
  });

  test("nothing is left: corrected is null", () => {
    const { scenario } = disputed();
    derived(
      scenario.given(event("memory.fact.invalidated", { fact_id: "t" }, { source: "memory:m" })),
    );
    assert.deepEqual(against(scenario, { key: KEY }), ["withdrawn"]);
  });
});

describe("a conflict that somebody else reports", () => {
  const reported = event("belief.conflict.detected", {
    subject: KEY,
    claims: [
      { source: "x", value: 1 },
      { source: "y", value: 2 },
    ],
  });

  test("holds everybody back until a revision names it", () => {
    const scenario = world().given(fact("t", 1), reported);
    assert.deepEqual(against(scenario, { key: KEY }), ["contradicted"]);
    scenario.given(revise("x", "y", { source: "agent:boss", causation_id: reported.id }));
    assert.deepEqual(against(scenario, { key: KEY }), []);
  });
});

describe("who may take a claim back", () => {
  test("its source and the system of its subject; nobody else", () => {
    const scenario = world().given(fact("t", 1));
    scenario.when(retract("t", byB)).rejected("unauthorized");
    scenario.when(retract("t", { source: "context:main" })).rejected("unauthorized");
    scenario.when(retract("t", { source: "memory:main" })).accepted();
    assert.deepEqual(against(scenario, { key: KEY }), ["withdrawn"]);
  });

  test("each takes back its own; the system without one takes back what it names, else all", () => {
    const first = fact("t", 1);
    const scenario = world().given(first, fact("t", 1, byB));
    scenario.given(retract("t", { source: "memory:main", causation_id: first.id }));
    assert.deepEqual(against(scenario, { key: KEY, source: "agent:a" }), ["withdrawn"]);
    assert.deepEqual(against(scenario, { key: KEY, source: "agent:b" }), []);
    scenario.given(retract("t", byB));
    assert.deepEqual(against(scenario, { key: KEY, source: "agent:b" }), ["withdrawn"]);
  });

  test("what nobody has claimed may be invalidated by anybody", () => {
    world().given(event("context.invalidated", { context_key: "k" }, byB));
  });

  test("said again after that it is another claim", () => {
    const scenario = world().given(fact("t", 1), retract("t"), fact("t", 1));
    assert.deepEqual(against(scenario, { key: KEY }), []);
  });
});

describe("what else speaks against acting on it", () => {
  test("an unverified source, whatever its confidence; a claim that is not valid yet; nothing at all", () => {
    const scenario = world().given(
      fact("t", 1, { source_trust: "unverified", confidence: 0.99 }),
      fact("later", 1, { valid_from: "2026-12-01T00:00:00Z" }),
      fact("low", 1, { confidence: 0.01 }),
    );
    assert.deepEqual(against(scenario, { key: KEY }), ["unverified"]);
    assert.deepEqual(against(scenario, { key: "memory:later" }), ["not_yet_valid"]);
    assert.deepEqual(against(scenario, { key: "memory:low" }), []);
    assert.deepEqual(against(scenario, { key: "memory:none" }), ["unknown"]);
  });
});
