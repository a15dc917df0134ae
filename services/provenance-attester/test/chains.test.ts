/** Lineages: what is refused on arrival, and what reads say of those that other services accepted (spec section 8). */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { contentDigest } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import { attest, event, fact, iso, NOW, resting, retract, type World, world } from "./support.ts";

async function result(scenario: World, id: string, more: JsonObject = {}): Promise<string> {
  const view = await scenario.read("chain", { event_id: id, ...more });
  const { reason = "", index = "" } = (view.first_bad ?? {}) as JsonObject;
  return `${view.result} ${view.checked}/${view.links} ${reason} ${index}`.trim();
}

/** c rests on b, which rests on a. */
function three(fields: Record<string, Partial<ReturnType<typeof fact>>> = {}): World {
  return world().seen(
    "beliefs",
    fact("a", { id: "a", ...fields.a }),
    fact("b", { id: "b", ...resting("a"), ...fields.b }),
    fact("c", { id: "c", ...resting("a", "b"), ...fields.c }),
  );
}

describe("a lineage that another service has accepted", () => {
  test("is intact when every link is there, in order, each following from the one before", async () => {
    assert.equal(await result(three(), "c"), "intact 2/2");
    assert.equal(await result(three(), "c", { verify: true }), "intact 2/2");
  });

  test("is empty where nothing is named: nothing was checked", async () => {
    assert.equal(await result(three(), "a"), "empty 0/0");
  });

  test("may be a cause alone", async () => {
    const scenario = three().seen(
      "tasks",
      event("task.output", {}, { id: "t", causation_id: "b" }),
    );
    assert.equal(await result(scenario, "t"), "intact 1/1");
  });

  test("has an unknown link, until a log shows it", async () => {
    const scenario = world().seen("beliefs", fact("c", { id: "c", ...resting("a", "b") }));
    assert.equal(await result(scenario, "c"), "unknown_link 1/2 not_seen 0");
    scenario.seen("tasks", event("task.output", {}, { id: "a" }));
    assert.equal(await result(scenario, "c"), "unknown_link 2/2 not_seen 1");
    scenario.seen("interruptions", event("interruption.saved", {}, { id: "b" }));
    assert.equal(await result(scenario, "c"), "intact 2/2");
  });

  test("has a gap where a link follows from something that the chain leaves out", async () => {
    const scenario = three({ c: resting("a", "b") }).seen(
      "beliefs",
      fact("d", { id: "d", ...resting("a", "c") }),
      fact("e", { id: "e", ...resting("b", "a") }),
    );
    assert.equal(await result(scenario, "d"), "intact 2/2", "c names a too");
    scenario.seen(
      "beliefs",
      fact("x", { id: "x", causation_id: "b" }),
      fact("y", { id: "y", ...resting("a", "x") }),
    );
    assert.equal(await result(scenario, "y"), "gap 2/2 skipped 1");
    assert.equal(await result(scenario, "e"), "intact 2/2", "a names nothing that it follows from");
  });

  test("is altered where a link names another source or another content", async () => {
    const a = fact("a", { id: "a" });
    const scenario = world().seen("beliefs", a);
    const links = (more: JsonObject) => ({
      evidence_chain: [{ source: "agent:a", id: "a", ...more }],
      causation_id: "a",
    });
    scenario.seen(
      "beliefs",
      fact("1", { id: "good", ...links({ digest: contentDigest(a) }) }),
      fact("2", { id: "other", ...links({ digest: contentDigest({ ...a, payload: {} }) }) }),
      fact("3", { id: "who", ...links({ source: "agent:z" }) }),
    );
    assert.equal(await result(scenario, "good"), "intact 1/1");
    assert.equal(await result(scenario, "other"), "altered 1/1 digest 0");
    assert.equal(await result(scenario, "who"), "altered 1/1 source 0");
  });

  test("is altered or has a gap where the log holds something else now, or nothing", async () => {
    const scenario = three();
    const { stored } = scenario;
    const b = stored.get("beliefs 2");
    assert.ok(b !== undefined);
    stored.set("beliefs 2", { ...b, payload: { fact_id: "b", value: 2 } });
    assert.equal(await result(scenario, "c"), "intact 2/2", "only what is known was asked");
    assert.equal(await result(scenario, "c", { verify: true }), "altered 2/2 content 1");
    stored.delete("beliefs 2");
    assert.equal(await result(scenario, "c", { verify: true }), "gap 2/2 lost 1");
    const own = await scenario.read("chain", { event_id: "b", verify: true });
    assert.deepEqual([own.result, own.event], ["gap", { reason: "lost" }]);
  });

  test("is unverifiable where a link was retracted", async () => {
    const scenario = three().seen("beliefs", retract("a", { id: "gone" }));
    assert.equal(await result(scenario, "b"), "unverifiable 1/1 retracted 0");
    assert.equal(await result(scenario, "c"), "unverifiable 1/2 retracted 0");
  });

  test("is unverifiable where times run backwards by more than clocks may differ", async () => {
    const late = (ms: number): World => three({ a: { created_at: iso(NOW + ms) } });
    assert.equal(await result(late(60_000), "c"), "intact 2/2");
    assert.equal(await result(late(60_001), "c"), "unverifiable 2/2 out_of_order 1");
    assert.equal(await result(late(60_000), "b"), "intact 1/1");
    assert.equal(await result(late(60_001), "b"), "unverifiable 1/1 out_of_order 0");
  });

  test("is unverifiable where a link stands twice, or comes back to where it began", async () => {
    const scenario = world().seen(
      "beliefs",
      fact("a", { id: "a", causation_id: "b" }),
      fact("b", { id: "b", ...resting("a") }),
      fact("c", { id: "c", ...resting("a", "a") }),
      fact("d", { id: "d", ...resting("d") }),
    );
    assert.equal(await result(scenario, "b"), "unverifiable 1/1 cycle 0");
    assert.equal(await result(scenario, "c"), "unverifiable 2/2 duplicate 1");
    assert.equal(await result(scenario, "d"), "unverifiable 1/1 cycle 0");
  });

  test("is unverifiable where two logs hold different events under the id of a link", async () => {
    const scenario = three().seen(
      "tasks",
      event("task.output", {}, { id: "a", source: "agent:m" }),
    );
    assert.equal(await result(scenario, "b"), "unverifiable 1/1 ambiguous 0");
  });

  test("is told of what is there; of other events nobody knows", async () => {
    await assert.rejects(three().read("chain", { event_id: "none" }), { code: "invalid_query" });
    await assert.rejects(three().read("chain", {}), { code: "invalid_query" });
    await assert.rejects(three().read("chain", { event_id: "a", verify: 1 }), {
      code: "invalid_query",
    });
  });
});

describe("on arrival", () => {
  const vouch = (...chain: string[]) => ({ ...attest("c"), ...resting(...chain) });

  test("what is not seen yet is no reason to refuse", () => {
    three().own.when(vouch("never", "c")).accepted();
  });

  test("a chain that contradicts itself is refused", () => {
    const scenario = three();
    scenario.own
      .when(vouch("c", "c"))
      .rejected("invalid_envelope", { path: "evidence_chain", reason: "duplicate", index: 1 })
      .when(vouch("c", "c"))
      .rejected("invalid_envelope", { reason: "duplicate" })
      .when({ ...vouch("a", "c"), id: "c2", ...resting("a", "c2") })
      .rejected("invalid_envelope", { reason: "cycle" });
  });

  test("so it is where nothing is known yet", () => {
    world()
      .own.when({ ...attest("c"), ...resting("c", "c") })
      .rejected("invalid_envelope", { reason: "duplicate" })
      .when({ ...attest("c"), id: "self", ...resting("self") })
      .rejected("invalid_envelope", { reason: "cycle" });
  });

  test("a link that is said to be another's is refused", () => {
    const chain = [{ source: "agent:z", id: "c" }];
    three()
      .own.when({ ...attest("c"), evidence_chain: chain })
      .rejected("invalid_envelope", { reason: "source", link: "c" });
  });

  test("times that run backwards are refused in a chain, and not in a cause alone", () => {
    const early = iso(NOW - 60_001);
    three()
      .own.when({ ...vouch("a", "b", "c"), created_at: early })
      .rejected("invalid_envelope", { reason: "out_of_order" })
      .when({ ...attest("c"), created_at: early })
      .accepted();
  });

  test("a way round over others is refused", () => {
    const scenario = world().seen(
      "beliefs",
      fact("a", { id: "a", causation_id: "late" }),
      fact("b", { id: "b", causation_id: "a" }),
      fact("c", { id: "c", causation_id: "b" }),
    );
    scenario.own
      .when(attest("c", { id: "late" }))
      .rejected("invalid_envelope", { reason: "cycle" });
  });
});

describe("what a truncation may be told by", () => {
  const cut = (source: string) =>
    event(
      "provenance.chain.truncated",
      { earliest_available: "b", reason: "r", missing_from: "a" },
      { source, causation_id: "c" },
    );

  test("is the asserting side or an authority", () => {
    const scenario = three();
    scenario.own.when(cut("agent:m")).rejected("unauthorized").when(cut("agent:a")).accepted();
    const other = world({ authorities: ["runtime:store"] });
    other.own.when(cut("runtime:store")).accepted().when(cut("agent:a")).rejected("unauthorized");
  });

  test("is a runtime, where senders are not proved", async () => {
    for (const source of ["runtime:main", "harness:h"]) {
      const scenario = three();
      scenario.own.when(cut(source)).accepted();
      assert.equal((await scenario.read("may", { event_id: "c" })).may, false);
      const proved = world({ authenticated: true }).seen("beliefs", fact("c", { id: "c" }));
      proved.own.when(cut(source)).rejected("unauthorized");
    }
  });

  test("puts the chain in doubt", async () => {
    const scenario = three();
    scenario.own.given(cut("agent:a"));
    assert.equal((await scenario.read("may", { event_id: "c" })).may, false);
    assert.notEqual((await scenario.read("chain", { event_id: "c" })).truncated_by, undefined);
  });
});
