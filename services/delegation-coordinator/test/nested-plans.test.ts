import assert from "node:assert/strict";
import { test } from "node:test";
import { envelopesOf, ev, payloadOf, running, said, type World, world } from "./support.ts";

/** r > p > (c > g), s ; all running, all by agent:a. */
function family(): World {
  return world().given(
    ...running("r"),
    ...running("p", { parent: "r" }),
    ...running("c", { parent: "p" }),
    ...running("g", { parent: "c" }),
    ...running("s", { parent: "p" }),
  );
}

test("an ancestor's cascade waits for the one below, then goes on", () => {
  const scenario = family();
  scenario.when(ev("cancelled", "c", { id: "evt_inner" })).begun("task.cancelled");
  scenario.when(ev("cancelled", "r", { id: "evt_outer" })).begun("task.cancelled");
  const made = scenario.settle();
  const expected = ["cancelled g", "cancelled c", "cancelled s", "cancelled p", "cancelled r"];
  assert.deepEqual(said(made), expected);
  const causes = made.map((entry) => ("owed" in entry.cause ? entry.cause.owed : ""));
  assert.deepEqual(causes, ["evt_inner", "evt_inner", "evt_outer", "evt_outer", "evt_outer"]);
  assert.equal(envelopesOf(made)[1]?.id, "evt_inner");
});

test("the root below ends as it was settled, not as the ancestor's cascade would have it", () => {
  const scenario = family();
  scenario.when(ev("failed", "c")).begun("task.failed");
  scenario.when(ev("cancelled", "r")).begun("task.cancelled");
  const expected = ["cancelled g", "failed c", "cancelled s", "cancelled p", "cancelled r"];
  assert.deepEqual(said(scenario.settle()), expected);
});

test("a thousand nested cascades, begun from below, all end", () => {
  const depth = 1000;
  const scenario = world().given(ev("submitted", "t0"));
  for (let i = 1; i <= depth; i++)
    scenario.given(ev("submitted", `t${i}`, { parent: `t${i - 1}` }));
  for (let i = depth - 1; i >= 0; i--)
    scenario.when(ev("cancelled", `t${i}`)).begun("task.cancelled");
  assert.equal(scenario.settle().length, depth + 1);
  assert.equal(scenario.owed(), undefined);
});

test("a cascade below cannot begin inside a closed one", () => {
  const scenario = family();
  scenario.when(ev("cancelled", "r", { id: "evt_outer" })).begun("task.cancelled");
  for (const name of ["cancelled", "failed"]) {
    scenario.when(ev(name, "c")).rejected("task_error", { settling_by: "evt_outer" });
  }
});

test("an ancestor's cascade overtakes a request below", () => {
  const scenario = family();
  scenario.given(ev("cancel.requested", "p", { id: "evt_req", payload: { grace_period_ms: 50 } }));
  scenario.when(ev("cancelled", "r", { id: "evt_outer" })).begun("task.cancelled");
  const made = scenario.settle(scenario.now + 100);
  const expected = ["cancelled g", "cancelled c", "cancelled s", "cancelled p", "cancelled r"];
  assert.deepEqual(said(made), expected);
  for (const entry of made) assert.deepEqual(entry.cause, { owed: "evt_outer" });
  assert.equal(payloadOf(envelopesOf(made)[0]).forced, undefined);
  assert.equal(scenario.owed(), undefined);
});

test("a request below goes on when the ancestor's cascade is given up", () => {
  const scenario = family();
  scenario.given(ev("cancel.requested", "p", { id: "evt_req", payload: { grace_period_ms: 50 } }));
  scenario.when(ev("cancelled", "r", { id: "evt_outer" })).begun("task.cancelled");
  scenario.wait(100).owed();
  scenario.fail("evt_outer");
  const expected = ["cancelled g", "cancelled c", "cancelled s", "cancelled p"];
  assert.deepEqual(said(scenario.settle()), expected);
});

test("a forced request below is waited for like a begun one", () => {
  const scenario = family();
  scenario.given(ev("cancel.requested", "c", { id: "evt_req", payload: { grace_period_ms: 0 } }));
  scenario.step();
  scenario.when(ev("cancelled", "r", { id: "evt_outer" })).begun("task.cancelled");
  const made = scenario.settle();
  assert.deepEqual(said(made), ["cancelled c", "cancelled s", "cancelled p", "cancelled r"]);
  assert.equal(payloadOf(envelopesOf(made)[0]).forced, true);
});

test("a request above does not ask into a subtree that a plan ends already", () => {
  const scenario = family();
  scenario.when(ev("cancelled", "c", { id: "evt_inner" })).begun("task.cancelled");
  scenario.given(ev("cancel.requested", "r", { id: "evt_req", payload: { grace_period_ms: 50 } }));
  const made = scenario.settle();
  const asked = said(made).filter((line) => line.startsWith("cancel.requested"));
  assert.deepEqual(asked, ["cancel.requested p", "cancel.requested s"]);
  assert.deepEqual(said(scenario.settle(scenario.now + 50)), [
    "cancelled s",
    "cancelled p",
    "cancelled r",
  ]);
});

test("a cascade that begins where a request's walk stands sends the walk round it", () => {
  const scenario = family();
  scenario.given(ev("cancel.requested", "r", { id: "evt_req" }));
  const asked = [scenario.step(), scenario.step()].flatMap((entry) => entry ?? []);
  assert.deepEqual(said(asked), ["cancel.requested p", "cancel.requested c"]);
  scenario.when(ev("cancelled", "c")).begun("task.cancelled");
  const rest = said(scenario.settle());
  assert.ok(!rest.includes("cancel.requested g"));
  assert.ok(rest.includes("cancel.requested s"));
});

test("a grace that passes while a cascade below is under way waits for it", () => {
  const scenario = family();
  scenario.given(ev("cancel.requested", "r", { id: "evt_req", payload: { grace_period_ms: 0 } }));
  scenario.when(ev("cancelled", "c", { id: "evt_inner" })).begun("task.cancelled");
  const made = scenario.settle();
  const expected = ["cancelled g", "cancelled c", "cancelled s", "cancelled p", "cancelled r"];
  assert.deepEqual(
    said(made).filter((line) => line.startsWith("cancelled")),
    expected,
  );
  assert.equal(envelopesOf(made).at(-1)?.correlation_id, "evt_req");
});

test("requests one above the other: each runner is asked by the nearest, all ends", () => {
  const scenario = family();
  scenario.given(
    ev("cancel.requested", "p", { id: "evt_inner", payload: { grace_period_ms: 90 } }),
  );
  scenario.given(
    ev("cancel.requested", "r", { id: "evt_outer", payload: { grace_period_ms: 40 } }),
  );
  const asked = scenario.settle();
  assert.deepEqual(said(asked), ["cancel.requested c", "cancel.requested g", "cancel.requested s"]);
  for (const envelope of envelopesOf(asked)) assert.equal(envelope.correlation_id, "evt_inner");
  const made = scenario.settle(scenario.now + 40);
  assert.equal(said(made).at(-1), "cancelled r");
  for (const envelope of envelopesOf(made)) assert.equal(envelope.correlation_id, "evt_outer");
  assert.equal(scenario.owed(), undefined);
});

test("runners below are asked after all when the ancestor's cascade is given up", () => {
  const scenario = family().given(ev("cancel.requested", "p", { id: "evt_req" }));
  scenario.when(ev("cancelled", "r", { id: "evt_outer" })).begun("task.cancelled");
  scenario.owed();
  scenario.fail("evt_outer");
  const asked = ["cancel.requested c", "cancel.requested g", "cancel.requested s"];
  assert.deepEqual(said(scenario.settle()), asked);
});

test("a cascade that begins after a forced step was owed, but not logged, takes its subtree", () => {
  const scenario = family();
  const payload = { grace_period_ms: 0 };
  scenario.given(ev("cancel.requested", "r", { id: "evt_req", payload }));
  const owed = scenario.owed();
  assert.ok(owed && "event" in owed && owed.event.task_id === "g");
  scenario.when(ev("cancelled", "c", { id: "evt_inner" })).begun("task.cancelled");
  const g = envelopesOf(scenario.settle()).find(
    ({ task_id, type }) => task_id === "g" && type === "task.cancelled",
  );
  assert.equal(g?.correlation_id, "evt_inner");
});

test("a task that waits to be cancelled for want of a runner is left to a cascade around it", () => {
  const scenario = world().given(
    ...running("r"),
    ...running("p", { parent: "r" }),
    ev("submitted", "u", { parent: "p" }),
    ...running("x", { parent: "u" }),
    ev("cancel.requested", "r", { id: "evt_req" }),
  );
  scenario.settle();
  scenario.given(ev("completed", "x"));
  scenario.when(ev("cancelled", "p", { id: "evt_inner" })).begun("task.cancelled");
  const made = scenario.settle();
  assert.deepEqual(said(made), ["cancelled u", "cancelled p"]);
  assert.equal(envelopesOf(made)[0]?.correlation_id, "evt_inner");
});
