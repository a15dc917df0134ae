import { test } from "node:test";
import { ev, running, world } from "./support.ts";

const WORK = ["started", "blocked", "progress", "output", "completed", "failed", "timed_out"];

test("a task with a target is accepted and started only by that target", () => {
  for (const name of ["accepted", "started"]) {
    const scenario = world().given(ev("submitted", "t", { by: "agent:p", target: "agent:w" }));
    for (const by of ["agent:x", "agent:p"]) {
      scenario.when(ev(name, "t", { by })).rejected("unauthorized", { target: "agent:w" });
    }
    scenario.when(ev(name, "t", { by: "agent:w" })).accepted();
  }
});

test("without a target whoever accepts first owns it", () => {
  const scenario = world().given(ev("submitted", "t", { by: "agent:p" }));
  scenario.given(ev("accepted", "t", { by: "agent:w" }));
  scenario.when(ev("accepted", "t", { by: "agent:x" })).rejected("unauthorized", {
    owner: "agent:w",
  });
  scenario.when(ev("started", "t", { by: "agent:p" })).rejected("unauthorized");
  scenario.when(ev("started", "t", { by: "agent:w" })).accepted();
});

test("work events come from the owner", () => {
  for (const name of WORK) {
    const scenario = world().given(ev("submitted", "t", { by: "agent:p", target: "agent:w" }));
    scenario.given(ev("started", "t", { by: "agent:w" }));
    if (name === "started") scenario.given(ev("blocked", "t", { by: "agent:w" }));
    for (const by of ["agent:p", "agent:x"]) {
      scenario.when(ev(name, "t", { by })).rejected("unauthorized", { owner: "agent:w" });
    }
    scenario.when(ev(name, "t", { by: "agent:w" })).accepted();
  }
});

test("a task that nobody took is failed or timed out by submitter or target", () => {
  for (const name of ["failed", "timed_out"]) {
    for (const by of ["agent:p", "agent:w"]) {
      const scenario = world().given(ev("submitted", "t", { by: "agent:p", target: "agent:w" }));
      scenario.when(ev(name, "t", { by: "agent:x" })).rejected("unauthorized");
      scenario.when(ev(name, "t", { by })).accepted();
    }
  }
});

function family() {
  const scenario = world().given(
    ev("submitted", "g", { by: "agent:boss", target: "agent:g" }),
    ev("started", "g", { by: "agent:g" }),
    ev("submitted", "p", { by: "agent:g", target: "agent:p", parent: "g" }),
    ev("started", "p", { by: "agent:p" }),
    ev("submitted", "sibling", { by: "agent:s", target: "agent:s", parent: "p" }),
    ev("submitted", "t", { by: "agent:p", target: "agent:w", parent: "p" }),
  );
  return scenario;
}

for (const name of ["cancelled", "cancel.requested"]) {
  test(`entitled to ${name}: target, submitter, owners and submitters of ancestors`, () => {
    for (const by of ["agent:w", "agent:p", "agent:g", "agent:boss"]) {
      family()
        .when(ev(name, "t", { by }))
        .accepted();
    }
  });

  test(`not entitled to ${name}: strangers, siblings, owners of descendants`, () => {
    for (const by of ["agent:x", "agent:s"]) {
      family()
        .when(ev(name, "t", { by }))
        .rejected("unauthorized", { task_id: "t" });
    }
    family()
      .when(ev(name, "p", { by: "agent:w" }))
      .rejected("unauthorized");
  });

  test(`not entitled to ${name}: a target that is not the owner`, () => {
    const scenario = world().given(ev("submitted", "t", { by: "agent:p" }));
    scenario.given(ev("started", "t", { by: "agent:w" }));
    scenario.when(ev(name, "t", { by: "agent:other" })).rejected("unauthorized");
    scenario.when(ev(name, "t", { by: "agent:w" })).accepted();
  });
}

test("N7 agents are compared byte by byte", () => {
  const scenario = world().given(ev("submitted", "t", { target: "agent:worker" }));
  scenario.when(ev("started", "t", { by: "agent:w\u043erker" })).rejected("unauthorized");
});

test("on an ended task anybody is told the winner", () => {
  const scenario = world().given(...running("t"), ev("completed", "t", { id: "evt_won" }));
  const winner = { event_id: "evt_won", type: "task.completed", seq: 3 };
  scenario.when(ev("progress", "t", { by: "agent:x" })).rejected("task_error", { winner });
});
