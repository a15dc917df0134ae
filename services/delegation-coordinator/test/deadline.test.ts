import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "@harmovela/failure";
import { envelopesOf, ev, payloadOf, running, SERVICE, said, stateOf, world } from "./support.ts";

const DAY = 86_400_000;

test("5.4 a task that is not over at its deadline is timed out, once", () => {
  const scenario = world();
  const start = scenario.now;
  scenario.given(...running("t", { id: "evt_sub", payload: { timeout_ms: 200 } }));
  assert.deepEqual(scenario.owed(), { wakeAt: start + 200 });
  assert.deepEqual(scenario.settle(start + 199), []);
  const made = scenario.settle(start + 5000);
  assert.deepEqual(said(made), ["timed_out t"]);
  const [event] = envelopesOf(made);
  assert.equal(event?.source, SERVICE);
  assert.equal(event?.target, "agent:a");
  assert.equal(event?.causation_id, "evt_sub");
  assert.equal(event?.created_at, new Date(start + 200).toISOString());
  assert.deepEqual(payloadOf(event).error, {
    code: "task_timeout",
    message: "task t reached no terminal state before its deadline",
    retryable: true,
  });
  assert.deepEqual(scenario.settle(start + DAY), []);
  scenario.when(ev("completed", "t")).rejected("task_error", { state: "timed_out" });
});

test("C32 of timeout_ms and deadline_ms the tighter one rules", () => {
  const payloads: JsonObject[] = [
    { timeout_ms: 300, deadline_ms: 700 },
    { timeout_ms: 700, deadline_ms: 300 },
    { deadline_ms: 300 },
  ];
  for (const payload of payloads) {
    const scenario = world().given(ev("submitted", "t", { payload }));
    assert.deepEqual(scenario.owed(), { wakeAt: scenario.now + 300 });
  }
});

test("c16 it runs from receipt, whatever the agent's clock says", () => {
  const more = { created_at: "2020-01-01T00:00:00Z" };
  const scenario = world().given(ev("submitted", "t", { payload: { timeout_ms: 60_000 }, more }));
  assert.deepEqual(scenario.settle(scenario.now + 59_999), []);
  assert.deepEqual(said(scenario.settle(scenario.now + 1)), ["timed_out t"]);
});

test("H3 zero is due at once", () => {
  const scenario = world().given(ev("submitted", "t", { payload: { timeout_ms: 0 } }));
  assert.deepEqual(said(scenario.settle()), ["timed_out t"]);
});

test("H1 25 days, 100 years and the largest span fire neither early nor never", () => {
  for (const span of [25 * DAY, 36_525 * DAY]) {
    const scenario = world().given(ev("submitted", "t", { payload: { timeout_ms: span } }));
    const due = scenario.now + span;
    assert.deepEqual(scenario.owed(), { wakeAt: due });
    assert.deepEqual(scenario.settle(due - 1), []);
    assert.deepEqual(said(scenario.settle(due)), ["timed_out t"]);
  }
  const payload = { timeout_ms: Number.MAX_SAFE_INTEGER };
  const scenario = world().given(ev("submitted", "t", { payload }));
  assert.deepEqual(scenario.owed(), { wakeAt: Date.UTC(9999, 11, 31, 23, 59, 59, 999) });
});

test("a task that ended owes nothing at its deadline", () => {
  const scenario = world().given(...running("t", { payload: { timeout_ms: 100 } }));
  scenario.given(ev("completed", "t"));
  assert.equal(scenario.owed(), undefined);
});

test("5.5 with live descendants the time-out begins, leaves first", () => {
  const scenario = world().given(...running("p", { payload: { timeout_ms: 100 } }));
  scenario.given(...running("c", { parent: "p" }));
  const made = scenario.settle(scenario.now + 100);
  assert.deepEqual(said(made), ["begun timed_out", "cancelled c", "timed_out p"]);
  const [begun] = made;
  assert.ok(begun?.kind === "begun" && "owed" in begun.cause);
  assert.equal(begun.cause.owed, begun.plan.id);
  const [c, p] = envelopesOf(made);
  assert.equal(p?.id, begun.plan.id);
  assert.equal(c?.causation_id, begun.plan.id);
  assert.equal(payloadOf(c).root_outcome, "timed_out");
});

test("timers fire in the order of their due times, ties in the order of the log", () => {
  const scenario = world();
  for (const [id, timeout_ms] of [
    ["c", 30],
    ["a", 10],
    ["b1", 20],
    ["b2", 20],
  ] as const) {
    scenario.given(ev("submitted", id, { payload: { timeout_ms } }));
  }
  const expected = ["timed_out a", "timed_out b1", "timed_out b2", "timed_out c"];
  assert.deepEqual(said(scenario.settle(scenario.now + 50)), expected);
});

test("due timers go before steps of plans", () => {
  const scenario = world().given(...running("p"), ev("submitted", "c", { parent: "p" }));
  scenario.given(ev("submitted", "t", { payload: { timeout_ms: 10 } }));
  scenario.when(ev("cancelled", "p")).begun("task.cancelled");
  const made = scenario.settle(scenario.now + 10);
  assert.deepEqual(said(made), ["timed_out t", "cancelled c", "cancelled p"]);
});

test("no timer of a closed subtree fires", () => {
  const scenario = world().given(...running("p", { payload: { timeout_ms: 50 } }));
  scenario.given(...running("c", { parent: "p", payload: { timeout_ms: 50 } }));
  scenario.given(...running("g", { parent: "c", payload: { timeout_ms: 50 } }));
  scenario.when(ev("cancelled", "p")).begun("task.cancelled");
  const made = scenario.settle(scenario.now + 1000);
  assert.deepEqual(said(made), ["cancelled g", "cancelled c", "cancelled p"]);
  assert.equal(scenario.owed(), undefined);
});

test("timers that a plan held back fire when the plan is given up", () => {
  const scenario = world().given(...running("p"));
  scenario.given(...running("c", { parent: "p", payload: { timeout_ms: 50 } }));
  scenario.when(ev("cancelled", "p", { id: "evt_cancel" })).begun("task.cancelled");
  scenario.wait(60);
  const owed = scenario.owed();
  assert.ok(owed && "event" in owed && owed.urgency === "step");
  scenario.fail("evt_cancel");
  assert.deepEqual(said(scenario.settle()), ["timed_out c"]);
});

test("a time-out that cannot be logged is not owed again", () => {
  const scenario = world().given(...running("t", { payload: { timeout_ms: 50 } }));
  const owed = scenario.wait(50).owed();
  assert.ok(owed && "event" in owed);
  scenario.fail(owed.cause);
  assert.equal(scenario.owed(), undefined);
  scenario.when(ev("completed", "t")).accepted();
});

test("a cancel request does not stop the clock", () => {
  const scenario = world().given(...running("t", { payload: { timeout_ms: 50 } }));
  scenario.given(ev("cancel.requested", "t", { payload: { grace_period_ms: 10_000_000 } }));
  assert.deepEqual(said(scenario.settle(scenario.now + 50)), ["timed_out t"]);
  assert.equal(stateOf(scenario, "t"), "timed_out");
  assert.equal(scenario.owed(), undefined);
});

test("down for three times the timeout: only who did not report in time is timed out", () => {
  const scenario = world();
  for (const id of ["w1", "w2", "w3", "w4"]) {
    scenario.given(...running(id, { payload: { timeout_ms: 1000 } }));
  }
  scenario.wait(900).given(ev("completed", "w1"), ev("completed", "w3"));
  assert.deepEqual(said(scenario.wait(2100).settle()), ["timed_out w2", "timed_out w4"]);
});
