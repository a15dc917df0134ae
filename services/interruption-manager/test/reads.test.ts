/** Answers about interruptions, checkpoints and compensations. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { HarmovelaError, type JsonObject } from "@harmovela/failure";
import type { MANAGER_READS } from "../src/reads.ts";
import {
  acknowledged,
  cancelled,
  compensated,
  compensation,
  iso,
  NOW,
  requested,
  resumed,
  saved,
  started,
  task,
  type World,
  world,
} from "./support.ts";

function refused(scenario: World, verb: keyof typeof MANAGER_READS, params: JsonObject): string {
  try {
    scenario.read(verb, params);
  } catch (error) {
    if (error instanceof HarmovelaError) return error.code;
    throw error;
  }
  return "answered";
}

const T = { task_id: "t" };

test("interruption: the open one with everything that is known of it", () => {
  const scenario = world().tasks(...started());
  assert.deepEqual(scenario.read("interruption", T), {
    task_id: "t",
    is_stopped: false,
    past: [],
    checkpoints: 0,
  });
  scenario.given(requested({ grace_period_ms: 100, reason: "why not" }, { id: "i" }));
  const open = {
    id: "i",
    task_id: "t",
    policy: "save_and_stop",
    state: "requested",
    is_stopped: false,
    requested_by: "agent:s",
    at: iso(NOW),
    reason: "why not",
    grace_period_ms: 100,
    due: iso(NOW + 100),
  };
  assert.deepEqual(scenario.read("interruption", T).open, open);
  scenario.wait(10).given(acknowledged()).wait(10).given(saved());
  const view = scenario.read("interruption", T);
  assert.deepEqual(view.open, {
    ...open,
    state: "saved",
    is_stopped: true,
    acknowledged_at: iso(NOW + 10),
    checkpoint_id: "ck",
    saved_at: iso(NOW + 20),
  });
  assert.equal((view.checkpoint as JsonObject).checkpoint_id, "ck");
  assert.equal(view.is_stopped, true);
});

test("interruption: the last ones that are over, how they ended, and what is asked for", () => {
  const scenario = world().tasks(...started());
  scenario.given(requested(), acknowledged(), saved(), resumed("ck", { id: "r" }));
  scenario.given(requested(), acknowledged(), cancelled({ id: "c" }));
  const { past, open, asked } = scenario.read("interruption", T);
  assert.equal(open, undefined);
  assert.deepEqual(
    (past as JsonObject[]).map((one) => one.closed),
    [
      {
        by: "agent:s",
        type: "interruption.resumed",
        event_id: "r",
        at: iso(NOW),
        checkpoint_id: "ck",
      },
      { by: "agent:s", type: "interruption.cancelled", event_id: "c", at: iso(NOW) },
    ],
  );
  const { id } = scenario.request();
  assert.deepEqual(asked, { type: "task.cancelled", event_id: id, attempt: 1 });
  scenario.tasks(task("cancelled", "t", { id: "end" }));
  assert.deepEqual(scenario.read("interruption", T).ended, {
    event_id: "end",
    type: "task.cancelled",
  });
});

test("interruption: what followed from a grace that passed says so", () => {
  const scenario = world()
    .tasks(...started())
    .given(requested());
  scenario.said(NOW + 5_000);
  const { open } = scenario.read("interruption", T);
  const { expired, policy, is_stopped } = open as JsonObject;
  assert.deepEqual([expired, policy, is_stopped], [true, "force_stop", true]);
});

describe("interruptions", () => {
  const many = (): World => {
    const scenario = world();
    for (const id of ["a", "b", "c", "d", "e"]) {
      scenario.tasks(...started(id)).given(requested({}, { task_id: id }));
    }
    scenario.given(acknowledged({ task_id: "b" }), acknowledged({ task_id: "c" }));
    return scenario.given(saved("ck", { task_id: "c" }));
  };
  const ids = (answer: JsonObject): unknown[] =>
    (answer.interruptions as JsonObject[]).map((one) => one.task_id);

  test("all open ones, the longest open first", () => {
    assert.deepEqual(ids(many().read("interruptions", {})), ["a", "b", "c", "d", "e"]);
    assert.deepEqual(ids(world().read("interruptions", {})), []);
  });

  for (const [state, expected] of [
    ["requested", ["a", "d", "e"]],
    ["acknowledged", ["b"]],
    ["saved", ["c"]],
    ["stopped", ["c"]],
  ] as const) {
    test(`those that are ${state}`, () => {
      assert.deepEqual(ids(many().read("interruptions", { state })), expected);
    });
  }

  test("page by page, whatever is closed in between", () => {
    const scenario = many();
    const first = scenario.read("interruptions", { limit: 2 });
    assert.deepEqual(ids(first), ["a", "b"]);
    scenario.tasks(task("completed", "b"), task("completed", "c"));
    scenario.said();
    const second = scenario.read("interruptions", { limit: 2, after: String(first.next) });
    assert.deepEqual([ids(second), second.next], [["d", "e"], undefined]);
  });

  test("a bad question is told what is wrong", () => {
    assert.equal(refused(many(), "interruptions", { state: "x" }), "invalid_query");
    assert.equal(refused(many(), "interruptions", { limit: 0 }), "invalid_query");
    assert.equal(refused(many(), "interruptions", { limit: 1001 }), "invalid_query");
    assert.equal(refused(many(), "interruptions", { after: "x" }), "invalid_query");
  });
});

test("what is not known is refused", () => {
  const scenario = world().tasks(...started());
  for (const verb of ["interruption", "checkpoints", "compensations"] as const) {
    assert.equal(refused(scenario, verb, { task_id: "x" }), "task_error");
    assert.equal(refused(scenario, verb, {}), "invalid_query");
  }
  const none = { task_id: "t", checkpoint_id: "ck" };
  assert.equal(refused(scenario, "checkpoint", none), "checkpoint_missing");
});

test("compensations: of what was undone, and of what undoes it", () => {
  const scenario = world().tasks(...started(), task("completed", "t"));
  scenario.given(compensation({}, { id: "c" }));
  const asked = {
    id: "c",
    task_id: "u",
    compensation_of: "t",
    requested_by: "agent:s",
    at: iso(NOW),
    reason: "wrong",
    state: "requested",
  };
  assert.deepEqual(scenario.read("compensations", T), { compensations: [asked], total: 1 });
  scenario.grant(scenario.request()).tasks(task("started", "u"), task("completed", "u"));
  scenario.given(compensated({ id: "cc" }));
  const done = { by: "agent:w", event_id: "cc", at: iso(NOW) };
  assert.deepEqual(scenario.read("compensations", { task_id: "u" }), {
    compensations: [{ ...asked, state: "completed", completed: done }],
    total: 1,
  });
});

describe("why", () => {
  test("says where a task stands, in every state", () => {
    const scenario = world().tasks(...started());
    assert.equal(scenario.why("t"), "");
    assert.equal(scenario.why("x"), "");
    scenario.given(requested({}, { id: "i" }));
    assert.match(scenario.why("t"), /is interrupted since .* waits for interruption\.acknowledged/);
    scenario.given(acknowledged());
    assert.match(scenario.why("t"), /waits for interruption\.saved until /);
    scenario.given(saved());
    assert.match(
      scenario.why("t"),
      /stopped since .* saved as checkpoint ck .* interruption\.resumed/,
    );
    scenario.given(resumed("ck", { id: "r" }));
    assert.match(scenario.why("t"), /was resumed by agent:s \(r\) .* from checkpoint ck/);
    scenario.given(requested());
    scenario.said(NOW + 5_000);
    assert.match(scenario.why("t"), /by force, for nothing was saved in time/);
    assert.match(scenario.why("t"), /task\.failed of t is asked for because of/);
  });

  test("says what undoes it, and what it undoes", () => {
    const scenario = world().tasks(...started(), task("completed", "t"));
    scenario.given(compensation({}, { id: "c" }));
    assert.match(scenario.why("t"), /is undone by u, as agent:s asked \(c\), because: wrong/);
    assert.match(scenario.why("u"), /u undoes t, .*its task is asked for/);
    scenario.grant(scenario.request());
    assert.match(scenario.why("u"), /submitted/);
  });

  test("says that a subtree is being asked", () => {
    const scenario = world().tasks(...started(), ...started("a", { parent_task_id: "t" }));
    scenario.given(requested({ scope: "tree" }, { id: "i" }));
    assert.match(scenario.why("t"), /with its subtree by i: at most 1 tasks first/);
  });
});
