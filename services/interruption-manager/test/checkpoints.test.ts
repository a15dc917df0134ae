/** The registry of what was saved (spec 5.7). */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Envelope } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import {
  acknowledged,
  iso,
  NOW,
  payloadOf,
  requested,
  resumed,
  saved,
  started,
  type World,
  world,
} from "./support.ts";

const digest = (digit: string): string => `sha-256:${digit.repeat(64)}`;

function interrupted(id?: string): World {
  const more = id === undefined ? {} : { id };
  return world()
    .tasks(...started())
    .given(requested({}, more), acknowledged());
}

function again(scenario: World, checkpoint: string, payload: JsonObject = {}): World {
  return scenario.given(
    requested(),
    acknowledged(),
    saved(checkpoint, {}, payload),
    resumed(checkpoint),
  );
}

function idsIn(scenario: World): unknown[] {
  const { checkpoints } = scenario.read("checkpoints", { task_id: "t" });
  return (checkpoints as JsonObject[]).map((one) => one.checkpoint_id);
}

describe("what is saved", () => {
  test("is registered with all that is known of it", () => {
    const payload = { bytes_saved: 12, location: "s3://bucket/x", digest: digest("0") };
    const at = { checkpoint_at: iso(NOW - 500) };
    const scenario = interrupted("i").given(saved("ck", at, payload));
    assert.deepEqual(scenario.read("checkpoint", { task_id: "t", checkpoint_id: "ck" }), {
      checkpoint_id: "ck",
      task_id: "t",
      at: iso(NOW - 500),
      bytes: 12,
      location: "s3://bucket/x",
      digest: digest("0"),
      owner: "agent:w",
      interruption: "i",
      cursor: "HV_LOG_INTERRUPTIONS:3",
    });
  });

  test("without id or time is given both", () => {
    const { checkpoint_id: _id, checkpoint_at: _at, ...bare } = saved();
    const scenario = interrupted().wait(7);
    const { decision } = scenario.judge(bare as Envelope);
    assert.ok("accept" in decision);
    const id = String(decision.verdict?.checkpoint_id);
    assert.match(id, /^ckpt_[0-9A-Z]{26}$/);
    assert.equal(decision.accept.checkpoint_id, id);
    const view = scenario.read("checkpoint", { task_id: "t", checkpoint_id: id });
    assert.equal(view.at, iso(NOW + 7));
    scenario.when(resumed(id)).accepted();
  });

  const places: [string, boolean][] = [
    ["hv-checkpoint:name", true],
    ["hv-checkpoint:", false],
    ["s3://anywhere/at all", true],
    ["/tmp/../x", true],
    ["x".repeat(2_048), true],
    ["x".repeat(2_049), false],
  ];
  for (const [location, isTaken] of places) {
    test(`at ${location.slice(0, 20)} (${location.length}) is ${isTaken ? "taken" : "refused"}`, () => {
      const judged = interrupted().when(saved("ck", {}, { location }));
      if (isTaken) judged.accepted();
      else judged.rejected("invalid_envelope", { path: "payload.location" });
    });
  }

  for (const wrong of [
    "",
    "abc",
    `md5:${"0".repeat(32)}`,
    digest("0").toUpperCase(),
    `${digest("0")}0`,
  ]) {
    test(`with the digest "${wrong.slice(0, 12)}" of ${wrong.length} is ${wrong ? "refused" : "as without"}`, () => {
      const judged = interrupted().when(saved("ck", {}, { digest: wrong }));
      if (wrong === "") judged.accepted();
      else judged.rejected("invalid_envelope", { path: "payload.digest" });
    });
  }
});

describe("an id stands for one content", () => {
  const first = { bytes_saved: 1, location: "l", digest: digest("1") };
  const saves = (payload: JsonObject, scenario = world()) => {
    again(scenario.tasks(...started()), "ck", first);
    return scenario
      .given(requested({}, { id: "i2" }), acknowledged())
      .when(saved("ck", {}, payload));
  };
  for (const [what, payload] of [
    ["bytes", { ...first, bytes_saved: 2 }],
    ["location", { ...first, location: "m" }],
    ["digest", { ...first, digest: digest("2") }],
    ["no digest", { bytes_saved: 1, location: "l" }],
  ] as [string, JsonObject][]) {
    test(`another ${what} under it is refused`, () => {
      const scenario = saves(payload).rejected("task_error", { checkpoint_id: "ck" });
      scenario.when(saved("ck2", {}, payload)).accepted();
    });
  }

  test("the same is saved again, and is the newest one then", () => {
    const scenario = world();
    saves(first, scenario).accepted();
    const view = scenario.read("checkpoint", { task_id: "t", checkpoint_id: "ck" });
    assert.equal(view.interruption, "i2");
    scenario.when(resumed()).accepted();
  });

  test("another task may use the same id", () => {
    const scenario = interrupted()
      .given(saved("ck", {}, first))
      .tasks(...started("o"));
    const other = { task_id: "o" };
    scenario.given(
      requested({}, other),
      acknowledged(other),
      saved("ck", other, { bytes_saved: 2 }),
    );
  });
});

describe("of one task there are at most sixty-four", () => {
  test("the oldest gives way, and cannot be resumed from", () => {
    const scenario = world().tasks(...started());
    for (let index = 0; index < 65; index += 1) again(scenario, `ck${index}`);
    assert.equal(idsIn(scenario).length, 64);
    assert.equal(idsIn(scenario)[0], "ck1");
    scenario.given(requested(), acknowledged(), saved("last"));
    assert.equal(idsIn(scenario)[0], "ck2");
    scenario.when(resumed("ck1")).rejected("checkpoint_missing");
  });

  test("one that is saved again is not the oldest", () => {
    const scenario = world().tasks(...started());
    for (let index = 0; index < 64; index += 1) again(scenario, `ck${index}`);
    again(scenario, "ck0");
    again(scenario, "ck64");
    assert.deepEqual(idsIn(scenario).slice(-2), ["ck0", "ck64"]);
    assert.ok(!idsIn(scenario).includes("ck1"));
  });

  test("refusals name the newest twenty, and how many there are", () => {
    const scenario = world().tasks(...started());
    for (let index = 0; index < 30; index += 1) again(scenario, `ck${index}`);
    scenario.given(requested(), acknowledged(), saved("last"));
    const { entry } = scenario.judge(resumed("none"));
    assert.ok(entry?.kind === "event");
    const { error } = payloadOf(entry.envelope);
    const { checkpoints, checkpoints_count: count } = (error as JsonObject).details as JsonObject;
    assert.deepEqual([(checkpoints as string[]).length, count], [20, 31]);
    assert.equal((checkpoints as string[])[0], "last");
  });
});
