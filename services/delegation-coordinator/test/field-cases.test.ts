/** Failures that users of similar systems reported, by the names of the reports; the right outcome here. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ev, running, stateOf, world } from "./support.ts";

test("A13 a runner that goes on after a cancel request is refused from the forced end on", () => {
  const scenario = world().given(...running("t", { by: "agent:w" }));
  scenario.given(
    ev("cancel.requested", "t", { by: "agent:w", payload: { grace_period_ms: 1000 } }),
  );
  scenario.when(ev("progress", "t", { by: "agent:w" })).accepted();
  scenario.wait(1000);
  scenario.settle();
  assert.equal(stateOf(scenario, "t"), "cancelled");
  scenario.when(ev("progress", "t", { by: "agent:w" })).rejected("task_error");
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
  for (const created_at of ["2020-01-01T00:00:00Z", "2099-01-01T00:00:00Z"]) {
    const submitted = ev("submitted", "t", { by: "agent:a", payload: { timeout_ms: 1000 } });
    const scenario = world().given({ ...submitted, created_at });
    scenario.wait(999);
    scenario.settle();
    assert.equal(stateOf(scenario, "t"), "submitted");
    scenario.wait(1);
    scenario.settle();
    assert.equal(stateOf(scenario, "t"), "timed_out");
  }
});
