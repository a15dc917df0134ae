/** Who has a task that was given away, as this service sees it (spec 5.6, 5.7). */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  acknowledged,
  event,
  type Fields,
  requested,
  started,
  submitted,
  task,
  type World,
  world,
} from "./support.ts";

const PARTIES: Fields = { task_id: "t", delegated_by: "agent:boss", delegated_to: "agent:w" };

function offered(fields: Fields = {}): World {
  return world().tasks(
    event("delegation.requested", {}, { source: "agent:boss", ...PARTIES, ...fields }),
  );
}

const accepts = (fields: Fields = {}) =>
  event("delegation.accepted", {}, { ...PARTIES, source: "agent:w", ...fields });
const rejects = (fields: Fields = {}) =>
  event("delegation.rejected", { reason: "no" }, { ...PARTIES, source: "agent:w", ...fields });

function may(scenario: World, source: string): void {
  scenario.when(requested({}, { source })).accepted();
}

function mayNot(scenario: World, source: string): void {
  scenario.when(requested({}, { source })).rejected("unauthorized");
}

describe("a task that is offered", () => {
  test("is the delegator's; the offer alone gives no rights", () => {
    mayNot(offered(), "agent:w");
    may(offered(), "agent:boss");
  });

  test("is the delegate's as soon as it is accepted, and still the delegator's", () => {
    may(offered().tasks(accepts()), "agent:w");
    may(offered().tasks(accepts()), "agent:boss");
    const scenario = offered()
      .tasks(accepts())
      .given(requested({}, { source: "agent:boss" }));
    scenario.when(acknowledged({ source: "agent:boss" })).rejected("unauthorized");
    scenario.when(acknowledged()).accepted();
  });

  test("to whoever comes first is whose who accepts it", () => {
    const { delegated_to: _to, ...open } = PARTIES;
    const scenario = world().tasks(
      event("delegation.requested", {}, { source: "agent:boss", ...open }),
    );
    scenario.tasks(event("delegation.accepted", {}, { ...open, source: "agent:first" }));
    scenario.given(requested({}, { source: "agent:boss" }));
    scenario.when(acknowledged()).rejected("unauthorized", { owner: "agent:first" });
    scenario.when(acknowledged({ source: "agent:first" })).accepted();
  });

  test("and rejected leaves nothing behind", () => {
    offered().tasks(rejects()).when(requested()).rejected("task_error", { task_id: "t" });
    const given = offered().tasks(accepts(), rejects());
    given.when(requested()).rejected("task_error", { task_id: "t" });
  });

  test("and rejected stays when it was submitted, or has had children", () => {
    const submittedToo = offered().tasks(submitted("t", { source: "agent:boss" }), rejects());
    may(submittedToo, "agent:boss");
    const parent = offered().tasks(submitted("child", { parent_task_id: "t" }), rejects());
    may(parent, "agent:boss");
  });

  test("a submission that fills it in is no other task", () => {
    const scenario = offered().tasks(accepts(), submitted("t", { source: "agent:boss" }));
    scenario.given(requested({}, { source: "agent:boss" }));
    scenario.when(acknowledged()).accepted();
  });

  test("under a parent is also the parent's", () => {
    const scenario = world().tasks(submitted("p", { source: "agent:top" }));
    const under = { source: "agent:boss", ...PARTIES, parent_task_id: "p" };
    scenario.tasks(event("delegation.requested", {}, under));
    may(scenario, "agent:top");
  });

  test("an echo of a harness changes nothing", () => {
    const scenario = offered().tasks(accepts({ source: "harness:h" }));
    mayNot(scenario, "agent:w");
  });
});

describe("a task that its owner gives away", () => {
  const lent = (): World =>
    world()
      .tasks(...started("t", {}, { source: "agent:boss" }))
      .tasks(event("delegation.requested", {}, { source: "agent:boss", ...PARTIES }), accepts());
  const completed = event("delegation.handoff.completed", {}, { ...PARTIES, source: "agent:boss" });

  test("is its own until it is handed off, then the other's", () => {
    const before = lent().given(requested());
    before.when(acknowledged()).rejected("unauthorized", { owner: "agent:boss" });
    before.when(acknowledged({ source: "agent:boss" })).accepted();
    const after = lent().tasks(completed).given(requested());
    after.when(acknowledged({ source: "agent:boss" })).rejected("unauthorized");
    after.when(acknowledged()).accepted();
  });

  test("and takes back stays its own", () => {
    const scenario = lent().tasks(rejects()).given(requested());
    scenario.when(acknowledged({ source: "agent:boss" })).accepted();
    mayNot(lent().tasks(rejects()), "agent:w");
  });

  test("goes to a supervisor by escalation", () => {
    const up = {
      ...PARTIES,
      source: "agent:w",
      delegated_by: "agent:w",
      delegated_to: "agent:top",
    };
    const scenario = lent().tasks(event("delegation.escalated", { reason: "hard" }, up));
    may(scenario, "agent:w");
    const more = { ...up, source: "agent:top" };
    const taken = lent().tasks(event("delegation.escalated", { reason: "hard" }, up));
    taken.tasks(event("delegation.accepted", {}, more));
    taken.tasks(event("delegation.handoff.completed", {}, { ...up, source: "agent:w" }));
    taken.given(requested());
    taken.when(acknowledged()).rejected("unauthorized", { owner: "agent:top" });
    taken.when(acknowledged({ source: "agent:top" })).accepted();
  });
});

describe("what does not fit", () => {
  test("a log that begins in the middle, or says the same twice, changes nothing", () => {
    const scenario = world().tasks(
      task("progress", "unknown"),
      task("completed", "unknown"),
      accepts(),
      rejects(),
      event("delegation.handoff.completed", {}, PARTIES),
      event("delegation.escalated", { reason: "r" }, PARTIES),
      event("delegation.requested", {}, {}),
      event("task.submitted", {}, {}),
      submitted("c", { parent_task_id: "unknown" }),
      ...started("t"),
      submitted("t", { source: "agent:x" }),
      task("started", "t", { source: "agent:x" }),
      task("completed", "t"),
      task("failed", "t"),
      accepts(),
    );
    scenario.when(requested()).rejected("task_error", { state: "completed" });
    scenario.when(requested({}, { task_id: "c" })).accepted();
    assert.deepEqual(scenario.requests(), []);
  });

  test("an id that is used again, though this service still knows it, is another task", () => {
    const scenario = world().tasks(...started(), task("completed", "t"), ...started());
    scenario.when(requested()).accepted();
    const offer = { ...PARTIES, source: "agent:boss" };
    const again = world().tasks(...started(), task("completed", "t"));
    again.tasks(event("delegation.requested", {}, offer), accepts());
    again.when(requested({}, { source: "agent:boss" })).accepted();
  });
});
