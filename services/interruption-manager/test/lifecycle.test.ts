/** requested, acknowledged, saved, resumed or cancelled (spec 5.7). */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  acknowledged,
  cancelled,
  payloadOf,
  requested,
  resumed,
  saved,
  started,
  task,
  world,
} from "./support.ts";

describe("smoke", () => {
  test("resume", () => {
    const scenario = world().tasks(...started());
    scenario.when(requested()).accepted();
    scenario.when(acknowledged()).accepted();
    scenario.when(saved()).accepted({ checkpoint_id: "ck" });
    scenario.when(resumed("other")).rejected("checkpoint_missing");
    assert.equal(payloadOf(scenario.request()).state, "failed");
    scenario.when(resumed()).rejected("task_error");
    scenario.tasks(task("failed", "t"));
    assert.deepEqual(scenario.requests(), []);
    const [closing] = scenario.said();
    assert.equal(closing?.type, "interruption.cancelled");
  });
  test("cancel, resume", () => {
    const scenario = world().tasks(...started());
    scenario.given(
      requested(),
      acknowledged(),
      saved(),
      resumed(),
      requested(),
      acknowledged(),
      cancelled(),
    );
    assert.equal(scenario.request().type, "task.cancelled");
    const s2 = world().tasks(...started());
    s2.given(requested());
    const [e] = s2.said(s2.now + 5000);
    assert.equal(e?.interruption_policy, "force_stop");
    assert.equal(s2.request().type, "task.failed");
  });
});
