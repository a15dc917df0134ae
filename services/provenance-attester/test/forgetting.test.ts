/** What is remembered for how long (architecture, section 6); P5: memory has an end, and what goes with it is told of. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  attest,
  event,
  fact,
  NOW,
  payloadOf,
  resting,
  retract,
  revoke,
  type World,
  world,
} from "./support.ts";

const DAY = 86_400_000;
const RETENTION = 30 * DAY;

/** Entries of the own log, so that what is old goes. */
function pass(scenario: World, at: number): World {
  scenario.own.at(at);
  return scenario.trimmed({});
}

const knows = ({ state }: World, id: string): boolean =>
  state.tenants.get("acme")?.events.has(id) === true;

describe("an event on which nothing rests", () => {
  test("is forgotten when its retention has passed, not a millisecond before", () => {
    const scenario = world().seen("tasks", event("task.output", {}, { id: "t" }));
    assert.ok(knows(pass(scenario, NOW + RETENTION), "t"));
    assert.ok(!knows(pass(scenario, NOW + RETENTION + 1), "t"));
    assert.equal(scenario.state.tenants.size, 0);
    assert.equal(scenario.state.weight, 0);
  });

  test("goes with who vouches for it", () => {
    const scenario = world().seen("tasks", event("task.output", {}, { id: "t" }));
    scenario.own.given(attest("t", { id: "a" }));
    pass(scenario, NOW + RETENTION + 1);
    scenario.own.when(revoke("a")).rejected("protocol_error", { reason: "unknown_attestation" });
    assert.equal(scenario.state.tenants.size, 0);
  });
});

test("what lives and what it rests on is remembered, and goes after its end", () => {
  const scenario = world().seen(
    "beliefs",
    fact("a", { id: "a" }),
    retract("a"),
    fact("b", { id: "b", ...resting("a") }),
  );
  pass(scenario, NOW + 10 * RETENTION);
  assert.ok(knows(scenario, "a") && knows(scenario, "b"));
  scenario.seen("beliefs", retract("b"));
  pass(scenario, NOW + 11 * RETENTION);
  assert.ok(knows(scenario, "a") && knows(scenario, "b"));
  pass(scenario, NOW + 11 * RETENTION + 1);
  assert.ok(!knows(scenario, "a") && !knows(scenario, "b"));
});

test("what was taken back and never came is forgotten too", () => {
  const scenario = world().seen("beliefs", retract("x", { id: "r", causation_id: "never" }));
  assert.equal(scenario.state.tenants.get("acme")?.missing.size, 1);
  pass(scenario, NOW + RETENTION + 1);
  assert.equal(scenario.state.tenants.size, 0);
});

test("one entry lets go of a bounded number beyond what came since the last", () => {
  const scenario = world();
  for (let index = 0; index < 200; index += 1) scenario.seen("tasks", event("task.output"));
  pass(scenario, NOW);
  pass(scenario, NOW + RETENTION + 1);
  assert.equal(scenario.state.over.size, 200 - 64);
  for (let index = 0; index < 3; index += 1) pass(scenario, NOW + RETENTION + 1);
  assert.equal(scenario.state.over.size, 0);
});

describe("when too much is remembered", () => {
  test("the oldest goes before its time", () => {
    const scenario = world({ rememberedMax: 3 });
    for (const id of ["1", "2", "3", "4", "5"]) {
      scenario.seen("tasks", event("task.output", {}, { id }));
      scenario.own.wait(1);
    }
    scenario.trimmed({});
    assert.deepEqual(
      [...(scenario.state.tenants.get("acme")?.events.keys() ?? [])],
      ["3", "4", "5"],
    );
  });

  test("a tenant that says a lot pushes out its own, and nothing of another one", () => {
    const scenario = world({ rememberedMax: 6 });
    const quiet = ["1", "2"].map((id) => event("task.output", {}, { id }));
    scenario.seenOf("quiet", "tasks", ...quiet);
    for (let index = 0; index < 20; index += 1) {
      scenario.own.wait(1);
      scenario.seen("tasks", event("task.output", {}, { id: `loud_${index}` }));
    }
    scenario.trimmed({});
    const eventsOf = (tenant: string) => [
      ...(scenario.state.tenants.get(tenant)?.events.keys() ?? []),
    ];
    assert.deepEqual(eventsOf("quiet"), ["1", "2"]);
    assert.deepEqual(eventsOf("acme"), ["loud_16", "loud_17", "loud_18", "loud_19"]);
    assert.equal(scenario.state.weight, 6);
  });

  test("of equal tenants the first by name gives way, in whatever order they were heard", () => {
    const left = [
      ["b", "a"],
      ["a", "b"],
    ].map((order) => {
      const scenario = world({ rememberedMax: 3 });
      for (const tenant of order)
        scenario.seenOf(
          tenant,
          "tasks",
          ...["1", "2"].map((id) => event("task.output", {}, { id })),
        );
      scenario.trimmed({});
      return ["a", "b"].map((name) => scenario.state.tenants.get(name)?.events.size);
    });
    assert.deepEqual(left, [
      [1, 2],
      [1, 2],
    ]);
  });

  test("what lives for longer than the retention is its tenant's too: it gives way, and not what others said", () => {
    const scenario = world({ rememberedMax: 4 });
    for (const id of ["1", "2", "3", "4"]) scenario.seen("beliefs", fact(id, { id }));
    pass(scenario, NOW + RETENTION + 1);
    assert.equal(scenario.state.over.size, 0);
    scenario.seenOf("quiet", "tasks", event("task.output", {}, { id: "young" }));
    scenario.trimmed({});
    assert.deepEqual([...(scenario.state.tenants.get("quiet")?.events.keys() ?? [])], ["young"]);
    assert.equal(scenario.state.tenants.get("acme")?.events.size, 3);
    assert.equal(scenario.state.weight, 4);
  });

  test("links count", () => {
    const scenario = world({ rememberedMax: 3 }).seen(
      "tasks",
      event("task.output", {}, { id: "1" }),
    );
    scenario.own.wait(1);
    scenario.seen("tasks", event("task.output", {}, { id: "2", ...resting("x", "y") }));
    scenario.trimmed({});
    assert.ok(!knows(scenario, "1") && knows(scenario, "2"));
  });

  test("P5: what lives and rests on what goes is told of first, and pushes nothing else out", () => {
    const scenario = world({ rememberedMax: 4 }).seen(
      "tasks",
      event("task.output", {}, { id: "t" }),
    );
    scenario.own.wait(1);
    scenario.seen("beliefs", fact("b", { id: "b", causation_id: "t" }));
    scenario.own.wait(1);
    for (const id of ["1", "2"]) scenario.seen("tasks", event("task.output", {}, { id }));
    scenario.trimmed({});
    assert.ok(knows(scenario, "t"));
    const [said, ...more] = scenario.derived();
    assert.deepEqual(more, []);
    assert.equal(said?.type, "provenance.chain.truncated");
    assert.equal(said?.causation_id, "b");
    assert.equal(payloadOf(said).missing_from, "t");
    assert.ok(!knows(scenario, "t"));
    assert.ok(knows(scenario, "1") && knows(scenario, "2"));
  });

  test("what rested on it and ended meanwhile is not told of", () => {
    const scenario = world({ rememberedMax: 3 }).seen(
      "tasks",
      event("task.output", {}, { id: "t" }),
    );
    scenario.own.wait(1);
    scenario.seen("beliefs", fact("b", { id: "b", causation_id: "t" }));
    scenario.own.wait(1);
    scenario.seen("tasks", event("task.output", {}, { id: "1" }));
    scenario.trimmed({});
    assert.equal(scenario.state.leaving.size, 1);
    scenario.seen("beliefs", retract("b"));
    assert.deepEqual(scenario.derived(), []);
    pass(scenario, NOW + 2 * RETENTION);
    assert.equal(scenario.state.leaving.size, 0);
    assert.equal(scenario.state.weight, 0);
  });
});
