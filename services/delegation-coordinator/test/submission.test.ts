import assert from "node:assert/strict";
import { test } from "node:test";
import { tree } from "../src/reads.ts";
import { ev, payloadOf, running, stateOf, world } from "./support.ts";

test("a missing task id is derived, named in the entry and in the verdict", () => {
  const scenario = world();
  const { task_id: _, ...rest } = ev("submitted", "x");
  const then = scenario.when({ ...rest, payload: { description: "d" } });
  const entry = then.outcome.entry;
  assert.ok(entry?.kind === "event");
  const id = entry.envelope.task_id ?? "";
  assert.match(id, /^task_[0-9A-HJKMNP-TV-Z]{26}$/);
  assert.deepEqual(entry.envelope.payload, { description: "d", task_id: id });
  then.accepted({ task_id: id });
  scenario.when(ev("started", id)).accepted();
});

test("B9 an id is never used again, live or ended, and what closes one tree leaves others alone", () => {
  const scenario = world().given(...running("p"), ...running("task_1", { parent: "p" }));
  scenario.when(ev("submitted", "task_1")).rejected("task_error", { state: "started" });
  scenario.given(ev("completed", "task_1", { id: "evt_won" }), ...running("q", { by: "agent:q" }));
  scenario.when(ev("submitted", "task_1", { by: "agent:q", parent: "q" })).rejected("task_error", {
    state: "completed",
    winner: { event_id: "evt_won", type: "task.completed", seq: 6 },
  });
  scenario.when(ev("cancelled", "p")).accepted();
  scenario.settle();
  assert.deepEqual([stateOf(scenario, "q"), stateOf(scenario, "task_1")], ["started", "completed"]);
  scenario.when(ev("completed", "q", { by: "agent:q" })).accepted();
});

test("N1 ids that name properties of objects are ordinary ids", () => {
  for (const id of ["__proto__", "constructor", "toString", "hasOwnProperty"]) {
    const scenario = world().given(...running(id), ev("submitted", "c", { parent: id }));
    scenario.when(ev("completed", id)).rejected("task_error", { active_children: ["c"] });
    assert.equal(stateOf(scenario, id), "started");
  }
});

test("tenants do not see each other's tasks", () => {
  const scenario = world().given(ev("submitted", "task_1"));
  const other = scenario.judge(ev("submitted", "task_1"), "other");
  assert.ok("accept" in other.decision);
  const stray = scenario.judge(ev("submitted", "task_2", { parent: "task_9" }), "other");
  assert.ok("reject" in stray.decision);
});

test("5.5 a parent is named by the envelope, else by the payload", () => {
  const scenario = world().given(...running("p"));
  scenario.given(ev("submitted", "c1", { parent: "p" }));
  scenario.given(ev("submitted", "c2", { payload: { parent_task_id: "p" } }));
  scenario.when(ev("completed", "p")).rejected("task_error", {
    active_children: ["c1", "c2"],
    active_count: 2,
  });
});

test("5.5 two different parents are an invalid envelope", () => {
  const scenario = world().given(...running("p"), ...running("q"));
  scenario
    .when(ev("submitted", "c", { parent: "p", payload: { parent_task_id: "q" } }))
    .rejected("invalid_envelope");
});

test("5.5 a parent must be known", () => {
  world()
    .when(ev("submitted", "c", { parent: "nobody" }))
    .rejected("task_error", {
      parent_task_id: "nobody",
    });
});

test("B5 no child under a parent that has ended", () => {
  const scenario = world().given(...running("p"), ev("completed", "p", { id: "evt_done" }));
  scenario.when(ev("submitted", "c", { parent: "p" })).rejected("task_error", {
    winner: { event_id: "evt_done", type: "task.completed", seq: 3 },
    task_id: "c",
    parent_task_id: "p",
  });
});

test("5.5 no task is its own parent", () => {
  world()
    .when(ev("submitted", "c", { parent: "c" }))
    .rejected("task_error");
});

test("5.5 depth is bounded", () => {
  const scenario = world({ maxDepth: 3 }).given(ev("submitted", "t0"));
  for (const level of [1, 2, 3]) {
    scenario.given(ev("submitted", `t${level}`, { parent: `t${level - 1}` }));
  }
  scenario.when(ev("submitted", "t4", { parent: "t3" })).rejected("task_error", { depth_max: 3 });
});

test("5.5 the link to a parent never changes", () => {
  const scenario = world().given(...running("p"), ...running("q"));
  scenario.given(ev("submitted", "c", { parent: "p" }));
  scenario.when(ev("started", "c", { parent: "q" })).rejected("task_error", {
    parent_task_id: "p",
  });
  scenario.when(ev("accepted", "c", { parent: "p" })).accepted();
  scenario.when(ev("progress", "q", { parent: "p" })).rejected("task_error", {
    parent_task_id: null,
  });
});

test("B1 a failed child does not hold its parent, which sees the failure", () => {
  const scenario = world().given(...running("p"));
  scenario.given(...running("c1", { parent: "p" }), ...running("c2", { parent: "p" }));
  const error = { code: "tool_error", message: "m", retryable: false };
  const failed = ev("failed", "c1", { id: "evt_failed", payload: { error } });
  scenario.given(failed, ev("completed", "c2"));
  const seen = tree(scenario.state, scenario.tenant, "p")?.nodes ?? [];
  assert.deepEqual(
    seen.map(({ task_id, state }) => `${task_id} ${state}`),
    ["p started", "c1 failed", "c2 completed"],
  );
  assert.deepEqual(seen[1]?.winner, { event_id: "evt_failed", type: "task.failed", seq: 7 });
  scenario.when(ev("completed", "p")).accepted();
});

/** All orders of a few things. */
function orders<T>(of: readonly T[]): T[][] {
  if (of.length < 2) return [[...of]];
  return of.flatMap((first) =>
    orders(of.filter((one) => one !== first)).map((rest) => [first, ...rest]),
  );
}

for (const order of orders(["c1", "c2", "p"])) {
  test(`B3 completions of ${order} in one millisecond: p's is taken, or refused before the last child ends`, () => {
    const scenario = world().given(...running("p"));
    scenario.given(...running("c1", { parent: "p" }), ...running("c2", { parent: "p" }));
    const live = new Set(["c1", "c2"]);
    for (const task of order) {
      const then = scenario.when(ev("completed", task));
      live.delete(task);
      if (live.size === 0 || task !== "p") then.accepted();
      else then.rejected("task_error", { active_children: [...live] });
    }
    // What wakes a refused parent is the end of its last child, which every observer sees after the refusal.
    if (stateOf(scenario, "p") === "completed") return;
    scenario.when(ev("completed", "p")).accepted();
  });
}

test("a refusal lists twenty live children and counts all", () => {
  const scenario = world().given(...running("p"));
  for (let i = 0; i < 30; i++) scenario.given(ev("submitted", `c${i}`, { parent: "p" }));
  const { decision } = scenario.when(ev("completed", "p")).outcome;
  assert.ok("reject" in decision);
  const listed = decision.reject.details?.active_children;
  assert.ok(Array.isArray(listed));
  assert.equal(listed.length, 20);
  assert.equal(decision.reject.details?.active_count, 30);
});

test("a derived id stands in a payload that is no object without harm", () => {
  const scenario = world();
  const { task_id: _, ...rest } = ev("submitted", "x");
  const { entry } = scenario.when({ ...rest, payload: null }).outcome;
  assert.ok(entry?.kind === "event");
  assert.equal(entry.envelope.payload, null);
  assert.throws(() => payloadOf(entry.envelope));
});
