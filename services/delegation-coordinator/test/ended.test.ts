import { test } from "node:test";
import { envelopesOf, ev, running, type World, world } from "./support.ts";

function cancelledByCascade(): { scenario: World; seqOfChild: number } {
  const scenario = world().given(
    ...running("p"),
    ev("submitted", "c", { target: "agent:w", parent: "p" }),
    ev("started", "c", { by: "agent:w" }),
  );
  scenario.when(ev("cancelled", "p", { id: "evt_cancel" })).begun("task.cancelled");
  scenario.settle();
  return { scenario, seqOfChild: 6 };
}

test("the producer's own cancel after a cascade is a duplicate when it names the same cause", () => {
  const { scenario, seqOfChild } = cancelledByCascade();
  for (const by of ["agent:w", "agent:a"]) {
    scenario.when(ev("cancelled", "c", { by, cause: "evt_cancel" })).duplicate(seqOfChild);
  }
});

test("another cause, no cause or a stranger is told the winner", () => {
  const { scenario } = cancelledByCascade();
  scenario.when(ev("cancelled", "c", { by: "agent:w", cause: "evt_x" })).rejected("task_error");
  scenario.when(ev("cancelled", "c", { by: "agent:w" })).rejected("task_error");
  scenario
    .when(ev("cancelled", "c", { by: "agent:x", cause: "evt_cancel" }))
    .rejected("task_error");
  for (const name of ["completed", "failed", "cancel.requested", "timed_out", "progress"]) {
    scenario
      .when(ev(name, "c", { by: "agent:w", cause: "evt_cancel" }))
      .rejected("task_error", { state: "cancelled" });
  }
});

test("a grandchild's own cancel may name its parent's cancel or the root's", () => {
  const scenario = world().given(
    ...running("p"),
    ...running("c", { parent: "p" }),
    ...running("g", { parent: "c" }),
  );
  scenario.when(ev("cancelled", "p", { id: "evt_cancel" })).begun("task.cancelled");
  const [, c] = envelopesOf(scenario.settle());
  scenario.when(ev("cancelled", "g", { cause: c?.id ?? "" })).duplicate();
  scenario.when(ev("cancelled", "g", { cause: "evt_cancel" })).duplicate();
});

test("the root's own cancel is no cascade: a second one is refused", () => {
  const { scenario } = cancelledByCascade();
  scenario.when(ev("cancelled", "p", { cause: "evt_cancel" })).rejected("task_error");
});

test("after a cancel request the answer may name the request", () => {
  const scenario = world().given(
    ...running("p"),
    ev("submitted", "c", { target: "agent:w", parent: "p" }),
    ev("started", "c", { by: "agent:w" }),
    ev("cancel.requested", "p", { id: "evt_req", payload: { grace_period_ms: 100 } }),
  );
  const [request] = envelopesOf(scenario.settle());
  scenario.wait(100).settle();
  scenario.when(ev("cancelled", "c", { by: "agent:w", cause: request?.id ?? "" })).duplicate();
  scenario.when(ev("cancelled", "p", { cause: "evt_req" })).duplicate();
});

test("an agent cannot claim a cascade in its payload", () => {
  const scenario = world().given(...running("t"));
  const payload = { root_outcome: "cancelled", root_task_id: "p", forced: true };
  scenario.given(ev("cancelled", "t", { cause: "evt_x", payload }));
  scenario.when(ev("cancelled", "t", { cause: "evt_x" })).rejected("task_error");
});

test("C1 of a completion and a cancel one wins, and the other is told which", () => {
  for (const [first, second] of [
    ["completed", "cancelled"],
    ["cancelled", "completed"],
  ] as const) {
    const scenario = world().given(...running("t"), ev(first, "t", { id: "evt_won" }));
    scenario.when(ev(second, "t")).rejected("task_error", {
      state: first,
      winner: { event_id: "evt_won", type: `task.${first}`, seq: 3 },
    });
  }
});
