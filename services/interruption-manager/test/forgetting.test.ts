/** What is over is forgotten after the retention, and nothing else (architecture, section 6). */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { JsonObject } from "@harmovela/failure";
import { reachable } from "@harmovela/testkit";
import fc from "fast-check";
import { FAR, history, live } from "./generated.ts";
import {
  acknowledged,
  brief,
  closed,
  compensation,
  event,
  opened,
  requested,
  resumed,
  saved,
  started,
  submitted,
  task,
  type World,
  world,
} from "./support.ts";

const RETENTION = 100;
const short = (): World => world({ retentionMs: RETENTION });
const nothing = (): ReturnType<typeof event> => event("agent.message.sent");
const size = (scenario: World): number => reachable(scenario.state).size;

function pastOf(scenario: World): number {
  return (scenario.read("interruption", { task_id: "t" }).past as unknown[]).length;
}

describe("a task that has ended", () => {
  test("is known, with what was saved of it, until the retention is over", () => {
    const scenario = short().tasks(...started());
    scenario.given(requested(), acknowledged(), saved()).tasks(task("completed", "t"));
    scenario.said();
    scenario.wait(RETENTION).tasks(nothing());
    const view = scenario.read("checkpoint", { task_id: "t", checkpoint_id: "ck" });
    assert.equal(view.checkpoint_id, "ck");
    scenario.when(resumed()).rejected("task_error", { state: "completed" });
    scenario.wait(1).tasks(nothing());
    assert.equal(scenario.state.tenants.size, 0);
    assert.equal(size(scenario), size(short()));
  });

  test("and is forgotten before its interruption is closed: that is told all the same", () => {
    const scenario = short().tasks(...started(), ...started("p"));
    scenario.tasks(...started("c", { parent_task_id: "p" }));
    scenario.given(requested(), requested({ scope: "tree" }, { task_id: "p" }));
    for (const id of ["t", "c", "p"]) scenario.tasks(task("completed", id));
    scenario.wait(10 * RETENTION).tasks(nothing());
    assert.deepEqual(brief(scenario.said()), ["cancelled t", "requested p", "cancelled p"]);
    scenario.wait(RETENTION + 1).tasks(nothing());
    assert.equal(scenario.state.tenants.size, 0);
    assert.equal(size(scenario), size(short()));
  });

  test("goes with its compensation, once both are over", () => {
    const scenario = short()
      .tasks(...started(), task("completed", "t"))
      .given(compensation());
    scenario
      .grant(scenario.request())
      .wait(10 * RETENTION)
      .tasks(nothing());
    const { compensations } = scenario.read("compensations", { task_id: "u" });
    assert.equal((compensations as unknown[]).length, 1, "the original alone is forgotten");
    scenario
      .tasks(task("failed", "u"))
      .wait(RETENTION + 1)
      .tasks(nothing());
    assert.equal(scenario.state.tenants.size, 0);
    assert.equal(size(scenario), size(short()));
  });

  test("a compensation whose task could not be made goes too", () => {
    const scenario = short()
      .tasks(...started(), task("completed", "t"))
      .given(compensation());
    scenario
      .refuse(scenario.request(), "task_error")
      .wait(RETENTION + 1)
      .tasks(nothing());
    assert.equal(scenario.state.tenants.size, 0);
  });
});

describe("of a task that lives", () => {
  test("what was closed is forgotten, what was saved is not", () => {
    const scenario = short().tasks(...started());
    scenario.given(requested(), acknowledged(), saved(), resumed());
    scenario.wait(RETENTION).tasks(nothing());
    assert.equal(pastOf(scenario), 1);
    scenario.wait(1).tasks(nothing());
    assert.equal(pastOf(scenario), 0);
    scenario.given(requested({}, { interruption_policy: "force_stop" }));
    scenario.when(resumed("ck")).accepted();
  });

  test("what is open is never forgotten", () => {
    const scenario = short().tasks(...started());
    scenario
      .given(requested(), acknowledged(), saved())
      .wait(1000 * RETENTION)
      .tasks(nothing());
    scenario.when(resumed()).accepted();
  });

  test("no more is remembered than sixteen interruptions", () => {
    const scenario = short().tasks(...started());
    for (let index = 0; index < 40; index += 1) {
      scenario.given(requested(), acknowledged(), saved(), resumed());
    }
    assert.equal(pastOf(scenario), 16);
  });
});

test("a task of elsewhere goes with its last interruption", () => {
  const scenario = world({ retentionMs: RETENTION, externalTasks: true });
  scenario.given(requested(), acknowledged(), saved(), resumed());
  scenario.wait(RETENTION + 1).tasks(nothing());
  assert.equal(scenario.state.tenants.size, 0);
});

test("a session that closes after its tasks are forgotten leaves nothing behind", () => {
  const scenario = short().tasks(opened("s1"), ...started("t", {}, { session_id: "s1" }));
  scenario
    .tasks(task("completed", "t"))
    .wait(RETENTION + 1)
    .tasks(nothing(), closed("s1"));
  assert.equal(scenario.state.tenants.size, 0);
});

test("a session that closes leaves nothing behind", () => {
  const scenario = short().tasks(opened("s1"), ...started("t", {}, { session_id: "s1" }));
  scenario.tasks(closed("s1"), task("completed", "t")).wait(RETENTION + 1);
  scenario.tasks(nothing());
  assert.equal(size(scenario), size(short()));
});

test("an offer that is taken back leaves nothing behind", () => {
  const parties = { task_id: "t", delegated_by: "agent:s", delegated_to: "agent:w" };
  const scenario = short().tasks(
    event("delegation.requested", {}, { ...parties, source: "agent:s" }),
  );
  scenario.tasks(event("delegation.rejected", { reason: "no" }, parties));
  assert.equal(size(scenario), size(short()));
});

test("one entry lets go of sixty-four, so that none takes long", () => {
  const scenario = short();
  for (let index = 0; index < 200; index += 1) {
    scenario.tasks(submitted(`t${index}`), task("failed", `t${index}`));
  }
  scenario.wait(RETENTION + 1);
  const left: number[] = [];
  for (let entry = 0; entry < 4; entry += 1) {
    scenario.tasks(nothing());
    left.push(scenario.state.tenants.get("acme")?.tasks.size ?? 0);
  }
  assert.deepEqual(left, [136, 72, 8, 0]);
});

test("when every task of a history is over and forgotten, nothing at all is held", () => {
  fc.assert(
    fc.property(history, (moves) => {
      const scenario = short();
      const coordinator = live(scenario, moves);
      scenario.at(FAR);
      coordinator.settle();
      const { tasks = new Map() } = scenario.state.tenants.get("acme") ?? {};
      for (const id of [...tasks.keys()]) coordinator.apply({ do: "end", task: id, how: "failed" });
      for (const session of ["s0", "s1"]) coordinator.apply({ do: "close", session });
      coordinator.settle();
      for (let entry = 0; entry < 20; entry += 1) scenario.wait(RETENTION + 1).tasks(nothing());
      assert.equal(scenario.state.tenants.size, 0);
      const { size: held } = reachable(scenario.state);
      assert.equal(held, reachable(short().state).size);
    }),
    { numRuns: 150 },
  );
});

test("what a read says of a forgotten task is that there is none", () => {
  const scenario = short()
    .tasks(...started(), task("failed", "t"))
    .wait(RETENTION + 1);
  scenario.tasks(nothing());
  assert.throws(() => scenario.read("interruption", { task_id: "t" } satisfies JsonObject));
});
