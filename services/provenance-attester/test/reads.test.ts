/** What gateways and people ask (spec section 8); L9: nothing irreversible rests on what is unverified. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { JsonObject } from "@harmovela/failure";
import { attest, event, fact, resting, retract, revoke, type World, world } from "./support.ts";

async function against(scenario: World, id: string, action = "irreversible"): Promise<string[]> {
  const { may, reasons } = await scenario.read("may", { event_id: id, action });
  const codes = (reasons as JsonObject[]).map(({ reason }) => String(reason));
  assert.equal(may, action === "reversible" || codes.length === 0);
  return codes;
}

const said = (trust?: "verified" | "unverified" | "attested"): World =>
  world().seen(
    "beliefs",
    fact("f", { id: "f", ...(trust === undefined ? {} : { source_trust: trust }) }),
  );

describe("what is irreversible", () => {
  test("rests on nothing unverified, on nothing of which nothing is said, and on no empty claim", async () => {
    assert.deepEqual(await against(said("unverified"), "f"), ["unverified"]);
    assert.deepEqual(await against(said(), "f"), ["unverified"]);
    assert.deepEqual(await against(said("attested"), "f"), ["unverified"]);
    assert.deepEqual(await against(said("verified"), "f"), []);
  });

  test("may rest on what others vouch for, as long as they do", async () => {
    const scenario = said("unverified");
    scenario.own.given(attest("f", { source: "agent:a" }));
    assert.deepEqual(await against(scenario, "f"), ["unverified"], "its own word");
    scenario.own.given(attest("f", { id: "v" }));
    assert.deepEqual(await against(scenario, "f"), []);
    scenario.own.given(revoke("v"));
    assert.deepEqual(await against(scenario, "f"), ["unverified"]);
  });

  test("may need several of them", async () => {
    const scenario = world({ attestationsNeeded: 2 }).seen("beliefs", fact("f", { id: "f" }));
    scenario.own.given(attest("f"), attest("f"));
    assert.deepEqual(await against(scenario, "f"), ["unverified"]);
    scenario.own.given(attest("f", { source: "agent:w" }));
    assert.deepEqual(await against(scenario, "f"), []);
  });

  test("rests on nothing that was taken back, that is unknown or whose evidence is not intact", async () => {
    const scenario = said("verified").seen(
      "beliefs",
      fact("g", { id: "g", source_trust: "verified", ...resting("never") }),
    );
    assert.deepEqual(await against(scenario, "g"), ["chain"]);
    scenario.seen("beliefs", retract("f"));
    assert.deepEqual(await against(scenario, "f"), ["withdrawn"]);
    assert.deepEqual(await against(scenario, "none"), ["unknown_event"]);
  });

  test("rests on nothing under whose id different events stand", async () => {
    const scenario = said("verified").seen("tasks", event("task.output", {}, { id: "f" }));
    assert.deepEqual(await against(scenario, "f"), ["ambiguous"]);
  });

  test("is what is asked when nothing is said", async () => {
    assert.equal((await said().read("may", { event_id: "f" })).may, false);
    await assert.rejects(said().read("may", { event_id: "f", action: "maybe" }), {
      code: "invalid_query",
    });
  });
});

test("what can be undone may be done, and the answer says what speaks against it", async () => {
  assert.deepEqual(await against(said("unverified"), "f", "reversible"), ["unverified"]);
});

describe("a graph", () => {
  const scenario = (): World =>
    world().seen(
      "beliefs",
      fact("a", { id: "a" }),
      fact("b", { id: "b", causation_id: "a" }),
      fact("c", { id: "c", ...resting("a", "b") }),
      fact("d", { id: "d", ...resting("c", "never") }),
    );
  const ids = (graph: JsonObject): unknown[] => (graph.nodes as JsonObject[]).map(({ id }) => id);

  test("holds each event once, what is near first, and what is not known as such", async () => {
    const graph = await scenario().read("graph", { event_id: "d" });
    assert.deepEqual(ids(graph), ["d", "c", "never", "a", "b"]);
    assert.equal((graph.nodes as JsonObject[])[2]?.is_known, false);
    assert.deepEqual(
      (graph.edges as JsonObject[]).map(({ from, to }) => `${from} ${to}`),
      ["d c", "d never", "c a", "c b", "b a"],
    );
    assert.equal(graph.is_cut, false);
  });

  test("ends where it is told to, and says so", async () => {
    const near = await scenario().read("graph", { event_id: "d", depth: 1 });
    assert.deepEqual(ids(near), ["d", "c", "never"]);
    assert.equal(near.is_cut, true);
    const few = await scenario().read("graph", { event_id: "d", limit: 2 });
    assert.deepEqual(ids(few), ["d", "c"]);
    assert.equal(few.is_cut, true);
    const bads: JsonObject[] = [{ depth: 0 }, { depth: 65 }, { limit: 1_001 }, { limit: 1.5 }];
    for (const bad of bads) {
      await assert.rejects(scenario().read("graph", { event_id: "d", ...bad }), {
        code: "invalid_query",
      });
    }
  });

  test("ends where a lineage comes back", async () => {
    const round = world().seen(
      "beliefs",
      fact("a", { id: "a", causation_id: "b" }),
      fact("b", { id: "b", causation_id: "a" }),
    );
    assert.deepEqual(ids(await round.read("graph", { event_id: "a" })), ["a", "b"]);
  });

  test("shows who vouches for what, and what its chain is worth", async () => {
    const vouched = scenario();
    vouched.own.given(attest("c", { id: "v" }));
    const { nodes } = await vouched.read("graph", { event_id: "c", depth: 1 });
    const [root] = nodes as JsonObject[];
    assert.equal(root?.attestation_count, 1);
    assert.deepEqual(
      ((root?.attestations ?? []) as JsonObject[]).map(({ event_id: id }) => id),
      ["v"],
    );
    assert.deepEqual(root?.chain, { result: "intact", links: 2, checked: 2 });
  });
});
