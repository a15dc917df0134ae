/** Failures that users of similar systems reported, by the names of the reports; the right outcome here. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Envelope } from "@harmovela/envelope";
import { ev, running, said, stateOf, world } from "./support.ts";

test("A13 a runner that goes on after a cancel request is refused from the forced end on", () => {
  const scenario = world().given(...running("t", { by: "agent:w" }));
  scenario.given(
    ev("cancel.requested", "t", { by: "agent:w", payload: { grace_period_ms: 1000 } }),
  );
  scenario.when(ev("progress", "t", { by: "agent:w" })).accepted();
  scenario.wait(1000);
  scenario.settle();
  assert.equal(stateOf(scenario, "t"), "cancelled");
  // Each is told the winner, and reported as late: by the third an operator is told.
  const late = (by: string): unknown => {
    const { decision } = scenario.when(ev("progress", "t", { by })).outcome;
    assert.ok("reject" in decision);
    assert.equal(decision.reject.details?.state, "cancelled");
    return decision.late;
  };
  assert.deepEqual([late("agent:w"), late("agent:w"), late("agent:x")], ["t", "t", undefined]);
});

test("A13 work that still comes while a forced end is under way is late too, a gentle one not", () => {
  const scenario = world().given(...running("p", { by: "agent:a" }));
  scenario.given(...running("c", { by: "agent:w", parent: "p" }));
  scenario.when(ev("cancelled", "p", { by: "agent:a" })).begun("task.cancelled");
  const { decision } = scenario.when(ev("progress", "c", { by: "agent:w" })).outcome;
  assert.equal("reject" in decision && decision.late, "c");
  const gentle = world().given(...running("t", { by: "agent:w" }));
  gentle.given(ev("cancel.requested", "t", { by: "agent:w" }));
  const refused = gentle.when(ev("cancel.requested", "t", { by: "agent:w" })).outcome.decision;
  assert.ok("reject" in refused && refused.late === undefined);
});

test("A15 a paused task whose runner never answers does not hold up its parent's cancel", () => {
  const scenario = world().given(
    ...running("p", { by: "agent:a" }),
    ...running("c", { by: "agent:gone", parent: "p" }),
    ev("blocked", "c", { by: "agent:gone" }),
  );
  scenario.given(ev("cancel.requested", "p", { by: "agent:a", payload: { grace_period_ms: 100 } }));
  scenario.settle();
  assert.deepEqual(said(scenario.settle(scenario.now + 100)), ["cancelled c", "cancelled p"]);
});

test("B7 no child is left running under a parent that fails, although its worker is silent", () => {
  const scenario = world().given(
    ...running("p", { by: "agent:a" }),
    ...running("c", { by: "agent:silent", parent: "p" }),
  );
  const error = { code: "task_error", message: "m", retryable: false };
  scenario.when(ev("failed", "p", { by: "agent:a", payload: { error } })).begun("task.failed");
  scenario.settle();
  assert.deepEqual([stateOf(scenario, "c"), stateOf(scenario, "p")], ["cancelled", "failed"]);
});

test("H5 what an agent's clock says does not move a deadline", () => {
  for (const offMinutes of [-3_000_000, -10, 10, 3_000_000]) {
    const scenario = world();
    // Every stamp of the agent is off by as much.
    const stamped = (envelope: Envelope): Envelope => {
      const created_at = new Date(scenario.now + offMinutes * 60_000).toISOString();
      return { ...envelope, created_at };
    };
    scenario.given(stamped(ev("submitted", "t", { payload: { timeout_ms: 1000 } })));
    scenario.given(stamped(ev("submitted", "good", { payload: { timeout_ms: 1000 } })));
    scenario.given(stamped(ev("started", "good")));
    scenario.wait(999);
    scenario.settle();
    assert.equal(stateOf(scenario, "t"), "submitted");
    scenario.when(stamped(ev("completed", "good"))).accepted();
    scenario.wait(1);
    scenario.settle();
    assert.equal(stateOf(scenario, "t"), "timed_out");
  }
});
