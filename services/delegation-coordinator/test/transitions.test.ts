import assert from "node:assert/strict";
import { test } from "node:test";
import { ev, said, stateOf, world } from "./support.ts";

const EVENTS = [
  "submitted",
  "accepted",
  "started",
  "blocked",
  "progress",
  "output",
  "completed",
  "failed",
  "cancelled",
  "timed_out",
] as const;
const TERMINAL = ["completed", "failed", "cancelled", "timed_out"];

/** Spec 5.4, row by row: how to get there, and what may follow. */
const ROWS: Record<string, { path: string[]; next: string[] }> = {
  submitted: {
    path: ["submitted"],
    next: ["accepted", "started", "failed", "cancelled", "timed_out"],
  },
  accepted: {
    path: ["submitted", "accepted"],
    next: ["started", "failed", "cancelled", "timed_out"],
  },
  started: {
    path: ["submitted", "accepted", "started"],
    next: ["progress", "output", "blocked", ...TERMINAL],
  },
  blocked: {
    path: ["submitted", "started", "blocked"],
    next: ["started", "progress", "failed", "cancelled", "timed_out"],
  },
  progress: {
    path: ["submitted", "started", "progress"],
    next: ["progress", "output", "blocked", ...TERMINAL],
  },
  output: {
    path: ["submitted", "started", "output"],
    next: ["progress", "output", "blocked", ...TERMINAL],
  },
  completed: { path: ["submitted", "started", "completed"], next: [] },
  failed: { path: ["submitted", "failed"], next: [] },
  cancelled: { path: ["submitted", "accepted", "cancelled"], next: [] },
  timed_out: { path: ["submitted", "started", "timed_out"], next: [] },
};

for (const [from, { path, next }] of Object.entries(ROWS)) {
  for (const to of EVENTS) {
    const isLegal = next.includes(to);
    test(`5.4 ${from} ${isLegal ? "goes to" : "does not go to"} ${to}`, () => {
      const scenario = world().given(...path.map((name) => ev(name, "task_1")));
      const then = scenario.when(ev(to, "task_1"));
      if (isLegal) {
        then.accepted();
        assert.equal(stateOf(scenario, "task_1"), to);
        return;
      }
      if (TERMINAL.includes(from)) {
        const last = scenario.log[path.length - 1];
        assert.ok(last?.kind === "event");
        const winner = {
          event_id: last.envelope.id,
          type: last.envelope.type,
          seq: path.length,
        };
        then.rejected("task_error", { state: from, winner });
      } else if (to === "submitted") {
        then.rejected("task_error", { state: from, task_id: "task_1" });
      } else {
        then.rejected("task_error", { from, to, task_id: "task_1" });
      }
      assert.equal(stateOf(scenario, "task_1"), from);
    });
  }
}

test("5.4 started passes through accepted in its one entry, and makes the sender the owner", () => {
  const scenario = world().given(
    ev("submitted", "task_1"),
    ev("started", "task_1", { by: "agent:w" }),
  );
  assert.deepEqual(said(scenario.log), ["submitted task_1", "started task_1"]);
  scenario.when(ev("progress", "task_1", { by: "agent:w" })).accepted();
});

test("5.4 events of an unknown task are refused", () => {
  for (const name of [...EVENTS.slice(1), "cancel.requested"]) {
    world().when(ev(name, "task_none")).rejected("task_error", { task_id: "task_none" });
  }
});

test("5.4 an event that names no task is an invalid envelope", () => {
  const nameless = { ...ev("started", "task_1"), task_id: "", payload: {} };
  world()
    .when(nameless)
    .rejected("invalid_envelope", { missing: ["task_id"] });
});

test("the payload names the task when the envelope does not", () => {
  const { task_id, ...rest } = ev("submitted", "task_1");
  const scenario = world();
  scenario.when(rest).accepted();
  assert.equal(stateOf(scenario, task_id ?? ""), "submitted");
});

test("other families are facts, heartbeats leave no entry", () => {
  const scenario = world();
  scenario.when({ ...ev("submitted", "task_1"), type: "tool.call.started" }).accepted();
  scenario.when({ ...ev("submitted", "task_1"), type: "environment.observed" }).accepted();
  scenario.when({ ...ev("submitted", "task_1"), type: "session.heartbeat" }).ignored();
  assert.equal(scenario.log.length, 2);
  assert.equal(stateOf(scenario, "task_1"), undefined);
});

test("H3 spans that are not whole milliseconds are refused", () => {
  const bad = [-1, 1.5, 2 ** 53];
  for (const value of bad) {
    const payload = { timeout_ms: value };
    world()
      .when(ev("submitted", "task_1", { payload }))
      .rejected("invalid_envelope", { invalid: ["timeout_ms"] });
  }
  for (const value of ["5000", null, [], -1, 1.5, 2 ** 53]) {
    const payload = { grace_period_ms: value };
    world()
      .given(ev("submitted", "task_1"))
      .when(ev("cancel.requested", "task_1", { payload }))
      .rejected("invalid_envelope", { invalid: ["grace_period_ms"] });
  }
});

test("an entry that cannot come from this service stops the fold, naming its sequence", () => {
  const scenario = world().given(ev("submitted", "task_1"));
  const entry = (name: string, task: string) =>
    ({ kind: "event", envelope: ev(name, task), cause: { in: 9 }, tenant: "acme" }) as const;
  assert.throws(() => scenario.append(entry("progress", "task_1")), /entry 2 /);
  assert.throws(() => scenario.append(entry("started", "task_2")), /entry 2 /);
  assert.throws(() => scenario.append(entry("submitted", "task_1")), /entry 2 /);
});
