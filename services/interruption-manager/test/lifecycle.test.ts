/** requested, acknowledged, saved, resumed or cancelled, and everything out of that order (spec 5.7). */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Envelope } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import {
  acknowledged,
  brief,
  cancelled,
  event,
  type Fields,
  iso,
  NOW,
  payloadOf,
  requested,
  resumed,
  saved,
  started,
  submitted,
  task,
  type World,
  world,
} from "./support.ts";

/** How `t`, submitted by agent:s and taken by agent:w, came to stand where it does. */
const STANDS: Readonly<Record<string, (to: World) => World>> = {
  running: (to) => to.tasks(...started()),
  requested: (to) => STANDS.running?.(to).given(requested({}, { id: "i" })) ?? to,
  acknowledged: (to) => STANDS.requested?.(to).given(acknowledged({ id: "a" })) ?? to,
  saved: (to) => STANDS.acknowledged?.(to).given(saved("ck", { id: "s" })) ?? to,
  resumed: (to) => STANDS.saved?.(to).given(resumed("ck", { id: "r" })) ?? to,
  cancelled: (to) => STANDS.saved?.(to).given(cancelled({ id: "c" })) ?? to,
  forced: (to) =>
    STANDS.running?.(to).given(requested({}, { id: "i", interruption_policy: "force_stop" })) ?? to,
  "forced, acknowledged": (to) => STANDS.forced?.(to).given(acknowledged({ id: "a" })) ?? to,
  "forced, saved": (to) => STANDS.forced?.(to).given(saved("ck", { id: "s" })) ?? to,
  ended: (to) => STANDS.saved?.(to).tasks(task("completed", "t", { id: "end" })) ?? to,
};

function standing(name: string): World {
  const build = STANDS[name];
  assert.ok(build, name);
  return build(world());
}

const ANSWERS: Readonly<Record<string, () => Envelope>> = {
  requested: () => requested(),
  forced: () => requested({}, { interruption_policy: "force_stop" }),
  drained: () => requested({}, { interruption_policy: "drain_then_stop" }),
  acknowledged: () => acknowledged(),
  saved: () => saved("ck2"),
  resumed: () => resumed("ck"),
  cancelled: () => cancelled(),
};

describe("every event in every state", () => {
  const ok = "accepted";
  const no = "task_error";
  const gone = "checkpoint_missing";
  //            requested forced drained acknowledged saved resumed cancelled
  const rows: [string, string[]][] = [
    ["running", [ok, ok, ok, no, no, no, no]],
    ["requested", [no, ok, no, ok, no, no, no]],
    ["acknowledged", [no, ok, no, no, ok, no, ok]],
    ["saved", [no, no, no, no, no, ok, ok]],
    ["resumed", [ok, ok, ok, no, no, no, no]],
    // Its end is asked for.
    ["cancelled", [no, no, no, no, no, no, no]],
    ["forced", [no, no, no, ok, ok, gone, ok]],
    ["forced, acknowledged", [no, no, no, no, ok, gone, ok]],
    ["forced, saved", [no, no, no, no, no, ok, ok]],
    ["ended", [no, no, no, no, no, no, no]],
  ];
  for (const [name, expected] of rows) {
    for (const [place, [answer, make]] of Object.entries(ANSWERS).entries()) {
      const code = expected[place] ?? "";
      test(`${name}: ${answer} is ${code}`, () => {
        const judged = standing(name).when(make());
        if (code === ok) judged.accepted();
        else judged.rejected(code as "task_error");
      });
    }
  }

  const EXPECTED: [string, string[]][] = [
    ["running", ["interruption.requested"]],
    ["requested", ["interruption.acknowledged", "interruption.requested"]],
    ["acknowledged", ["interruption.saved", "interruption.cancelled", "interruption.requested"]],
    ["saved", ["interruption.resumed", "interruption.cancelled"]],
    [
      "forced",
      [
        "interruption.acknowledged",
        "interruption.saved",
        "interruption.resumed",
        "interruption.cancelled",
      ],
    ],
  ];
  for (const [name, expected] of EXPECTED) {
    test(`${name}: a refusal says what was expected, and that is taken`, () => {
      const wrong = name === "acknowledged" ? acknowledged() : requested();
      const other = name === "running" ? acknowledged() : wrong;
      standing(name).when(other).rejected("task_error", { task_id: "t", expected });
      for (const type of expected) {
        const make = ANSWERS[type.split(".").at(-1) ?? ""];
        assert.ok(make);
        const scenario = standing(name);
        if (type === "interruption.requested") {
          scenario.when(requested({}, { interruption_policy: "force_stop" })).accepted();
        } else if (type === "interruption.resumed" && name === "forced") {
          scenario.given(saved()).when(make()).accepted();
        } else scenario.when(make()).accepted();
      }
    });
  }
});

describe("a request", () => {
  test("names neither policy nor grace: the entry says both", () => {
    const scenario = world().tasks(...started());
    const { interruption_policy: _policy, ...bare } = requested();
    scenario.when(bare as Envelope).accepted({ policy: "save_and_stop", due: iso(NOW + 5000) });
    const [logged] = scenario.events();
    assert.equal(logged?.envelope.interruption_policy, "save_and_stop");
    assert.equal(payloadOf(logged?.envelope).grace_period_ms, 5000);
  });

  test("that says both is logged as it was sent", () => {
    const scenario = world().tasks(...started());
    const sent = requested({ grace_period_ms: 1 });
    scenario.given(sent);
    const [entry] = scenario.events();
    assert.ok(entry);
    const { delivery: _stamps, ...logged } = entry.envelope;
    assert.deepEqual(logged, sent);
  });

  for (const grace of [-1, 1.5, "5000", null, 2 ** 53]) {
    test(`H3: a grace of ${JSON.stringify(grace)} is refused`, () => {
      const scenario = world().tasks(...started());
      const asked = requested({ grace_period_ms: grace } as JsonObject);
      scenario.when(asked).rejected("invalid_envelope", { invalid: ["grace_period_ms"] });
    });
  }

  test("of an agent that claims to follow from a grace that passed is a request as any other", () => {
    const claims = { expired: true, on_grace_expired: "fail", grace_period_ms: 0 };
    const forced = { interruption_policy: "force_stop" } as const;
    const scenario = world()
      .tasks(...started())
      .given(requested(claims, forced));
    assert.deepEqual(scenario.requests(), []);
    const open = scenario.read("interruption", { task_id: "t" }).open as JsonObject;
    assert.equal(open.expired, undefined);
  });

  test("of an unknown scope is refused", () => {
    const scenario = world().tasks(...started());
    scenario.when(requested({ scope: "all" })).rejected("invalid_envelope");
    scenario.when(requested({ scope: "task" })).accepted();
  });

  test("for no task, an unknown one or one of another tenant is refused", () => {
    const scenario = world().tasks(...started());
    const { task_id: _task, ...none } = requested();
    scenario.when(none as Envelope).rejected("invalid_envelope", { missing: ["task_id"] });
    scenario.when(requested({}, { task_id: "x" })).rejected("task_error", { task_id: "x" });
    const { decision } = scenario.judge(requested(), "other");
    assert.ok("reject" in decision && decision.reject.code === "task_error");
    scenario.when(requested({ task_id: "t" }, { task_id: "" })).accepted();
  });

  test("for a task that has ended is told who won", () => {
    const scenario = world().tasks(...started(), task("failed", "t", { id: "end" }));
    const winner = { event_id: "end", type: "task.failed", seq: 3 };
    scenario.when(requested()).rejected("task_error", { state: "failed", winner });
  });

  test("stronger than the open one takes its place, its grace anew", () => {
    const scenario = world().tasks(...started());
    const drain = { id: "i1", interruption_policy: "drain_then_stop" } as const;
    scenario.given(requested({ grace_period_ms: 100 }, drain), acknowledged({ id: "a1" }));
    scenario.wait(60).given(requested({ grace_period_ms: 100 }, { id: "i2" }));
    assert.deepEqual(scenario.said(NOW + 159), []);
    const open = scenario.read("interruption", { task_id: "t" }).open as JsonObject;
    assert.deepEqual([open.id, open.state, open.due], ["i2", "requested", iso(NOW + 160)]);
    const [expired] = scenario.said(NOW + 160);
    assert.equal(expired?.causation_id, "i2");
  });

  test("weaker than, or as strong as, the open one is told what is open", () => {
    const details = { interruption: "i", policy: "save_and_stop", state: "requested" };
    standing("requested").when(requested()).rejected("task_error", details);
    const drain = requested({}, { interruption_policy: "drain_then_stop" });
    standing("requested").when(drain).rejected("task_error", details);
  });
});

describe("who may", () => {
  const family = (): World => {
    const scenario = world().tasks(
      submitted("p", { source: "agent:boss", target: "agent:p" }),
      task("accepted", "p", { source: "agent:p" }),
      submitted("t", { source: "agent:s", parent_task_id: "p", target: "agent:w" }),
    );
    return scenario.tasks(task("started", "t"));
  };

  for (const source of [
    "agent:w",
    "agent:s",
    "agent:p",
    "agent:boss",
    "harness:h",
    "runtime:main",
    "orchestrator:main",
    "service:x",
  ]) {
    test(`request, resume and cancel: ${source}`, () => {
      const scenario = family();
      scenario.when(requested({}, { source })).accepted();
      scenario.given(acknowledged(), saved()).when(resumed("ck", { source })).accepted();
      scenario.given(requested(), acknowledged()).when(cancelled({ source })).accepted();
    });
  }

  test("strangers may not, and are told who has the task", () => {
    const details = { task_id: "t", owner: "agent:w" };
    const by: Fields = { source: "agent:x" };
    family().when(requested({}, by)).rejected("unauthorized", details);
    const stopped = family().given(requested(), acknowledged(), saved());
    stopped.when(resumed("ck", by)).rejected("unauthorized", details);
    stopped.when(cancelled(by)).rejected("unauthorized", details);
  });

  for (const source of ["agent:s", "agent:p", "agent:boss", "harness:h", "service:x"]) {
    test(`${source} may not answer for the owner`, () => {
      const scenario = family().given(requested());
      scenario.when(acknowledged({ source })).rejected("unauthorized", { owner: "agent:w" });
      scenario.given(acknowledged());
      scenario.when(saved("ck", { source })).rejected("unauthorized", { owner: "agent:w" });
    });
  }

  test("of a task that nobody has taken its target and its submitter answer", () => {
    const waiting = () => world().tasks(submitted("t", { target: "agent:w" }));
    waiting().given(requested(), acknowledged());
    waiting().given(requested(), acknowledged({ source: "agent:s" }));
    waiting()
      .given(requested())
      .when(acknowledged({ source: "agent:x" }))
      .rejected("unauthorized");
  });

  test("with authentication only services speak for the runtime", () => {
    for (const source of ["harness:h", "runtime:main", "orchestrator:main"]) {
      const scenario = world({ authenticated: true }).tasks(...started());
      scenario.when(requested({}, { source })).rejected("unauthorized");
    }
    const scenario = world({ authenticated: true }).tasks(...started());
    scenario.when(requested({}, { source: "service:x" })).accepted();
    // An orchestrator is an agent then: of its own tasks it may.
    const source = "orchestrator:main";
    const own = world({ authenticated: true }).tasks(submitted("t", { source }));
    own.when(requested({}, { source })).accepted();
  });
});

describe("an answer to an earlier interruption", () => {
  const replaced = (): World =>
    standing("acknowledged").given(requested({}, { id: "i2", interruption_policy: "force_stop" }));

  for (const cause of ["i", "a"]) {
    for (const answer of [acknowledged, (more: Fields) => saved("ck", more), cancelled]) {
      const sent = answer({ causation_id: cause });
      test(`${sent.type} because of ${cause} never touches the newer one`, () => {
        const scenario = replaced();
        const winner = { event_id: "i2", type: "interruption.requested" };
        const details = { superseded_by: "i2", state: "requested", winner };
        scenario.when(sent).rejected("task_error", details);
        scenario.when(answer({ causation_id: "i2" })).accepted();
      });
    }
  }

  test("its own events and unknown ones are as good as none", () => {
    replaced()
      .when(acknowledged({ causation_id: "nobody knows" }))
      .accepted();
    const scenario = standing("acknowledged");
    scenario.when(saved("ck", { causation_id: "a" })).accepted();
    scenario.when(resumed("ck", { causation_id: "i" })).accepted();
  });

  test("the ids of sixteen interruptions are told from the open one", () => {
    const scenario = world().tasks(...started());
    for (let index = 0; index < 18; index += 1) {
      const id = `i${index}`;
      scenario.given(requested({}, { id }), acknowledged(), saved(`ck${index}`));
      scenario.given(resumed(`ck${index}`));
    }
    scenario.given(requested({}, { id: "open" }));
    scenario.when(acknowledged({ causation_id: "i2" })).rejected("task_error");
    scenario.when(acknowledged({ causation_id: "i1" })).accepted();
  });
});

describe("a resumption", () => {
  test("two with different checkpoints: one wins, the other is told who", () => {
    const scenario = standing("acknowledged").given(saved("ck1"));
    scenario.given(resumed("ck1", { id: "first" }), requested(), acknowledged(), saved("ck2"));
    scenario.given(resumed("ck1", { id: "second" }));
    const winner = { event_id: "second", type: "interruption.resumed", checkpoint_id: "ck1" };
    scenario.when(resumed("ck2")).rejected("task_error", { winner });
    assert.deepEqual(scenario.requests(), [], "and nothing fails");
  });

  test("the loser is told also when it answers what both saw", () => {
    const scenario = standing("saved").given(resumed("ck", { id: "first", causation_id: "s" }));
    const winner = { event_id: "first", type: "interruption.resumed", checkpoint_id: "ck" };
    const loser = resumed("ck", { causation_id: "s" });
    scenario.when(loser).rejected("task_error", { winner, expected: ["interruption.requested"] });
  });

  test("of what is not stopped fails nothing", () => {
    for (const name of ["running", "requested", "acknowledged", "resumed"]) {
      const scenario = standing(name);
      scenario.when(resumed("other")).rejected("task_error");
      assert.deepEqual(scenario.requests(), []);
    }
  });

  test("without the checkpoint that it names is refused, and the task fails", () => {
    const scenario = standing("saved");
    const judged = scenario.when(resumed("other", { id: "r" }));
    judged.rejected("checkpoint_missing", { checkpoint_id: "other", checkpoints: ["ck"] });
    const asked = scenario.request();
    assert.equal(asked.type, "task.failed");
    assert.equal(asked.source, "service:interruption-manager");
    const refusal = scenario.log.at(-1);
    assert.equal(asked.causation_id, refusal?.kind === "event" && refusal.envelope.id);
    const { error, task_id: id } = payloadOf(asked);
    const { code, retryable } = error as JsonObject;
    assert.deepEqual([code, retryable, id], ["checkpoint_missing", false, "t"]);
    // Nothing runs any more, and nothing fails twice.
    const settling = { pending: true, settling_by: asked.causation_id };
    scenario.when(resumed("ck")).rejected("task_error", settling);
    scenario.when(resumed("other")).rejected("task_error", settling);
    assert.equal(scenario.requests().length, 1);
  });

  test("trap 9: after a forced stop without any checkpoint is no fresh start", () => {
    for (const checkpoint of ["ck", undefined]) {
      const scenario = standing("forced");
      const { checkpoint_id: _id, ...bare } = resumed();
      const sent = checkpoint === undefined ? (bare as Envelope) : resumed(checkpoint);
      scenario.when(sent).rejected("checkpoint_missing");
      assert.equal(scenario.request().type, "task.failed");
    }
  });

  test("after a forced stop may name what an earlier interruption saved", () => {
    const scenario = standing("resumed");
    scenario.given(requested({}, { interruption_policy: "force_stop" }));
    scenario.when(resumed("ck")).accepted({ checkpoint_id: "ck" });
  });

  test("a checkpoint of another task is none of this one", () => {
    const scenario = standing("saved").tasks(...started("o"));
    const other: Fields = { task_id: "o" };
    scenario.given(requested({}, other), acknowledged(other), saved("ck2", other));
    scenario.when(resumed("ck2")).rejected("checkpoint_missing", { checkpoints: ["ck"] });
  });

  test("without a checkpoint means what was saved last, and the entry says so", () => {
    const scenario = standing("saved");
    const { checkpoint_id: _id, ...bare } = resumed();
    scenario.when(bare as Envelope).accepted({ checkpoint_id: "ck" });
    assert.equal(scenario.events().at(-1)?.envelope.checkpoint_id, "ck");
  });

  test("with another digest than what was saved is as good as none", () => {
    const digest = `sha-256:${"a".repeat(64)}`;
    const stopped = () => standing("acknowledged").given(saved("ck", {}, { digest }));
    stopped()
      .when(resumed("ck", {}, { digest }))
      .accepted();
    stopped().when(resumed("ck")).accepted();
    const other = `sha-256:${"b".repeat(64)}`;
    const scenario = stopped();
    scenario.when(resumed("ck", {}, { digest: other })).rejected("checkpoint_missing");
    assert.equal(scenario.request().type, "task.failed");
    standing("saved")
      .when(resumed("ck", {}, { digest }))
      .rejected("checkpoint_missing");
  });

  test("trap 10: of a task that has ended is a conflict, and nothing fails", () => {
    const scenario = standing("ended");
    const winner = { event_id: "end", type: "task.completed", seq: 3 };
    scenario.when(resumed("other")).rejected("task_error", { winner });
    assert.deepEqual(scenario.requests(), []);
  });
});

describe("a cancellation", () => {
  test("asks for the end of the task, and names what is kept", () => {
    const scenario = standing("saved");
    scenario.when(cancelled({ id: "c" })).accepted({ checkpoints: ["ck"], checkpoint_count: 1 });
    const asked = scenario.request();
    assert.deepEqual(
      [asked.type, asked.task_id, asked.causation_id, payloadOf(asked).reason],
      ["task.cancelled", "t", "c", "no more"],
    );
    assert.deepEqual(scenario.said(), [], "nothing is closed twice");
    const { checkpoints } = scenario.read("checkpoints", { task_id: "t" });
    assert.equal((checkpoints as unknown[]).length, 1);
  });

  test("names a checkpoint that there is", () => {
    const named = cancelled({}, { checkpoint_id: "other" });
    const scenario = standing("saved");
    scenario.when(named).rejected("task_error", { checkpoint_id: "other", checkpoints: ["ck"] });
    assert.deepEqual(scenario.requests(), []);
    scenario.when(cancelled({}, { checkpoint_id: "ck" })).accepted();
  });
});

describe("the end of the task", () => {
  for (const how of ["completed", "failed", "cancelled", "timed_out"]) {
    test(`task.${how} closes what is open, and says so once`, () => {
      const scenario = standing("saved").tasks(task(how, "t", { id: "end" }));
      const [closing, ...more] = scenario.said();
      assert.deepEqual(more, []);
      assert.ok(closing, "nothing was closed");
      assert.equal(closing.type, "interruption.cancelled");
      assert.equal(closing.causation_id, "end");
      assert.equal(closing.correlation_id, "i");
      assert.deepEqual(payloadOf(closing), {
        task_id: "t",
        reason: "the task has ended",
        task_state: how,
        checkpoint_id: "ck",
      });
      assert.deepEqual(scenario.requests(), [], "and asks for nothing");
      assert.deepEqual(scenario.said(NOW + 1e9), []);
      const { checkpoints } = scenario.read("checkpoints", { task_id: "t" });
      assert.equal((checkpoints as unknown[]).length, 1, "what was saved stays");
    });
  }

  test("before an answer: the answer is told who won", () => {
    const scenario = standing("requested").tasks(task("completed", "t", { id: "end" }));
    const winner = { event_id: "end", type: "task.completed", seq: 3 };
    scenario.when(acknowledged()).rejected("task_error", { winner });
    assert.deepEqual(brief(scenario.said(NOW + 1e9)), ["cancelled t"], "no grace passes");
  });

  test("an offer that is taken back takes its interruption with it, and its id is free", () => {
    const offer = { source: "agent:s", task_id: "t", delegated_to: "agent:w" };
    const scenario = world().tasks(event("delegation.requested", {}, offer));
    scenario.given(requested({}, { id: "i1" }));
    const back = event("delegation.rejected", { reason: "no" }, { task_id: "t", id: "back" });
    scenario.tasks(back, event("delegation.requested", {}, offer));
    scenario.when(requested({}, { id: "i2" })).accepted();
    const [closing, ...more] = scenario.said();
    assert.deepEqual(more, []);
    assert.deepEqual([closing?.causation_id, closing?.correlation_id], ["back", "i1"]);
    const { open } = scenario.read("interruption", { task_id: "t" });
    assert.equal((open as JsonObject).id, "i2");
  });
});
