/** What the log of `interruptions` means for tasks (spec 5.7; section 11, C10, C41). */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Envelope } from "@harmovela/envelope";
import { describeState, task as readTask, why } from "../src/index.ts";
import { del, tokenWorld } from "./delegation-support.ts";
import { ofSession, openSession } from "./family-support.ts";
import {
  BOSS,
  expire,
  forced,
  inter,
  MANAGER,
  missing,
  request,
  saved,
  see,
  WORKER,
} from "./interruption-support.ts";
import { ev, said, stateOf, type World } from "./support.ts";

const WORK = ["accepted", "started", "progress", "output", "blocked", "completed"];
const ENDS = ["failed", "timed_out"];

function submitted(task: string, parent?: string): Envelope {
  return ev("submitted", task, {
    by: BOSS,
    target: WORKER,
    ...(parent === undefined ? {} : { parent }),
  });
}

function working(...tasks: string[]): World {
  const scenario = tokenWorld();
  for (const task of tasks) {
    scenario.given(submitted(task), ev("started", task, { by: WORKER }));
  }
  return scenario;
}

/** A parent of the boss, and a child that the worker runs. */
function family(child = "c"): World {
  return tokenWorld().given(
    ev("submitted", "p", { by: BOSS }),
    ev("started", "p", { by: BOSS }),
    submitted(child, "p"),
    ev("started", child, { by: WORKER }),
  );
}

const stops: [string, (scenario: World, task: string) => World, string][] = [
  ["saved", (scenario, task) => see(scenario, ...saved(task)), "saved"],
  ["force_stop", (scenario, task) => see(scenario, forced(task)), "force_stop"],
  [
    "an expired grace",
    (scenario, task) =>
      expire(see(scenario, inter("requested", task, { by: BOSS, id: `int_${task}` })), task),
    "force_stop",
  ],
];

for (const [name, stop, state] of stops) {
  test(`5.7 after ${name} no work counts, and the owner that goes on is seen`, () => {
    for (const verb of WORK) {
      const scenario = stop(working("t"), "t");
      const { outcome } = scenario.when(ev(verb, "t", { by: WORKER }));
      const { decision } = outcome;
      assert.ok("reject" in decision && decision.reject.code === "task_error", verb);
      assert.equal(decision.reject.details?.state, state);
      assert.equal(decision.late, "t");
      const { expected } = decision.reject.details as { expected: string[] };
      assert.ok(expected.includes("interruption.resumed") && expected.includes("task.cancelled"));
      assert.equal(stateOf(scenario, "t"), "started");
    }
  });

  test(`5.7 after ${name} it can still be ended`, () => {
    for (const verb of ENDS) {
      stop(working("t"), "t")
        .when(ev(verb, "t", { by: WORKER }))
        .accepted();
    }
    for (const verb of ["cancelled", "cancel.requested"]) {
      stop(working("t"), "t")
        .when(ev(verb, "t", { by: BOSS }))
        .accepted();
    }
  });

  test(`5.7 after ${name} nothing is born below it`, () => {
    const scenario = stop(working("t"), "t");
    scenario
      .when(ev("submitted", "child", { by: WORKER, parent: "t" }))
      .rejected("task_error", { parent_task_id: "t", state });
    const offer = { by: WORKER, from: WORKER, to: "agent:other", parent: "t" };
    scenario.when(del("requested", offer)).rejected("task_error", { parent_task_id: "t", state });
    see(scenario, inter("resumed", "t", { checkpoint: "ck_t" }));
    scenario.when(ev("submitted", "child", { by: WORKER, parent: "t" })).accepted();
  });
}

test("5.7 while it is asked to stop, and drains, everything is legal", () => {
  for (const policy of ["save_and_stop", "drain_then_stop"]) {
    const scenario = working("t");
    see(scenario, inter("requested", "t", { by: BOSS, policy }));
    scenario.when(ev("progress", "t", { by: WORKER })).accepted();
    see(scenario, inter("acknowledged", "t"));
    scenario.when(ev("output", "t", { by: WORKER })).accepted();
    scenario.when(ev("submitted", "child", { by: WORKER, parent: "t" })).accepted();
    assert.match(why(scenario.state, "acme", "t", scenario.now) ?? "", /waits for 1 live child/);
  }
});

test("5.7 a stronger policy takes the place of a weaker one", () => {
  const scenario = working("t");
  see(scenario, inter("requested", "t", { by: BOSS, policy: "drain_then_stop" }));
  scenario.when(ev("progress", "t", { by: WORKER })).accepted();
  see(scenario, forced("t"));
  scenario
    .when(ev("progress", "t", { by: WORKER }))
    .rejected("task_error", { interruption: "force_t", policy: "force_stop" });
});

test("5.7 resumed in the owner's session it goes on there; by somebody else anywhere", () => {
  const resumptions: [Partial<Envelope>, string | undefined, string | undefined][] = [
    [{ source: WORKER, session_id: "s2" }, "s2", "s1"],
    [{ source: WORKER }, undefined, undefined],
    [{ source: BOSS }, "s2", undefined],
  ];
  for (const [by, allowed, refused] of resumptions) {
    const scenario = tokenWorld();
    for (const id of ["s1", "s2"]) openSession(scenario, id, undefined, { source: WORKER });
    scenario.given(submitted("t"), ev("started", "t", { by: WORKER, more: { session_id: "s1" } }));
    see(scenario, ...saved("t"));
    see(scenario, { ...inter("resumed", "t", { checkpoint: "ck_t" }), ...by });
    const work = (session: string | undefined): Envelope => {
      const { session_id: _, ...envelope } = ev("progress", "t", { by: WORKER });
      return session === undefined ? envelope : { ...envelope, session_id: session };
    };
    if (refused)
      scenario.when(work(refused)).rejected("unauthorized", allowed ? { session_id: allowed } : {});
    scenario.when(work(allowed)).accepted();
    assert.equal(stateOf(scenario, "t"), "progress");
  }
});

test("5.7 resumed by somebody else it is the first process's that works on it, and then its to lose", () => {
  const scenario = tokenWorld();
  for (const id of ["s1", "s2", "s3"]) openSession(scenario, id, undefined, { source: WORKER });
  const work = (session: string, id: string): Envelope =>
    ev("progress", "t", { by: WORKER, id, more: { session_id: session } });
  scenario.given(submitted("t"), ev("started", "t", { by: WORKER, more: { session_id: "s1" } }));
  see(scenario, ...saved("t"), inter("resumed", "t", { by: BOSS, checkpoint: "ck_t" }));
  assert.equal(readTask(scenario.state, "acme", "t")?.is_free, true);
  scenario.given(work("s2", "first"));
  assert.equal(readTask(scenario.state, "acme", "t")?.is_free, undefined);
  for (const late of ["s1", "s3"])
    scenario.when(work(late, `late_${late}`)).rejected("unauthorized", { session_id: "s2" });
  scenario.when(work("s2", "second")).accepted();
});

test("C41 the state before is the state after: blocked stays blocked", () => {
  const scenario = working("t").given(ev("blocked", "t", { by: WORKER }));
  see(scenario, ...saved("t"), inter("resumed", "t", { checkpoint: "ck_t" }));
  scenario.when(ev("output", "t", { by: WORKER })).rejected("task_error", { from: "blocked" });
  scenario.when(ev("progress", "t", { by: WORKER })).accepted();
});

test("5.7 its deadline goes on while it is stopped", () => {
  const scenario = tokenWorld().given(
    ev("submitted", "t", { by: BOSS, target: WORKER, payload: { timeout_ms: 100 } }),
    ev("started", "t", { by: WORKER }),
  );
  see(scenario, ...saved("t"));
  assert.deepEqual(said(scenario.settle(scenario.now + 100)), ["timed_out t"]);
});

test("C10 an expired grace lets the manager fail the task once, with the very entry as cause", () => {
  const scenario = working("t");
  see(scenario, inter("requested", "t", { by: BOSS, id: "int_t" }));
  scenario
    .when(request("failed", "t", "exp_t"))
    .rejected("unauthorized", { causation_id: "exp_t" });
  expire(scenario, "t");
  for (const cause of ["int_t", "exp_other", ""]) {
    scenario.when(request("failed", "t", cause)).rejected("unauthorized");
  }
  scenario.when(request("cancelled", "t", "exp_t")).rejected("unauthorized");
  scenario
    .when({ ...request("failed", "t", "exp_t"), source: "agent:other" })
    .rejected("unauthorized");
  const failed = request("failed", "t", "exp_t");
  scenario.when(failed).accepted();
  scenario.when(request("failed", "t", "exp_t")).rejected("task_error", {
    winner: { event_id: failed.id, type: "task.failed", seq: scenario.log.length - 1 },
  });
});

test("C10 where the expiry only stops it, nothing fails it", () => {
  const scenario = working("t");
  see(scenario, inter("requested", "t", { by: BOSS, id: "int_t" }));
  expire(scenario, "t", { onGraceExpired: "force_stop" });
  scenario.when(request("failed", "t", "exp_t")).rejected("unauthorized");
  scenario.when(ev("progress", "t", { by: WORKER })).rejected("task_error");
});

test("5.7 only the service's own entry says that a grace has expired", () => {
  const scenario = working("t");
  const payload = { expired: true };
  see(scenario, inter("requested", "t", { by: BOSS, id: "exp_t", policy: "force_stop", payload }));
  scenario.when(request("failed", "t", "exp_t")).rejected("unauthorized");
});

test("5.7 what has become due stays due when somebody resumes it meanwhile", () => {
  const scenario = working("t");
  see(scenario, inter("requested", "t", { by: BOSS, id: "int_t" }));
  expire(scenario, "t");
  see(scenario, inter("resumed", "t", { checkpoint: "ck" }));
  scenario.when(ev("progress", "t", { by: WORKER })).accepted();
  scenario.when(request("failed", "t", "exp_t")).accepted();
});

test("5.7 a resumption without its checkpoint lets the manager fail the task", () => {
  const scenario = working("t", "other");
  see(scenario, ...saved("t"), ...saved("other"), missing("t", "rej_1"));
  scenario.when(request("failed", "other", "rej_1")).rejected("unauthorized");
  scenario.when(request("failed", "t", "rej_2")).rejected("unauthorized");
  scenario.when(request("failed", "t", "rej_1")).accepted();
});

test("5.7 any other refusal there, and one of a task that runs, is no reason", () => {
  const scenario = working("t");
  see(scenario, missing("t", "rej_0"), ...saved("t"));
  const other = missing("t", "rej_1");
  const error = { code: "task_error", message: "x", retryable: false, details: { task_id: "t" } };
  see(scenario, { ...other, payload: { error } });
  see(scenario, { ...missing("t", "rej_2"), source: "service:other" });
  for (const cause of ["rej_0", "rej_1", "rej_2"]) {
    scenario.when(request("failed", "t", cause)).rejected("unauthorized");
  }
});

test("5.7 a cancelled interruption ends the task through the manager, and no work counts before", () => {
  const scenario = working("t");
  see(scenario, inter("requested", "t", { by: BOSS }), inter("acknowledged", "t"));
  see(scenario, inter("cancelled", "t", { by: BOSS, id: "cxl_t" }));
  for (const verb of ["progress", "completed"]) {
    scenario
      .when(ev(verb, "t", { by: WORKER }))
      .rejected("task_error", { state: "cancelled", expected: ["task.cancelled"] });
  }
  scenario.when(request("failed", "t", "cxl_t")).rejected("unauthorized");
  scenario.when(request("cancelled", "t", "cxl_t")).accepted();
  assert.equal(stateOf(scenario, "t"), "cancelled");
});

test("5.7 an end that the manager asks for takes the children with it, leaves first", () => {
  for (const verb of ["cancelled", "failed"]) {
    const scenario = tokenWorld().given(
      submitted("t"),
      ev("started", "t", { by: WORKER }),
      ev("submitted", "c", { by: WORKER, parent: "t" }),
      ev("submitted", "g", { by: WORKER, parent: "c" }),
    );
    see(scenario, inter("requested", "t", { by: BOSS, id: "int_t" }));
    if (verb === "failed") expire(scenario, "t", { id: "due" });
    else see(scenario, inter("cancelled", "t", { by: BOSS, id: "due" }));
    scenario.when(request(verb, "t", "due")).begun(`task.${verb}`);
    assert.deepEqual(said(scenario.settle()), ["cancelled g", "cancelled c", `${verb} t`]);
  }
});

test("A15 a cancel request ends a stopped child without waiting for its runner", () => {
  for (const [, stop] of stops) {
    const scenario = stop(family(), "c");
    scenario.given(ev("cancel.requested", "p", { by: BOSS, payload: { grace_period_ms: 1e9 } }));
    assert.deepEqual(said(scenario.settle()), ["cancelled c"]);
    scenario.given(ev("cancelled", "p", { by: BOSS }));
  }
});

test("A15 nor does it wait for the runner of a child that is stopped later, or of the task itself", () => {
  const later = family();
  later.given(ev("cancel.requested", "p", { by: BOSS, payload: { grace_period_ms: 1e9 } }));
  assert.deepEqual(said(later.settle()), ["cancel.requested c"]);
  see(later, ...saved("c"));
  assert.deepEqual(said(later.settle()), ["cancelled c"]);

  const itself = see(working("t"), ...saved("t"));
  itself.given(ev("cancel.requested", "t", { by: BOSS, payload: { grace_period_ms: 1e9 } }));
  assert.deepEqual(said(itself.settle()), ["cancelled t"]);
});

test("A15 a stopped parent between is cancelled when its last child has ended", () => {
  const scenario = family();
  scenario.given(
    ev("submitted", "g", { by: WORKER, parent: "c" }),
    ev("started", "g", { by: WORKER }),
  );
  see(scenario, ...saved("c"));
  scenario.given(ev("cancel.requested", "p", { by: BOSS, payload: { grace_period_ms: 1e9 } }));
  assert.deepEqual(said(scenario.settle()), ["cancel.requested g"]);
  scenario.given(ev("cancelled", "g", { by: WORKER }));
  assert.deepEqual(said(scenario.settle()), ["cancelled c"]);
});

test("A15 one that is resumed in time is its runner's again", () => {
  const scenario = family();
  scenario.given(ev("cancel.requested", "p", { by: BOSS, payload: { grace_period_ms: 50 } }));
  scenario.settle();
  see(scenario, ...saved("c"), inter("resumed", "c", { checkpoint: "ck_c" }));
  assert.deepEqual(said(scenario.settle()), []);
  assert.deepEqual(said(scenario.settle(scenario.now + 50)), ["cancelled c", "cancelled p"]);
});

test("5.7 cancelling a parent takes a stopped child with it at once", () => {
  const scenario = see(family(), ...saved("c"));
  scenario.when(ev("cancelled", "p", { by: BOSS })).begun("task.cancelled");
  assert.deepEqual(said(scenario.settle()), ["cancelled c", "cancelled p"]);
});

test("5.1 a stopped task outlives the session that had it; resumed, it is the next one's to lose", () => {
  const loss = (id: string): Envelope =>
    ofSession("error", id, {
      error: { code: "session_timeout", message: "silent", retryable: true },
    });
  const scenario = tokenWorld();
  for (const id of ["s1", "s2"]) openSession(scenario, id, undefined, { source: WORKER });
  for (const task of ["t", "runs"]) {
    scenario.given(
      submitted(task),
      ev("started", task, { by: WORKER, more: { session_id: "s1" } }),
    );
  }
  see(scenario, ...saved("t"));
  const lose = (id: string): string[] => {
    const envelope = { ...loss(id), source: scenario.service };
    scenario.append({ kind: "event", envelope, cause: { owed: envelope.id }, tenant: "acme" });
    return said(scenario.settle());
  };
  assert.deepEqual(
    lose("s1").filter((text) => !text.startsWith("sion")),
    ["failed runs"],
  );
  assert.equal(stateOf(scenario, "t"), "started");
  const resumed = inter("resumed", "t", { checkpoint: "ck_t", session: "s2" });
  see(scenario, resumed);
  scenario.when(ev("progress", "t", { by: WORKER, more: { session_id: "s2" } })).accepted();
  assert.deepEqual(lose("s2"), ["failed t"]);
});

test("5.1 resumed in the session that has it already, it is still that session's to lose", () => {
  const scenario = tokenWorld();
  openSession(scenario, "s1", undefined, { source: WORKER });
  scenario.given(submitted("t"), ev("started", "t", { by: WORKER, more: { session_id: "s1" } }));
  see(scenario, ...saved("t"), inter("resumed", "t", { checkpoint: "ck_t", session: "s1" }));
  const error = { code: "session_timeout", message: "silent", retryable: true };
  const envelope = { ...ofSession("error", "s1", { error }), source: scenario.service };
  scenario.append({ kind: "event", envelope, cause: { owed: envelope.id }, tenant: "acme" });
  assert.deepEqual(said(scenario.settle()), ["failed t"]);
});

test("5.1 under `interrupt` and `keep` the coordinator fails none of them", () => {
  for (const orphanedTasks of ["interrupt", "keep"] as const) {
    const scenario = tokenWorld({ orphanedTasks });
    openSession(scenario, "s1", undefined, { source: WORKER });
    scenario.given(submitted("t"), ev("started", "t", { by: WORKER, more: { session_id: "s1" } }));
    const error = { code: "session_timeout", message: "silent", retryable: true };
    const envelope = { ...ofSession("error", "s1", { error }), source: scenario.service };
    scenario.append({ kind: "event", envelope, cause: { owed: envelope.id }, tenant: "acme" });
    assert.deepEqual(said(scenario.settle()), []);
    assert.equal(stateOf(scenario, "t"), "started");
  }
});

test("what is said of a task that has ended, of another tenant's, or of none changes nothing", () => {
  const scenario = working("t", "over").given(ev("completed", "over", { by: WORKER }));
  const before = JSON.stringify(describeState(scenario.state));
  see(scenario, ...saved("over"), ...saved("nobody"), forced("nobody"));
  for (const envelope of saved("t")) {
    scenario.observe("interruptions", envelope, { tenant: "other" });
  }
  const ended = inter("cancelled", "t", { by: MANAGER, payload: { reason: "the task has ended" } });
  scenario.observe("interruptions", ended, { owed: "end" });
  assert.equal(JSON.stringify(describeState(scenario.state)), before);
});

test("a log that begins in the middle is understood from there on", () => {
  const stopped = see(working("t"), inter("saved", "t", { checkpoint: "ck", cause: "int_old" }));
  stopped
    .when(ev("progress", "t", { by: WORKER }))
    .rejected("task_error", { interruption: "int_old", state: "saved" });
  see(stopped, inter("resumed", "t", { checkpoint: "ck" }));
  stopped.when(ev("progress", "t", { by: WORKER })).accepted();
  see(stopped, inter("resumed", "t", { checkpoint: "ck" }));
  stopped.when(ev("progress", "t", { by: WORKER })).accepted();
  see(stopped, inter("cancelled", "t", { by: BOSS, id: "cxl" }));
  stopped.when(request("cancelled", "t", "cxl")).accepted();
});

test("reads and `why` name the interruption", () => {
  const scenario = working("t");
  const read = () => readTask(scenario.state, "acme", "t")?.interruption;
  const reason = () => why(scenario.state, "acme", "t", scenario.now) ?? "";
  assert.equal(read(), undefined);
  const [asked, acknowledged, done] = saved("t");
  assert.ok(asked && acknowledged && done);
  see(scenario, asked);
  assert.deepEqual(read(), {
    id: "int_t",
    policy: "save_and_stop",
    state: "requested",
    is_stopped: false,
  });
  assert.match(reason(), /asked by int_t to stop \(save_and_stop, requested\)/);
  see(scenario, acknowledged, done);
  assert.deepEqual(read(), {
    id: "int_t",
    policy: "save_and_stop",
    state: "saved",
    is_stopped: true,
    since: "HV_LOG_INTERRUPTIONS:3",
    stopped_at_ms: scenario.now,
    checkpoint_id: "ck_t",
  });
  assert.match(
    reason(),
    /is stopped since .*Z by int_t \(save_and_stop\), saved as checkpoint ck_t, waits for interruption\.resumed\.$/,
  );
  see(scenario, inter("resumed", "t", { checkpoint: "ck_t" }));
  assert.equal(read(), undefined);
  see(scenario, forced("t"));
  assert.match(reason(), /without a checkpoint, waits for interruption\.resumed/);
  see(scenario, inter("cancelled", "t", { by: BOSS }));
  assert.match(reason(), /waits to be cancelled/);
});

test("the same entries in the same order give the same state", () => {
  const scenario = working("t", "u");
  see(scenario, ...saved("t"));
  scenario.when(ev("progress", "u", { by: WORKER })).accepted();
  expire(see(scenario, inter("requested", "u", { by: BOSS, id: "int_u" })), "u");
  scenario.given(request("failed", "u", "exp_u"));
  see(scenario, inter("resumed", "t", { checkpoint: "ck_t" }));
  assert.deepEqual(describeState(scenario.refold()), describeState(scenario.state));
});
