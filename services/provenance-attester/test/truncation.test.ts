/** Evidence that went with its retention: every live assertion that rests on it is told of, once (spec section 8). */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { deriveId } from "@harmovela/envelope";
import {
  attest,
  event,
  fact,
  NOW,
  payloadOf,
  resting,
  retract,
  SERVICE,
  type World,
  world,
} from "./support.ts";

/** What is told of, by assertion. */
function told(scenario: World): string[] {
  return scenario.derived().map((said) => {
    assert.equal(said.type, "provenance.chain.truncated");
    assert.equal(said.source, SERVICE);
    return String(said.causation_id);
  });
}

function resting3(): World {
  return world().seen(
    "beliefs",
    fact("a", { id: "a" }),
    fact("b", { id: "b" }),
    fact("c", { id: "c", ...resting("a", "b") }),
    fact("d", { id: "d", ...resting("b") }),
  );
}

test("what rests on what is gone is told of, with what is missing and what is left", () => {
  const scenario = resting3().trimmed({ beliefs: 2 });
  const [said, ...more] = scenario.derived();
  assert.deepEqual(more, []);
  assert.equal(said?.type, "provenance.chain.truncated");
  assert.equal(said?.causation_id, "c");
  assert.equal(said?.id, deriveId("acme", "c", "truncated", NOW));
  const payload = payloadOf(said);
  assert.equal(payload.missing_from, "a");
  assert.equal(payload.earliest_available, "b");
  assert.match(String(payload.reason), /the log of beliefs begins with entry 2/);
});

test("each once, also when more of its evidence goes", () => {
  const scenario = resting3().trimmed({ beliefs: 2 });
  assert.deepEqual(told(scenario), ["c"]);
  scenario.trimmed({ beliefs: 3 });
  assert.deepEqual(told(scenario), ["d"]);
  scenario.trimmed({ beliefs: 100 });
  assert.deepEqual(told(scenario), []);
});

test("the farthest link that is missing is named, and the oldest one that is left", () => {
  const scenario = resting3().trimmed({ beliefs: 3 });
  const said = scenario.derived();
  const byAssertion = new Map(said.map((one) => [one.causation_id, payloadOf(one)]));
  assert.deepEqual(byAssertion.get("c")?.missing_from, "a");
  assert.deepEqual(byAssertion.get("c")?.earliest_available, "c", "nothing but itself is left");
  assert.deepEqual(byAssertion.get("d")?.missing_from, "b");
});

test("what does not live is not told of", () => {
  const scenario = resting3().seen(
    "beliefs",
    retract("c", { id: "gone" }),
    fact("d", { id: "d2" }),
  );
  assert.deepEqual(told(scenario.trimmed({ beliefs: 3 })), []);
});

test("what is retracted by a plan does not live from its beginning on", () => {
  const scenario = resting3();
  scenario.entry("beliefs", { kind: "begun", envelope: retract("c", { id: "gone" }) });
  assert.deepEqual(told(scenario.trimmed({ beliefs: 2 })), []);
});

test("what is said anew while a retraction is under way lives on after its end", () => {
  const scenario = resting3();
  const gone = retract("c", { id: "gone" });
  scenario.entry("beliefs", { kind: "begun", envelope: gone });
  scenario.seen("beliefs", fact("c", { id: "c2", ...resting("a") }));
  scenario.entry("beliefs", { kind: "event", envelope: gone, cause: { owed: "gone" } });
  assert.deepEqual(told(scenario.trimmed({ beliefs: 2 })), ["c2"]);
});

test("only what stands in the log that was trimmed is gone", () => {
  const scenario = world()
    .seen("tasks", event("task.output", {}, { id: "t" }))
    .seen("beliefs", fact("a", { id: "a", ...resting("t") }));
  assert.deepEqual(told(scenario.trimmed({ beliefs: 1, interruptions: 50 })), []);
  assert.deepEqual(told(scenario.trimmed({ tasks: 2 })), ["a"]);
});

test("what cites what is gone already is told of at once", () => {
  const scenario = world()
    .seen("beliefs", fact("a", { id: "a" }))
    .trimmed({ beliefs: 2 });
  assert.deepEqual(told(scenario), []);
  scenario.seen("beliefs", fact("b", { id: "b", ...resting("a") }));
  assert.deepEqual(told(scenario), ["b"]);
});

test("an attestation of the own log may be evidence too", () => {
  const scenario = world().seen("beliefs", fact("a", { id: "a" }));
  scenario.own.given(attest("a", { id: "v" }));
  scenario.seen("beliefs", fact("b", { id: "b", ...resting("v") }));
  assert.deepEqual(told(scenario.trimmed({ provenance: 2 })), ["b"]);
});

test("a log that is told of with less than is known changes nothing", () => {
  const scenario = resting3().trimmed({ beliefs: 3 });
  assert.deepEqual(told(scenario).sort(), ["c", "d"]);
  scenario.trimmed({ beliefs: 2 });
  assert.deepEqual(scenario.own.decider.firstKnown?.(scenario.state), { beliefs: 3 });
});

test("what cannot be written is given up, and the next one follows", () => {
  const scenario = resting3().trimmed({ beliefs: 3 });
  const owed = scenario.own.owed();
  assert.ok(owed !== undefined && "event" in owed);
  scenario.own.fail(owed.event.id);
  assert.equal(told(scenario).length, 1);
});

test("the tenant is named where the assertion names it", () => {
  const scenario = world().seen(
    "beliefs",
    fact("a", { id: "a" }),
    fact("b", { id: "b", tenant_id: "acme", ...resting("a") }),
  );
  const [said] = scenario.trimmed({ beliefs: 2 }).derived();
  assert.equal(said?.tenant_id, "acme");
});

describe("a lineage whose beginning is gone", () => {
  test("has a gap, and says by which event that was told", async () => {
    const scenario = resting3().trimmed({ beliefs: 2 });
    const [said] = scenario.derived();
    const view = await scenario.read("chain", { event_id: "c" });
    assert.equal(view.result, "gap");
    assert.equal(view.truncated_by, said?.id);
    assert.deepEqual(view.first_bad, { index: 0, id: "a", result: "gap", reason: "truncated" });
  });
});

test("ten thousand assertions on one lost event are worked off one by one", () => {
  const scenario = world().seen("beliefs", fact("a", { id: "a" }));
  for (let index = 0; index < 10_000; index += 1) {
    scenario.seen("beliefs", fact(`n${index}`, { id: `n${index}`, ...resting("a") }));
  }
  scenario.trimmed({ beliefs: 2 });
  assert.equal(new Set(told(scenario)).size, 10_000);
});
