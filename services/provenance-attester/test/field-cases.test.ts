/** Cases L of the field reports that are not the subject of another file here (L1: properties; L7: signatures; L11: the envelope's). */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { checkEnvelope, evidenceDisagreementOf } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import { attest, event, fact, resting, type World, world } from "./support.ts";

describe("L3: fields that only a profile asks for", () => {
  const { causation_id: _cause, ...bare } = attest("f");

  test("are missed by nobody without it", () => {
    world().own.when(bare).accepted();
  });

  test("are missed under it", () => {
    world({ defaultProfiles: ["harmovela.runtime-semantics.v1"] })
      .own.when(bare)
      .rejected("invalid_envelope", { missing: ["evidence_chain|causation_id"] });
  });
});

describe("L5: a verifier says what it has checked", () => {
  const LINKS = 1_000;
  const name = (index: number): string => `e${index}`;
  const ids = Array.from({ length: LINKS }, (_, index) => name(index));

  /** A lineage of a thousand events, each resting on the one before; `last` rests on all of them. */
  function lineage(chain: string[]): World {
    const scenario = world();
    for (const [index, id] of ids.entries()) {
      const cause = index === 0 ? {} : { causation_id: name(index - 1) };
      scenario.seen("tasks", event("task.output", { index }, { id, ...cause }));
    }
    return scenario.seen("beliefs", fact("last", { id: "last", ...resting(...chain) }));
  }

  async function answer(scenario: World, id = "last"): Promise<JsonObject> {
    return scenario.read("chain", { event_id: id, verify: true });
  }

  test("all thousand", async () => {
    const { result, checked, links } = await answer(lineage(ids));
    assert.deepEqual([result, checked, links], ["intact", LINKS, LINKS]);
  });

  test("up to the one gap", async () => {
    const {
      result,
      checked,
      first_bad: bad,
    } = await answer(lineage(ids.filter((id) => id !== "e500")));
    assert.deepEqual([result, checked], ["gap", 501]);
    assert.deepEqual(bad, { index: 500, id: "e501", result: "gap", reason: "skipped" });
  });

  test("up to the one that no log shows", async () => {
    const { result, checked } = await answer(lineage([...ids.slice(0, 700), "never"]));
    assert.deepEqual([result, checked], ["unknown_link", 701]);
  });

  test("up to the one whose body was altered", async () => {
    const scenario = lineage(ids);
    const place = "tasks 301";
    const stored = scenario.stored.get(place);
    assert.equal(stored?.id, "e300");
    if (stored !== undefined) scenario.stored.set(place, { ...stored, payload: { index: -1 } });
    const { result, checked, first_bad: bad } = await answer(scenario);
    assert.deepEqual([result, checked], ["altered", 301]);
    assert.equal((bad as JsonObject).id, "e300");
  });

  test("nothing where nothing was named", async () => {
    const { result, checked } = await answer(lineage(ids), "e0");
    assert.deepEqual([result, checked], ["empty", 0]);
  });
});

describe("L9: a chain keeps its order", () => {
  test("its last link is its cause", () => {
    const wrong = { ...attest("b"), evidence_chain: [{ source: "agent:a", id: "a" }] };
    assert.equal(evidenceDisagreementOf(wrong)?.path, "evidence_chain");
  });

  test("ten thousand links are too many", () => {
    const ids = Array.from({ length: 10_000 }, (_, index) => `e${index}`);
    const checked = checkEnvelope({ ...attest("x"), ...resting(...ids) });
    assert.ok(!checked.ok);
    assert.equal(checked.error.code, "invalid_envelope");
  });

  test("no event stands in it twice, nor in its own", () => {
    world()
      .own.when({ ...attest("a"), ...resting("a", "b", "a") })
      .rejected("invalid_envelope", { reason: "duplicate" })
      .when({ ...attest("a"), id: "own", ...resting("own", "a") })
      .rejected("invalid_envelope", { reason: "cycle" });
  });

  test("nothing irreversible is done on what is unverified", async () => {
    const scenario = world().seen("beliefs", fact("f", { id: "f", source_trust: "unverified" }));
    const { may, reasons } = await scenario.read("may", { event_id: "f", action: "irreversible" });
    assert.equal(may, false);
    assert.equal((reasons as JsonObject[])[0]?.reason, "unverified");
  });
});
