/** Several processes of one agent, each in a session of its own: which of them has a task (spec 5.1, 5.4, 5.6). */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Envelope } from "@harmovela/envelope";
import { owner, task as readTask } from "../src/index.ts";
import { del, requested, standing, tokenWorld } from "./delegation-support.ts";
import { ofSession, openSession } from "./family-support.ts";
import { ev, stateOf, type World } from "./support.ts";

const WORKER = "agent:worker";
const WORK = ["started", "progress", "output", "blocked", "completed", "failed", "timed_out"];

/** The worker's sessions s1 and s2, and one of agent:other. */
function sessions(scenario: World): World {
  for (const id of ["s1", "s2"]) openSession(scenario, id, undefined, { source: WORKER });
  return openSession(scenario, "others", undefined, { source: "agent:other" });
}

/** An event of the worker in a session, or in none. */
function work(name: string, session?: string): Envelope {
  const { session_id, ...envelope } = ev(name, "t", { by: WORKER });
  return session === undefined ? envelope : { ...envelope, session_id: session };
}

function submitted(): World {
  return sessions(tokenWorld()).given(ev("submitted", "t", { by: "agent:boss", target: WORKER }));
}

test("5.4 who takes a task in its own session works on it there, and nowhere else", () => {
  for (const take of ["accepted", "started"]) {
    for (const name of WORK) {
      const scenario = submitted().given(work(take, "s1"));
      if (take === "accepted" && name !== "started") scenario.given(work("started", "s1"));
      if (take === "started" && name === "started") scenario.given(work("blocked", "s1"));
      for (const elsewhere of ["s2", "never opened", "others", undefined]) {
        scenario
          .when(work(name, elsewhere))
          .rejected("unauthorized", { session_id: "s1", owner: WORKER, task_id: "t" });
      }
      scenario.when(work(name, "s1")).accepted();
    }
  }
});

test("5.4 a failure that has descendants to end is held to the session too", () => {
  const scenario = submitted().given(work("started", "s1"));
  scenario.given(ev("submitted", "child", { by: WORKER, parent: "t" }));
  scenario.when(work("failed", "s2")).rejected("unauthorized", { session_id: "s1" });
  scenario.when(work("failed", "s1")).begun("task.failed");
});

test("5.4 a task that is taken in no session of the taker's own is the agent's", () => {
  for (const session of [undefined, "never opened", "others"]) {
    for (const elsewhere of ["s1", undefined, "never opened"]) {
      const scenario = submitted().given(work("started", session));
      scenario.when(work("progress", elsewhere)).accepted();
    }
  }
});

test("5.4 cancelling is the agent's, wherever it speaks", () => {
  for (const name of ["cancel.requested", "cancelled"]) {
    submitted().given(work("started", "s1")).when(work(name, "s2")).accepted();
  }
});

test("5.1 when its session has closed the agent goes on with it in another", () => {
  const scenario = submitted().given(work("started", "s1"));
  scenario.given(ofSession("closed", "s1", {}, { source: WORKER })).settle();
  assert.equal(stateOf(scenario, "t"), "started");
  for (const session of ["s2", undefined]) scenario.when(work("progress", session)).accepted();
});

test("5.6 the acceptance of an offer binds the task to its session", () => {
  const scenario = sessions(requested()).given(del("accepted", { session: "s1" }));
  const started = (session?: string) => ({
    ...work("started", session),
    task_id: "c",
    payload: {},
  });
  for (const elsewhere of ["s2", undefined]) {
    scenario.when(started(elsewhere)).rejected("unauthorized", { session_id: "s1" });
  }
  scenario
    .when(del("rejected", { session: "s2" }))
    .rejected("protocol_error", { session_id: "s1" });
  scenario.when(del("rejected")).rejected("protocol_error", { session_id: "s1" });
  scenario.given(started("s1"));
  scenario.given(del("handoff.completed"));
  scenario.when({ ...work("progress", "s2"), task_id: "c", payload: {} }).rejected("unauthorized");
  scenario.when({ ...work("progress", "s1"), task_id: "c", payload: {} }).accepted();
});

test("5.6 a task that is given back is nobody's, and the next acceptance binds it again", () => {
  const scenario = sessions(requested()).given(
    ev("submitted", "c", { by: "agent:planner", parent: "p" }),
    del("accepted", { session: "s1" }),
    del("rejected", { session: "s1" }),
    del("requested"),
    del("accepted", { session: "s2" }),
  );
  const started = (session: string) => ({ ...work("started", session), task_id: "c", payload: {} });
  scenario.when(started("s1")).rejected("unauthorized", { session_id: "s2" });
  scenario.when(started("s2")).accepted();
});

test("5.6 a handoff binds the task to the session that accepted, not before", () => {
  const scenario = sessions(tokenWorld()).given(
    ev("submitted", "c", { by: WORKER, target: WORKER }),
    { ...work("started", "s1"), task_id: "c", payload: {} },
    del("requested", { from: WORKER, to: "agent:other", parent: undefined }),
    del("accepted", { from: WORKER, to: "agent:other", parent: undefined, session: "others" }),
  );
  const by = (source: string, session_id: string): Envelope => {
    return { ...work("progress", session_id), source, task_id: "c", payload: {} };
  };
  scenario.when(by(WORKER, "s1")).accepted();
  scenario.when(by(WORKER, "s2")).rejected("unauthorized", { session_id: "s1" });
  scenario.given(del("handoff.completed", { from: WORKER, to: "agent:other", parent: undefined }));
  assert.equal(standing(scenario), "handed_off agent:other");
  scenario.when(by("agent:other", "s2")).rejected("unauthorized", { session_id: "others" });
  scenario.when(by("agent:other", "others")).accepted();
});

test("5.6 an escalation binds the task to the supervisor's session once it is handed over", () => {
  const scenario = sessions(requested()).given(
    del("accepted", { session: "s1" }),
    del("escalated", { by: "agent:planner", to: "agent:other" }),
    del("accepted", { to: "agent:other", session: "others" }),
    del("handoff.completed", { to: "agent:other" }),
  );
  const by = (source: string, session_id: string): Envelope => {
    return { ...work("started", session_id), source, task_id: "c", payload: {} };
  };
  scenario.when(by(WORKER, "s1")).rejected("unauthorized", { owner: "agent:other" });
  scenario.when(by("agent:other", "s2")).rejected("unauthorized", { session_id: "others" });
  scenario.when(by("agent:other", "others")).accepted();
});

test("reads name the session that has a task while it lives", () => {
  const scenario = submitted().given(work("started", "s1"));
  const named = () => [
    readTask(scenario.state, scenario.tenant, "t")?.session_id,
    owner(scenario.state, scenario.tenant, "t")?.session_id,
  ];
  assert.deepEqual(named(), ["s1", "s1"]);
  scenario.given(ofSession("closed", "s1", {}, { source: WORKER }));
  assert.deepEqual(named(), [undefined, undefined]);
});
