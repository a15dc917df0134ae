/** Tasks that undo others (spec 5.8; section 11, C11; trap 2). */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Envelope } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import {
  acknowledged,
  brief,
  compensated,
  compensation,
  type Fields,
  iso,
  NOW,
  payloadOf,
  requested,
  SERVICE,
  saved,
  started,
  submitted,
  task,
  type World,
  world,
} from "./support.ts";

/** `t`, submitted by agent:s and done by agent:w, is over. */
function done(how = "completed"): World {
  return world().tasks(...started(), task(how, "t", { id: "end" }));
}

/** Its compensation `u` is asked for and there. */
function undone(): World {
  const scenario = done().given(compensation({}, { id: "c" }));
  return scenario.grant(scenario.request());
}

function stateOf(scenario: World, id = "u"): unknown {
  const { compensations } = scenario.read("compensations", { task_id: id });
  return (compensations as JsonObject[])[0]?.state;
}

describe("a request", () => {
  test("asks the coordinator for the task that undoes", () => {
    const scenario = world().tasks(...started("t", { tenant_id: "acme" }), task("completed", "t"));
    const fields = { id: "c", target: "agent:u", tenant_id: "acme" };
    scenario.given(compensation({ deadline: iso(NOW + 90_000), original_task: "t" }, fields));
    const asked = scenario.request();
    assert.deepEqual(asked, {
      spec_version: "0.2",
      id: asked.id,
      type: "task.submitted",
      source: SERVICE,
      target: "agent:u",
      created_at: iso(NOW),
      task_id: "u",
      compensation_id: "t",
      causation_id: "c",
      tenant_id: "acme",
      payload: {
        task_id: "u",
        state: "submitted",
        description: "take it back",
        reason: "wrong",
        compensation_of: "t",
        timeout_ms: 90_000,
      },
    });
    assert.ok(!("parent_task_id" in asked), "it is part of no cascade");
  });

  for (const [deadline, timeout] of [
    [NOW - 1, 0],
    [NOW, 0],
    [NOW + 1, 1],
    [Date.UTC(9999, 0), 100 * 365.25 * 86_400_000],
  ] as const) {
    test(`a deadline at ${deadline - NOW} ms leaves ${timeout} ms`, () => {
      const scenario = done().given(compensation({ deadline: iso(deadline) }));
      assert.equal(payloadOf(scenario.request()).timeout_ms, timeout);
    });
  }

  test("without a deadline leaves as long as it takes", () => {
    assert.ok(!("timeout_ms" in payloadOf(done().given(compensation()).request())));
  });

  for (const how of ["completed", "failed", "cancelled", "timed_out"]) {
    test(`of a task that is ${how} is taken`, () => void done(how).given(compensation()));
  }

  test("of a task that still runs is refused, of one that is stopped is taken", () => {
    const scenario = world().tasks(...started());
    scenario.when(compensation()).rejected("task_error", { expected: ["interruption.saved"] });
    scenario.given(requested(), acknowledged());
    scenario.when(compensation()).rejected("task_error", { state: "started" });
    scenario.given(saved()).when(compensation()).accepted();
    const forced = world().tasks(...started());
    forced.given(requested({}, { interruption_policy: "force_stop" })).given(compensation());
  });

  test("of an unknown task, or of one of another tenant, is refused", () => {
    done()
      .when(compensation({}, { compensation_id: "x" }))
      .rejected("task_error", { task_id: "x" });
    const { decision } = done().judge(compensation(), "other");
    assert.ok("reject" in decision && decision.reject.code === "task_error");
  });

  test("of a compensation is refused, whether its task is there or not", () => {
    const again = compensation({}, { task_id: "v", compensation_id: "u" });
    undone().tasks(task("started", "u"), task("completed", "u")).when(again).rejected("task_error");
    done()
      .given(compensation())
      .when(compensation({}, { task_id: "v", compensation_id: "u" }))
      .rejected("task_error");
  });

  test("for an id that is known is refused", () => {
    const scenario = done().tasks(submitted("u"));
    scenario.when(compensation()).rejected("task_error", { task_id: "u" });
    done()
      .when(compensation({}, { task_id: "t" }))
      .rejected("task_error");
    done()
      .given(compensation())
      .when(compensation({ reason: "other" }))
      .rejected("task_error");
  });

  test("trap 2: names one original, in the field and in the payload", () => {
    done()
      .when(compensation({ original_task: "other" }))
      .rejected("invalid_envelope");
    done()
      .when(compensation({ original_task: "t" }))
      .accepted();
    const { compensation_id: _field, ...bare } = compensation({ original_task: "t" });
    const scenario = done();
    scenario.when(bare as Envelope).accepted();
    assert.equal(scenario.events()[0]?.envelope.compensation_id, "t", "the entry says both");
    const { compensation_id: _original, ...none } = compensation();
    done()
      .when(none as Envelope)
      .rejected("invalid_envelope", { missing: ["compensation_id"] });
    const { task_id: _task, ...nameless } = compensation();
    done()
      .when(nameless as Envelope)
      .rejected("invalid_envelope", { missing: ["task_id"] });
  });

  test("is for whoever may interrupt the original: its former owner, its submitter, those above, the runtime", () => {
    const family = (): World =>
      world().tasks(
        submitted("p", { source: "agent:boss" }),
        ...started("t", { parent_task_id: "p" }),
        task("completed", "t"),
      );
    const runtime = ["runtime:main", "orchestrator:main", "service:x"];
    for (const source of ["agent:w", "agent:s", "agent:boss", ...runtime]) {
      family().when(compensation({}, { source })).accepted();
    }
    family()
      .when(compensation({}, { source: "agent:x" }))
      .rejected("unauthorized");
  });
});

describe("once for each original and reason", () => {
  test("a second one is told of the first", () => {
    const details = { task_id: "u", winner: { event_id: "c", type: "compensation.requested" } };
    undone()
      .when(compensation({}, { task_id: "v" }))
      .rejected("task_error", details);
    const other = compensation({ reason: "other" }, { task_id: "v" });
    undone().when(other).accepted();
  });

  for (const how of ["failed", "timed_out", "cancelled"]) {
    test(`unless the earlier one has ${how}`, () => {
      const scenario = undone().tasks(task("started", "u"), task(how, "u"));
      scenario.when(compensation({}, { task_id: "v" })).accepted();
      scenario.when(compensation({}, { task_id: "w" })).rejected("task_error", { task_id: "v" });
    });
  }

  test("not when it has completed, whether that was said or not", () => {
    const scenario = undone().tasks(task("started", "u"), task("completed", "u"));
    scenario.when(compensation({}, { task_id: "v" })).rejected("task_error", { task_id: "u" });
  });

  test("unless its task could not be made", () => {
    const scenario = done().given(compensation());
    scenario.refuse(scenario.request(), "task_error");
    assert.equal(stateOf(scenario), "refused");
    scenario
      .when(compensated({ source: "agent:s" }))
      .rejected("task_error", { refused: "task_error" });
    scenario.when(compensation({}, { task_id: "v" })).accepted();
  });
});

describe("its task", () => {
  test("is the requester's, and the agent's own submission still comes", () => {
    const scenario = undone();
    assert.equal(stateOf(scenario), "submitted");
    const may = requested({}, { task_id: "u", source: "agent:s" });
    scenario.when(may).accepted();
    undone()
      .tasks(submitted("u"))
      .when(compensation({}, { task_id: "v" }))
      .rejected("task_error");
  });

  test("that the agent submitted first is the one, whatever becomes of the request", () => {
    const scenario = done().given(compensation());
    const asked = scenario.request();
    scenario.tasks(submitted("u")).refuse(asked, "task_error");
    assert.equal(stateOf(scenario), "submitted");
  });

  test("that somebody else submitted first is not", () => {
    const scenario = done().given(compensation());
    const asked = scenario.request();
    scenario.tasks(submitted("u", { source: "agent:x" })).refuse(asked, "task_error");
    assert.equal(stateOf(scenario), "refused");
  });

  test("is interrupted and resumed as any other", () => {
    const scenario = undone().tasks(task("started", "u", { source: "agent:u" }));
    const own: Fields = { task_id: "u", source: "agent:u" };
    scenario.given(requested({}, { task_id: "u" }), acknowledged(own), saved("ck", own));
    const stopped = { expected: ["interruption.resumed"] };
    scenario.when(compensated({ source: "agent:u" })).rejected("task_error", stopped);
  });
});

describe("the completion", () => {
  for (const source of ["agent:s", "agent:u"]) {
    test(`by ${source} of a task that has completed is just taken`, () => {
      const scenario = undone().tasks(task("started", "u", { source: "agent:u" }));
      scenario.tasks(task("completed", "u")).given(compensated({ source }));
      assert.deepEqual(scenario.requests(), []);
    });
  }

  for (const state of ["started", "progress", "output"]) {
    test(`of a task that is ${state} asks for its end`, () => {
      const scenario = undone().tasks(task("started", "u", { source: "agent:u" }));
      if (state !== "started") scenario.tasks(task(state, "u"));
      scenario.given(compensated({ source: "agent:u", id: "cc" }));
      const asked = scenario.request();
      assert.deepEqual(brief([asked]), ["completed u"]);
      assert.equal(asked.causation_id, "cc");
      scenario.grant(asked);
      assert.deepEqual(scenario.requests(), []);
    });
  }

  const refused: [string, (scenario: World) => unknown, JsonObject][] = [
    ["not taken yet", () => undefined, { expected: ["task.started"], state: "submitted" }],
    ["blocked", (at) => at.tasks(task("started", "u"), task("blocked", "u")), { state: "blocked" }],
    ["failed", (at) => at.tasks(task("failed", "u")), { state: "failed" }],
    ["timed out", (at) => at.tasks(task("timed_out", "u")), { state: "timed_out" }],
    ["cancelled", (at) => at.tasks(task("cancelled", "u")), { state: "cancelled" }],
    [
      "waiting for a child",
      (at) => at.tasks(task("started", "u"), submitted("k", { parent_task_id: "u" })),
      { live_children: 1 },
    ],
  ];
  for (const [name, stand, details] of refused) {
    test(`of a task that is ${name} is refused`, () => {
      const scenario = undone();
      stand(scenario);
      scenario.when(compensated({ source: "agent:s" })).rejected("task_error", details);
    });
  }

  test("before the task is there is refused", () => {
    const scenario = done().given(compensation());
    const details = { expected: ["task.submitted"] };
    scenario.when(compensated({ source: "agent:s" })).rejected("task_error", details);
  });

  test("without a request, or of another original, is refused", () => {
    const details = { expected: ["compensation.requested"] };
    done().when(compensated()).rejected("task_error", details);
    const scenario = undone().tasks(...started("o"));
    scenario
      .when(compensated({ compensation_id: "o", source: "agent:s" }))
      .rejected("task_error", details);
  });

  test("a second time is refused, and told of the first", () => {
    const scenario = undone().tasks(task("started", "u"), task("completed", "u"));
    scenario.given(compensated({ id: "cc" }));
    const winner = { event_id: "cc", type: "compensation.completed" };
    scenario.when(compensated()).rejected("task_error", { winner });
  });

  test("by a stranger is refused", () => {
    const scenario = undone().tasks(task("started", "u", { source: "agent:u" }));
    scenario.when(compensated({ source: "agent:x" })).rejected("unauthorized");
    scenario.when(compensated({ source: "agent:w" })).rejected("unauthorized");
  });
});
