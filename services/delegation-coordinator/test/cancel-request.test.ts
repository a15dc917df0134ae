import assert from "node:assert/strict";
import { test } from "node:test";
import {
  envelopesOf,
  ev,
  payloadOf,
  running,
  SERVICE,
  said,
  stateOf,
  type World,
  world,
} from "./support.ts";

/** p (agent:a) with c (agent:b, with g of agent:d) and s, which nobody took. */
function family(): World {
  return world().given(
    ev("submitted", "p", { by: "agent:boss", target: "agent:a" }),
    ev("started", "p"),
    ev("submitted", "c", { target: "agent:b", parent: "p" }),
    ev("started", "c", { by: "agent:b" }),
    ev("submitted", "g", { by: "agent:b", target: "agent:d", parent: "c" }),
    ev("started", "g", { by: "agent:d" }),
    ev("submitted", "s", { target: "agent:e", parent: "p" }),
  );
}

function request(grace?: number, by = "agent:boss") {
  const payload = { reason: "budget", ...(grace === undefined ? {} : { grace_period_ms: grace }) };
  return ev("cancel.requested", "p", { id: "evt_req", by, target: "agent:a", payload });
}

test("C7 a cancel request is accepted at once, its outcome is pending until the forced end", () => {
  const scenario = family();
  scenario.when(request(700)).accepted({ pending: true });
  const due = scenario.now + 700;
  scenario.settle(due - 1);
  // The agent ignores it and works on.
  scenario.when(ev("progress", "p")).accepted();
  assert.equal(stateOf(scenario, "p"), "progress");
  const ended = envelopesOf(scenario.settle(due)).at(-1);
  assert.deepEqual([ended?.type, ended?.task_id], ["task.cancelled", "p"]);
  assert.equal(payloadOf(ended).forced, true);
});

test("running descendants are asked, parents first; tasks without runner end at once", () => {
  const scenario = family().given(request());
  const made = scenario.settle();
  assert.deepEqual(said(made), ["cancel.requested c", "cancel.requested g", "cancelled s"]);
  const [c, g, s] = envelopesOf(made);
  assert.deepEqual(
    [c?.causation_id, g?.causation_id, s?.causation_id],
    ["evt_req", c?.id, "evt_req"],
  );
  assert.deepEqual([c?.target, g?.target, s?.target], ["agent:b", "agent:d", "agent:e"]);
  for (const derived of [c, g, s]) {
    assert.equal(derived?.source, SERVICE);
    assert.equal(derived?.correlation_id, "evt_req");
  }
  assert.deepEqual(payloadOf(g), {
    task_id: "g",
    reason: "budget",
    grace_period_ms: 5000,
    root_task_id: "p",
  });
  assert.equal(payloadOf(s).forced, undefined);
  assert.deepEqual(scenario.owed(), { wakeAt: scenario.now + 5000 });
});

test("runners that stop in time end the tree themselves, the root by its own runner", () => {
  const scenario = family().given(request());
  scenario.settle();
  scenario.when(ev("cancelled", "g", { by: "agent:d" })).accepted();
  scenario.when(ev("completed", "c", { by: "agent:b" })).accepted();
  assert.deepEqual(scenario.settle(), []);
  scenario.when(ev("cancelled", "p", { cause: "evt_req" })).accepted();
  assert.equal(scenario.owed(), undefined);
});

test("completion may win the race against a request", () => {
  const scenario = world().given(...running("t"), ev("cancel.requested", "t"));
  scenario.when(ev("completed", "t")).accepted();
  assert.deepEqual(scenario.settle(scenario.now + 10_000), []);
});

for (const grace of [undefined, 700]) {
  test(`after a grace of ${grace ?? "the default"} the rest ends by force, leaves first`, () => {
    const scenario = family().given(request(grace));
    scenario.settle();
    scenario.given(ev("progress", "g", { by: "agent:d" }));
    const due = scenario.now + (grace ?? 5000);
    assert.deepEqual(scenario.settle(due - 1), []);
    const made = scenario.settle(due);
    assert.deepEqual(said(made), ["cancelled g", "cancelled c", "cancelled p"]);
    const [g, c, p] = envelopesOf(made);
    assert.deepEqual(
      [g?.causation_id, c?.causation_id, p?.causation_id],
      [c?.id, p?.id, "evt_req"],
    );
    for (const derived of [g, c, p]) {
      assert.equal(payloadOf(derived).forced, true);
      assert.equal(
        derived?.created_at,
        new Date(due).toISOString(),
        "not before the grace is over",
      );
    }
    assert.equal(payloadOf(p).reason, "budget");
    assert.equal(p?.source, SERVICE);
    assert.equal(scenario.owed(), undefined);
  });
}

test("H3 a grace of 0 is an immediate forced stop: nobody is asked", () => {
  const scenario = family().given(request(0));
  const ended = ["cancelled g", "cancelled c", "cancelled s", "cancelled p"];
  assert.deepEqual(said(scenario.settle()), ended);
});

test("a grace beyond all time is not an early one", () => {
  const scenario = family().given(request(Number.MAX_SAFE_INTEGER));
  scenario.settle();
  assert.deepEqual(scenario.owed(), { wakeAt: Date.UTC(9999, 11, 31, 23, 59, 59, 999) });
});

test("the first forced entry is owed as a timer, the rest as steps", () => {
  const scenario = family().given(request(100));
  scenario.settle();
  scenario.wait(100);
  const first = scenario.owed();
  assert.ok(first && "event" in first && first.urgency === "timer");
  assert.equal(first.due, scenario.now);
  scenario.step();
  const second = scenario.owed();
  assert.ok(second && "event" in second && second.urgency === "step");
});

test("until the first forced entry work counts, from then on it does not", () => {
  const scenario = family().given(request(100));
  scenario.settle();
  scenario.wait(100);
  scenario.when(ev("progress", "c", { by: "agent:b" })).accepted();
  scenario.step();
  const settling_by = "evt_req";
  scenario.when(ev("progress", "c", { by: "agent:b" })).rejected("task_error", { settling_by });
  scenario.when(ev("completed", "p")).rejected("task_error", { settling_by });
  scenario.when(ev("cancelled", "p")).rejected("task_error", { settling_by });
});

test("the gate closes: nothing is spawned, and nobody takes what is being cancelled", () => {
  const scenario = family().given(request());
  const settling_by = "evt_req";
  for (const parent of ["p", "c", "g", "s"]) {
    scenario.when(ev("submitted", "new", { parent })).rejected("task_error", { settling_by });
  }
  scenario.when(ev("accepted", "s", { by: "agent:e" })).rejected("task_error", { settling_by });
  scenario.when(ev("started", "s", { by: "agent:e" })).rejected("task_error", { settling_by });
});

test("a second request in the same subtree is told which one is pending", () => {
  const scenario = family().given(request());
  for (const task of ["p", "c", "g"]) {
    scenario
      .when(ev("cancel.requested", task, { by: "agent:boss" }))
      .rejected("task_error", { settling_by: "evt_req", pending: true });
  }
});

test("the root may not complete over live children", () => {
  const scenario = family().given(request());
  scenario.when(ev("completed", "p")).rejected("task_error", { active_count: 2 });
});

test("a hard cancel takes the place of a request", () => {
  const scenario = family().given(request());
  scenario.settle();
  scenario.when(ev("cancelled", "p", { id: "evt_hard" })).begun("task.cancelled");
  const made = scenario.settle(scenario.now + 60_000);
  assert.deepEqual(said(made), ["cancelled g", "cancelled c", "cancelled p"]);
  assert.equal(payloadOf(envelopesOf(made)[0]).forced, undefined);
  assert.equal(envelopesOf(made)[2]?.id, "evt_hard");
  assert.equal(scenario.owed(), undefined);
});

test("a task that nobody runs is cancelled at the request", () => {
  const scenario = world().given(ev("submitted", "p"), ev("submitted", "c", { parent: "p" }));
  scenario.given(ev("submitted", "g", { parent: "c" }));
  scenario.given(ev("cancel.requested", "p", { id: "evt_req", payload: { reason: "moot" } }));
  const made = scenario.settle();
  assert.deepEqual(said(made), ["cancelled g", "cancelled c", "cancelled p"]);
  const [, , p] = envelopesOf(made);
  assert.equal(payloadOf(p).reason, "moot");
  assert.equal(payloadOf(p).forced, undefined);
  assert.equal(p?.causation_id, "evt_req");
  assert.equal(scenario.owed(), undefined);
});

test("a parent without runner ends when its last running child has", () => {
  const scenario = world().given(ev("submitted", "p"), ev("submitted", "c", { parent: "p" }));
  scenario.given(...running("g", { parent: "c" }));
  scenario.given(ev("cancel.requested", "p"));
  assert.deepEqual(said(scenario.settle()), ["cancel.requested g"]);
  scenario.given(ev("completed", "g"));
  assert.deepEqual(said(scenario.settle()), ["cancelled c", "cancelled p"]);
});

test("the root's runner is told when the request was addressed to somebody else", () => {
  for (const [target, expected] of [
    ["agent:a", []],
    ["agent:other", ["cancel.requested t"]],
    [undefined, ["cancel.requested t"]],
  ] as const) {
    const scenario = world().given(ev("submitted", "t", { by: "agent:boss" }), ev("started", "t"));
    const to = target === undefined ? {} : { target };
    scenario.given(ev("cancel.requested", "t", { by: "agent:boss", ...to }));
    assert.deepEqual(said(scenario.settle()), [...expected]);
  }
});

test("a runner that asks for its own cancel is not asked again", () => {
  const scenario = world().given(...running("t"), ev("cancel.requested", "t"));
  assert.deepEqual(scenario.settle(), []);
});

test("tasks that end while runners are being asked are passed over", () => {
  const scenario = world().given(...running("p"));
  for (const id of ["a", "b", "c", "d"]) scenario.given(...running(id, { parent: "p" }));
  scenario.given(ev("cancel.requested", "p"));
  assert.deepEqual(said([scenario.step()].flatMap((e) => e ?? [])), ["cancel.requested a"]);
  scenario.given(ev("completed", "b"), ev("completed", "a"), ev("failed", "c"));
  assert.deepEqual(said(scenario.settle()), ["cancel.requested d"]);
});

test("an inner task that fails over live children begins its own cascade", () => {
  const scenario = family().given(request());
  scenario.settle();
  scenario.when(ev("failed", "c", { by: "agent:b" })).begun("task.failed");
  assert.deepEqual(said(scenario.settle()), ["cancelled g", "failed c"]);
  assert.deepEqual(said(scenario.settle(scenario.now + 5000)), ["cancelled p"]);
});

test("a long reason is cut in derived events without parting a character", () => {
  const scenario = world().given(...running("p"), ...running("c", { parent: "p" }));
  const reason = `${"x".repeat(199)}\u{1f600}${"y".repeat(100_000)}`;
  scenario.given(ev("cancel.requested", "p", { payload: { reason } }));
  const [derived] = envelopesOf(scenario.settle());
  assert.equal(payloadOf(derived).reason, "x".repeat(199));
});

test("a single task that nobody runs does not wait for the grace", () => {
  const scenario = world().given(
    ev("submitted", "t"),
    ev("cancel.requested", "t", { id: "evt_req" }),
  );
  const made = scenario.settle();
  assert.deepEqual(said(made), ["cancelled t"]);
  assert.equal(payloadOf(envelopesOf(made)[0]).forced, undefined);
  assert.equal(envelopesOf(made)[0]?.causation_id, "evt_req");
});
