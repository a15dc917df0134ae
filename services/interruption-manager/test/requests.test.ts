/** What the coordinator is asked for, and how that is settled (architecture, section 2). */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { deriveId, isDerivedId } from "@harmovela/envelope";
import {
  acknowledged,
  brief,
  cancelled,
  event,
  iso,
  NOW,
  requested,
  saved,
  started,
  task,
  type World,
  world,
} from "./support.ts";

function asking(): World {
  const scenario = world().tasks(...started());
  return scenario.given(requested({}, { id: "i" }), acknowledged(), cancelled({ id: "c" }));
}

test("its id is a function of what owes it, and is derived", () => {
  const { id, created_at } = asking().request();
  assert.ok(isDerivedId(id));
  assert.equal(id, deriveId("acme", "c", "task.cancelled:1", NOW));
  assert.equal(created_at, iso(NOW));
});

test("the owed answer names the domain and is not given again while it is under way", () => {
  const scenario = asking();
  const { id } = scenario.request();
  const owed = scenario.owed();
  assert.ok(owed && "request" in owed);
  assert.deepEqual([owed.to, owed.tenant, owed.cause], ["tasks", "acme", id]);
  const underWay = { requests: new Set([id]) };
  assert.equal(scenario.decider.owed(scenario.state, NOW, underWay), undefined);
});

describe("it is settled", () => {
  const settled = (scenario: World): void => {
    assert.deepEqual(scenario.requests(), []);
    assert.deepEqual(scenario.requests(), [], "for good");
  };

  test("by the entry that has its id", () => {
    const scenario = asking();
    scenario.grant(scenario.request());
    settled(scenario);
    assert.deepEqual(scenario.said(), []);
  });

  test("by the end of its task, whoever has ended it", () => {
    const scenario = asking();
    scenario.tasks(task("completed", "t"));
    settled(scenario);
  });

  test("by a final refusal of the coordinator; then the task may be interrupted again", () => {
    const scenario = asking();
    scenario.refuse(scenario.request(), "unauthorized");
    settled(scenario);
    scenario.when(requested()).accepted();
  });

  test("not by somebody else's refusal, nor by one of something else", () => {
    const scenario = asking();
    const { id } = scenario.request();
    const payload = { acknowledged_event_id: id, error: { code: "c", message: "" } };
    scenario.tasks(event("event.rejected", payload, { source: "agent:x" }));
    scenario.refuse(event("task.progress"), "task_error");
    assert.equal(scenario.request().id, id);
  });

  test("a plan of the coordinator's is its outcome: it is not sent again, and still to come", () => {
    const scenario = asking();
    const request = scenario.request();
    const plan = { id: request.id, kind: request.type, envelope: request };
    scenario.ofTasks({ kind: "begun", plan });
    settled(scenario);
    scenario.when(requested()).rejected("task_error", { settling_by: "c", pending: true });
    scenario.grant(request);
    scenario.when(requested()).rejected("task_error", { state: "cancelled" });
  });

  test("a plan that is given up leaves the task as it is", () => {
    const scenario = asking();
    const request = scenario.request();
    const plan = { id: request.id, kind: request.type, envelope: request };
    scenario.ofTasks({ kind: "begun", plan });
    scenario.ofTasks({ kind: "obligation_failed", id: "step", reason: "" }, { owed: request.id });
    settled(scenario);
    scenario.when(requested()).accepted();
  });
});

test("refused as retryable it is asked again under another id, one second to five minutes apart", () => {
  const scenario = asking();
  const ids = new Set<string>();
  let pause = 1_000;
  for (let attempt = 1; attempt <= 12; attempt += 1) {
    const request = scenario.request();
    ids.add(request.id);
    assert.equal(request.causation_id, "c");
    scenario.refuse(request, "internal_error", true);
    const due = scenario.now + pause;
    assert.deepEqual(scenario.requests(), []);
    assert.equal(scenario.wakeAt(), due);
    scenario.at(due - 1);
    assert.deepEqual(scenario.requests(), []);
    scenario.at(due);
    pause = Math.min(300_000, 2 * pause);
  }
  assert.equal(ids.size, 12);
  scenario.grant(scenario.request());
  assert.equal(scenario.wakeAt(), undefined);
});

test("while it waits for another attempt the end of its task settles it", () => {
  const scenario = asking();
  scenario.refuse(scenario.request(), "internal_error", true);
  scenario.tasks(task("failed", "t"));
  assert.equal(scenario.wakeAt(), undefined);
  scenario.at(NOW + 1e9);
  assert.deepEqual(scenario.requests(), []);
});

test("another fold of the same entries asks for the same", () => {
  const scenario = asking();
  scenario.refuse(scenario.request(), "internal_error", true);
  const next = world();
  next.state = scenario.refold();
  for (const one of [scenario, next]) one.at(NOW + 1_000);
  assert.deepEqual(next.requests(), scenario.requests());
});

test("many that wait for an answer hold up no step and no due time", () => {
  const scenario = world();
  const count = 600;
  for (let index = 0; index < count; index += 1) {
    const id = `t${index}`;
    scenario.tasks(...started(id));
    const more = { task_id: id };
    scenario.given(requested({}, more), acknowledged(more), cancelled(more));
  }
  const asked = scenario.requests();
  assert.equal(asked.length, 512);
  scenario.tasks(...started("o"), ...started("d"));
  scenario.given(requested({}, { task_id: "o" }));
  const done = { task_id: "d" };
  scenario.given(requested({}, done), acknowledged(done), saved("ck", done));
  scenario.tasks(task("completed", "d"));
  const underWay = { requests: new Set(asked.map(({ id }) => id)) };
  const step = scenario.decider.owed(scenario.state, scenario.now, underWay);
  assert.ok(step && "event" in step);
  assert.equal(step.event.task_id, "d");
  const timer = scenario.decider.owed(scenario.state, NOW + 5_000, underWay);
  assert.ok(timer && "event" in timer);
  assert.deepEqual(brief([timer.event]), ["requested o"]);
  for (const request of asked) scenario.grant(request);
  assert.equal(scenario.requests().length, count - 512);
});
