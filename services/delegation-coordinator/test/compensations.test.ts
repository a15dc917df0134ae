/** Tasks that undo other ones (spec 5.8): submitted by the interruption manager in the name of who asked. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Envelope } from "@harmovela/envelope";
import { describeState, task as readTask } from "../src/index.ts";
import { del, tokenWorld } from "./delegation-support.ts";
import { BOSS, expire, inter, request, saved, see, undo, WORKER } from "./interruption-support.ts";
import { ev, said, stateOf, type World } from "./support.ts";

const DAY = 86_400_000;

/** A task that has ended, and the request to undo it. */
function asked(): World {
  const scenario = tokenWorld().given(
    ev("submitted", "original", { by: BOSS, target: WORKER }),
    ev("started", "original", { by: WORKER }),
    ev("completed", "original", { by: WORKER }),
  );
  return see(scenario, undo("requested", "u", { id: "undo_1" }));
}

function submission(task = "u", more: Partial<Envelope> = {}): Envelope {
  return request("submitted", task, "undo_1", { compensation_id: "original", ...more });
}

function made(): World {
  return asked().given(submission("u", { target: WORKER }));
}

test("5.8 the task is submitted for whoever asked, and follows the whole lifecycle", () => {
  const scenario = made();
  const view = readTask(scenario.state, "acme", "u");
  assert.equal(view?.submitter, BOSS);
  assert.equal(view?.target, WORKER);
  assert.equal(view?.compensation_of, "original");
  assert.equal(view?.parent_task_id, undefined);
  scenario.when(ev("started", "u", { by: "agent:other" })).rejected("unauthorized");
  for (const verb of ["accepted", "started", "progress", "completed"]) {
    scenario.when(ev(verb, "u", { by: WORKER })).accepted();
  }
});

test("5.8 it is submitted only as the request says, and once", () => {
  const scenario = asked();
  scenario.when(submission("v")).rejected("unauthorized");
  scenario.when(submission("u", { causation_id: "undo_2" })).rejected("unauthorized");
  scenario.when(submission("u", { compensation_id: "other" })).rejected("unauthorized");
  scenario.when(submission("u", { parent_task_id: "original" })).rejected("unauthorized");
  scenario.when(submission()).accepted();
  scenario.when(submission()).rejected("task_error", { task_id: "u" });
  scenario.given(ev("cancelled", "u", { by: BOSS }));
  scenario.when(submission()).rejected("task_error", { state: "cancelled" });
});

test("5.8 the agent's own submission still comes, before it or after it, and once", () => {
  const own = () => ev("submitted", "u", { by: BOSS });
  const after = made();
  after.when(own()).accepted();
  after.when(own()).rejected("task_error");
  after.when(submission()).rejected("task_error");
  const before = asked();
  before.when(own()).accepted();
  before.when(own()).rejected("task_error");
  before.when(submission()).accepted();
  before.when(submission()).rejected("task_error");
  before.when(own()).rejected("task_error");
  for (const scenario of [after, before]) {
    assert.deepEqual(describeState(scenario.refold()), describeState(scenario.state));
  }
});

test("5.8 its deadline holds in either order", () => {
  const timed = submission("u", { payload: { task_id: "u", timeout_ms: 100 } });
  for (const envelopes of [[timed], [ev("submitted", "u", { by: BOSS }), timed]]) {
    const scenario = asked().given(...envelopes);
    assert.deepEqual(said(scenario.settle(scenario.now + 99)), []);
    assert.deepEqual(said(scenario.settle(scenario.now + 1)), ["timed_out u"]);
  }
});

test("5.8 nobody else takes its id, and it stands below nothing", () => {
  const parent = () => ev("submitted", "p", { by: BOSS });
  const scenario = asked().given(parent());
  scenario.when(ev("submitted", "u", { by: WORKER })).rejected("unauthorized");
  scenario
    .when(ev("submitted", "u", { by: BOSS, parent: "p" }))
    .rejected("task_error", { compensation_id: "original" });
  const offer = { from: BOSS, to: WORKER, parent: undefined };
  scenario
    .when({ ...del("requested", { ...offer, by: WORKER, from: WORKER, to: BOSS }), task_id: "u" })
    .rejected("unauthorized");
  scenario.given(submission());
  scenario.when(ev("submitted", "u", { by: BOSS, parent: "p" })).rejected("task_error");
});

test("5.8 it is no part of the cascade that caused it", () => {
  const scenario = tokenWorld().given(
    ev("submitted", "p", { by: BOSS }),
    ev("submitted", "original", { by: BOSS, parent: "p", target: WORKER }),
    ev("started", "original", { by: WORKER }),
  );
  see(scenario, ...saved("original"), undo("requested", "u", { id: "undo_1" }));
  scenario.given(submission("u", { target: WORKER }), ev("started", "u", { by: WORKER }));
  scenario.given(ev("cancelled", "p", { by: BOSS }));
  assert.deepEqual(said(scenario.settle()), ["cancelled original", "cancelled p"]);
  scenario.when(ev("completed", "u", { by: WORKER })).accepted();
});

test("5.8 what is completed for it is asked for by the very entry, and judged like anybody's", () => {
  const scenario = made().given(ev("started", "u", { by: WORKER }));
  scenario.when(request("completed", "u", "done_1")).rejected("unauthorized");
  see(scenario, undo("completed", "u", { id: "done_1", by: WORKER }));
  scenario.when(request("completed", "u", "done_2")).rejected("unauthorized");
  scenario.when(request("failed", "u", "done_1")).rejected("unauthorized");
  scenario.when(request("completed", "original", "done_1")).rejected("task_error");
  scenario.given(ev("blocked", "u", { by: WORKER }));
  scenario.when(request("completed", "u", "done_1")).rejected("task_error", { from: "blocked" });
  scenario.given(
    ev("started", "u", { by: WORKER }),
    ev("submitted", "c", { by: WORKER, parent: "u" }),
  );
  scenario.when(request("completed", "u", "done_1")).rejected("task_error", { active_count: 1 });
  scenario.given(ev("cancelled", "c", { by: WORKER }));
  see(scenario, ...saved("u"));
  scenario.when(request("completed", "u", "done_1")).rejected("task_error", { state: "saved" });
  see(scenario, inter("resumed", "u", { checkpoint: "ck_u" }));
  scenario.when(request("completed", "u", "done_1")).accepted();
  assert.equal(stateOf(scenario, "u"), "completed");
});

test("5.8 it may be interrupted itself", () => {
  const scenario = made().given(ev("started", "u", { by: WORKER }));
  see(scenario, inter("requested", "u", { by: BOSS, id: "int_u" }));
  expire(scenario, "u");
  scenario.when(request("failed", "u", "exp_u")).accepted();
});

test("5.8 an id that somebody used meanwhile stays that one's", () => {
  const scenario = asked();
  scenario.given(ev("submitted", "w", { by: WORKER }));
  see(scenario, undo("requested", "w", { id: "undo_1" }));
  scenario.when(submission("w")).rejected("unauthorized");
  assert.equal(readTask(scenario.state, "acme", "w")?.compensation_of, undefined);
  scenario.given(
    ev("submitted", "p", { by: BOSS }),
    ev("submitted", "x", { by: BOSS, parent: "p" }),
  );
  see(scenario, undo("requested", "x", { id: "undo_1" }));
  scenario.when(submission("x")).rejected("unauthorized");
});

test("what was asked for is forgotten with its task, or when none has come for as long", () => {
  const scenario = made();
  see(scenario, undo("requested", "never", { id: "undo_2" }));
  const known = () => [...(scenario.state.tenants.get("acme")?.compensations.keys() ?? [])].sort();
  assert.deepEqual(known(), ["never", "u"]);
  const retentionMs = 30 * DAY;
  scenario.wait(retentionMs + 1).given(ev("submitted", "later", { by: BOSS }));
  assert.deepEqual(known(), ["u"], "its task lives");
  scenario.given(ev("cancelled", "u", { by: BOSS }));
  scenario.wait(retentionMs + 1).given(ev("submitted", "last", { by: BOSS }));
  assert.deepEqual(known(), []);
  assert.deepEqual(describeState(scenario.refold()), describeState(scenario.state));
});

test("a tenant of whom only a request to undo was seen is let go of", () => {
  const scenario = tokenWorld();
  scenario.observe("interruptions", undo("requested", "u"), { tenant: "other" });
  assert.equal(scenario.state.tenants.has("other"), true);
  scenario.wait(30 * DAY + 1).given(ev("submitted", "later", { by: BOSS }));
  assert.equal(scenario.state.tenants.has("other"), false);
});
