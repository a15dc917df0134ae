/** A worker that died: its session is lost, and so are the tasks that it had (spec 5.1, 9.5). */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Envelope, HeartbeatMemory } from "@harmovela/envelope";
import {
  createTaskDecider,
  DEFAULT_TASK_SETTINGS,
  describeState,
  type TaskSettings,
} from "../src/index.ts";
import type { TaskState } from "../src/state.ts";
import { del, requested, tokenWorld } from "./delegation-support.ts";
import { errorOf, event, ofSession, openSession, owedListening } from "./family-support.ts";
import { envelopesOf, ev, payloadOf, SERVICE, said, stateOf, type World } from "./support.ts";

const WORKER = "agent:worker";
const INTERVAL = 1000;

function beating(scenario: World, id = "s1"): World {
  return openSession(scenario, id, { heartbeat_interval_ms: INTERVAL }, { source: WORKER });
}

function started(task: string, parent?: string): Envelope[] {
  const fields = { by: "agent:boss", target: WORKER, more: { session_id: "boss" } };
  return [
    ev("submitted", task, parent === undefined ? fields : { ...fields, parent }),
    ev("started", task, { by: WORKER, more: { session_id: "s1" } }),
  ];
}

/** The worker has so many tasks in its session. */
function working(tasks: readonly string[], settings: Partial<TaskSettings> = {}): World {
  return beating(tokenWorld(settings)).given(...tasks.flatMap((task) => started(task)));
}

/** Three intervals pass; the service says which session is lost, and nothing more yet. */
function lose(scenario: World): Envelope {
  const memory = new HeartbeatMemory(scenario.now);
  scenario.wait(3 * INTERVAL);
  const owed = owedListening(scenario, memory);
  assert.ok(owed && "event" in owed && owed.event.type === "session.error");
  const { event: envelope, cause, tenant } = owed;
  scenario.append({ kind: "event", envelope, cause: { owed: cause }, tenant });
  return envelope;
}

test("5.1 the tasks of a lost session fail, each once, with the loss as cause", () => {
  const scenario = working(["one", "two"]);
  const error = lose(scenario);
  const entries = scenario.settle();
  assert.deepEqual(said(entries).toSorted(), ["failed one", "failed two"]);
  for (const envelope of envelopesOf(entries)) {
    assert.equal(envelope.source, SERVICE);
    assert.equal(envelope.target, "agent:boss");
    assert.equal(envelope.causation_id, error.id);
    const { code, retryable, details } = errorOf(envelope);
    assert.deepEqual([code, retryable], ["session_timeout", true]);
    const { session_id, owner } = details as { session_id?: string; owner?: string };
    assert.deepEqual([session_id, owner], ["s1", WORKER]);
  }
  assert.deepEqual(describeState(scenario.refold()), describeState(scenario.state));
});

test("5.1 what the agent has elsewhere, or took in no session of its own, stays", () => {
  const scenario = beating(working(["lost"]), "s2").given(
    ev("submitted", "in s2", { by: "agent:boss" }),
    ev("started", "in s2", { by: WORKER, more: { session_id: "s2" } }),
    ev("submitted", "agent's", { by: "agent:boss" }),
    ev("started", "agent's", { by: WORKER, more: { session_id: "never opened" } }),
    ev("submitted", "waiting", { by: "agent:boss", target: WORKER }),
  );
  lose(scenario);
  assert.deepEqual(said(scenario.settle()), ["failed lost"]);
});

test("a deployment keeps the tasks of a lost session for the agent's other sessions", () => {
  const scenario = working(["t"], { orphanedTasks: "keep" });
  lose(scenario);
  assert.deepEqual(scenario.settle(), []);
  scenario.when(ev("progress", "t", { by: WORKER, more: { session_id: "s2" } })).accepted();
});

test("5.1 a session that ends in another way leaves its tasks alone", () => {
  for (const [name, payload] of [
    ["closed", {}],
    ["error", { error: { code: "session_error", message: "gone", retryable: false } }],
  ] as const) {
    const scenario = working(["t"]).given(ofSession(name, "s1", payload, { source: WORKER }));
    assert.deepEqual(said(scenario.settle()), []);
  }
});

test("an agent that says itself that it was too late loses its tasks as well", () => {
  const error = { code: "session_timeout", message: "late", retryable: true };
  const scenario = working(["t"]).given(ofSession("error", "s1", { error }, { source: WORKER }));
  assert.deepEqual(said(scenario.settle()), ["failed t"]);
});

test("5.5 a lost task with live descendants ends them first, leaves first", () => {
  const scenario = working(["root"]).given(
    ev("submitted", "child", { by: WORKER, parent: "root" }),
    ev("submitted", "leaf", { by: "agent:x", parent: "child" }),
  );
  const error = lose(scenario);
  const entries = scenario.settle();
  assert.deepEqual(said(entries), [
    "begun failed",
    "cancelled leaf",
    "cancelled child",
    "failed root",
  ]);
  const last = envelopesOf(entries).at(-1);
  assert.equal(last?.causation_id, error.id);
  assert.equal(payloadOf(envelopesOf(entries)[0]).root_outcome, "failed");
});

test("of a parent and a child that one instance had, both fail", () => {
  const scenario = working(["root"]).given(...started("child", "root"));
  lose(scenario);
  assert.deepEqual(said(scenario.settle()), ["failed child", "failed root"]);
});

test("a child that was taken before its parent ends with it", () => {
  const scenario = beating(tokenWorld());
  const [root, startRoot] = started("root");
  const [child, startChild] = started("child", "root");
  assert.ok(root && startRoot && child && startChild);
  scenario.given(root, child, startChild, startRoot);
  lose(scenario);
  assert.deepEqual(said(scenario.settle()), ["begun failed", "cancelled child", "failed root"]);
});

test("whatever ends a lost task first has ended it", () => {
  for (const name of ["completed", "failed", "cancelled"]) {
    const scenario = working(["t"]);
    lose(scenario);
    scenario.given(ev(name, "t", { by: WORKER, more: { session_id: "s2" } }));
    assert.deepEqual(said(scenario.settle()), []);
  }
});

test("in a subtree that is being ended the plan ends it; a plan that is given up leaves it owed", () => {
  for (const isGivenUp of [false, true]) {
    const scenario = beating(tokenWorld()).given(
      ev("submitted", "root", { by: "agent:boss" }),
      ev("submitted", "first", { by: "agent:boss", parent: "root" }),
      ...started("t", "root"),
    );
    const cancel = ev("cancelled", "root", { by: "agent:boss" });
    scenario.when(cancel).begun("task.cancelled");
    lose(scenario);
    assert.deepEqual(said([scenario.step()].flatMap((entry) => entry ?? [])), ["cancelled first"]);
    // Its turn comes, and it has nothing to say while the plan is under way.
    assert.ok(scenario.owed());
    if (isGivenUp) scenario.fail(cancel.id);
    const rest = isGivenUp ? ["failed t"] : ["cancelled t", "cancelled root"];
    assert.deepEqual(said(scenario.settle()), rest);
  }
});

test("a plan lets go of a lost task that it has ended", () => {
  const scenario = beating(tokenWorld()).given(
    ev("submitted", "root", { by: "agent:boss" }),
    ...started("t", "root"),
    ev("submitted", "last", { by: "agent:boss", parent: "root" }),
  );
  lose(scenario);
  const cancel = ev("cancelled", "root", { by: "agent:boss" });
  scenario.when(cancel).begun("task.cancelled");
  const asleep = () => scenario.state.tenants.get(scenario.tenant)?.plans.get(cancel.id)?.orphans;
  assert.ok(scenario.owed());
  assert.equal(asleep()?.size, 1);
  assert.deepEqual(said([scenario.step()].flatMap((entry) => entry ?? [])), ["cancelled t"]);
  assert.equal(asleep()?.size, 0);
});

test("a lost task that was asked to stop fails without waiting for its grace", () => {
  const scenario = working(["t"]);
  const grace = { grace_period_ms: 60_000 };
  scenario.given(ev("cancel.requested", "t", { by: "agent:boss", payload: grace }));
  scenario.settle();
  lose(scenario);
  assert.deepEqual(said(scenario.settle()), ["failed t"]);
  assert.deepEqual(said(scenario.settle(scenario.now + 60_000)), []);
});

test("a failure that cannot be written leaves that task as it is, and the others fail", () => {
  const scenario = working(["one", "two", "three"]);
  lose(scenario);
  const owed = scenario.owed();
  assert.ok(owed && "event" in owed);
  scenario.fail(owed.event.id);
  assert.equal(said(scenario.settle()).length, 2);
  assert.equal(stateOf(scenario, String(owed.event.task_id)), "started");
});

test("a crash after any entry: the fold goes on where it was, and nothing is said twice", () => {
  const scenario = working(["root", "other"]).given(
    ev("submitted", "child", { by: WORKER, parent: "root" }),
  );
  lose(scenario);
  const whole: string[] = [];
  for (;;) {
    scenario.state = scenario.refold();
    const entry = scenario.step();
    if (entry === undefined) break;
    whole.push(...said([entry]));
  }
  assert.deepEqual(whole, ["failed other", "begun failed", "cancelled child", "failed root"]);
});

test("a standby that never asks what is owed holds nothing of what has failed", () => {
  const scenario = working(["one", "two"]).given(
    ev("submitted", "child", { by: WORKER, parent: "one" }),
  );
  lose(scenario);
  assert.ok(scenario.refold().ring.head);
  scenario.settle();
  assert.equal(scenario.refold().ring.head, undefined);
  assert.equal(scenario.state.ring.head, undefined);
});

test("a cascade that cannot be written leaves its root as it is, in every fold", () => {
  const scenario = working(["root"]).given(
    ev("submitted", "child", { by: WORKER, parent: "root" }),
  );
  lose(scenario);
  const begun = scenario.step();
  assert.ok(begun?.kind === "begun");
  assert.ok(scenario.owed());
  scenario.fail(begun.plan.id);
  assert.deepEqual(scenario.settle(), []);
  assert.deepEqual(describeState(scenario.refold()), describeState(scenario.state));
  scenario.state = scenario.refold();
  assert.deepEqual(scenario.settle(), []);
  assert.equal(stateOf(scenario, "root"), "started");
});

test("a deployment that lets tasks fail from now on: a snapshot owes what a whole fold owes", () => {
  const scenario = working(["one", "two"], { orphanedTasks: "keep" });
  lose(scenario);
  assert.deepEqual(scenario.settle(), []);
  const now = createTaskDecider(DEFAULT_TASK_SETTINGS);
  const owed = (state: TaskState) => now.owed(state, scenario.now, { requests: new Set<string>() });
  const whole = now.initial();
  for (const entry of scenario.log) now.evolve(whole, entry);
  now.snapshots?.adopt?.(scenario.state);
  const first = owed(scenario.state);
  assert.ok(first && "event" in first);
  assert.deepEqual(first, owed(whole));
  assert.deepEqual(describeState(scenario.state), describeState(whole));
});

test("5.6 what another process gives back before its turn comes does not fail", () => {
  const scenario = beating(requested()).given(del("accepted", { session: "s1" }));
  lose(scenario);
  scenario.given(del("rejected"));
  assert.deepEqual(said(scenario.settle()), []);
});

test("5.6 an accepted offer fails with its worker, and its delegator is told", () => {
  const scenario = beating(requested()).given(del("accepted", { session: "s1" }));
  lose(scenario);
  const [failed, ...more] = envelopesOf(scenario.settle());
  assert.deepEqual(more, []);
  assert.deepEqual([failed?.type, failed?.task_id], ["task.failed", "c"]);
  assert.equal(failed?.target, "agent:planner");
});

test("5.6 what is handed over to a worker that was lost meanwhile fails at once", () => {
  const scenario = beating(tokenWorld()).given(
    ev("submitted", "c", { by: "agent:planner" }),
    ev("started", "c", { by: "agent:planner" }),
    del("requested", { parent: undefined }),
    del("accepted", { parent: undefined, session: "s1" }),
  );
  lose(scenario);
  assert.deepEqual(said(scenario.settle()), []);
  scenario.given(del("handoff.completed", { parent: undefined }));
  assert.deepEqual(said(scenario.settle()), ["failed c"]);
});

test("cascades of lost tasks take turns with other plans", () => {
  const lost = ["one", "two", "three"];
  const scenario = working(lost).given(
    ...lost.map((id) => ev("submitted", `below ${id}`, { by: "agent:boss", parent: id })),
    ev("submitted", "root", { by: "agent:boss" }),
    ev("submitted", "a", { by: "agent:boss", parent: "root" }),
  );
  lose(scenario);
  scenario.when(ev("cancelled", "root", { by: "agent:boss" })).begun("task.cancelled");
  const first = said([scenario.step(), scenario.step()].flatMap((entry) => entry ?? []));
  assert.deepEqual(first, ["begun failed", "cancelled a"]);
});

test("the failures take turns with other steps, and the loss itself costs the same whatever was lost", () => {
  const count = 5_000;
  const scenario = working(Array.from({ length: count }, (_, i) => `t${i}`));
  scenario.given(ev("submitted", "root", { by: "agent:boss" }));
  for (const id of ["a", "b"]) {
    scenario.given(ev("submitted", id, { by: "agent:boss", parent: "root" }));
  }
  lose(scenario);
  scenario.when(ev("cancelled", "root", { by: "agent:boss" })).begun("task.cancelled");
  const first = said(Array.from({ length: 8 }, () => scenario.step()).flatMap((e) => e ?? []));
  assert.ok(first.includes("cancelled root"), first.join());
  const owed = scenario.owed();
  assert.equal(owed && "urgency" in owed && owed.urgency, "step");
  scenario.when(event("environment.observed")).accepted();
  assert.equal(
    scenario.settle().length,
    count - first.filter((s) => s.startsWith("failed")).length,
  );
});
