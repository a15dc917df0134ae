/** What is over is remembered for the retention, and then forgotten (architecture, section 6). */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Envelope, formatInstant } from "@harmovela/envelope";
import { reachable } from "@harmovela/testkit";
import { children } from "../src/delegation/reads.ts";
import { findDelegation } from "../src/delegation/state.ts";
import {
  createTaskDecider,
  DEFAULT_TASK_SETTINGS,
  describeState,
  history,
  task as readTask,
  tree,
  why,
} from "../src/index.ts";
import type { Task } from "../src/state.ts";
import { claims, del, parented, signed } from "./delegation-support.ts";
import { event } from "./family-support.ts";
import { ev, running, stateOf, type World, world } from "./support.ts";

const RETENTION = 1000;
const tick = (scenario: World): World => scenario.given(event("environment.observed"));

function assertRefused(scenario: World, envelope: Envelope, message: string): void {
  const { decision } = scenario.judge(envelope);
  assert.equal("reject" in decision && decision.reject.message, message);
}

function tenantOf(scenario: World) {
  const tenant = scenario.state.tenants.get(scenario.tenant);
  assert.ok(tenant);
  return tenant;
}

test("an ended task is remembered until the retention has passed, and its id is then free", () => {
  const scenario = world({ retentionMs: RETENTION }).given(
    ...running("t"),
    ev("completed", "t", { id: "evt_won" }),
  );
  tick(scenario.wait(RETENTION));
  scenario.when(ev("failed", "t")).rejected("task_error", { state: "completed" });
  const winner = { event_id: "evt_won", type: "task.completed", seq: 3 };
  scenario.when(ev("submitted", "t")).rejected("task_error", { winner });
  tick(scenario.wait(1));
  assertRefused(scenario, ev("failed", "t"), "task t is not known");
  for (const read of [readTask, tree, history]) {
    assert.equal(read(scenario.state, scenario.tenant, "t"), undefined);
  }
  assert.equal(why(scenario.state, scenario.tenant, "t", scenario.now), undefined);

  scenario.given(ev("submitted", "t", { by: "agent:b" }));
  const view = readTask(scenario.state, scenario.tenant, "t");
  assert.deepEqual(
    [view?.state, view?.submitter, view?.owner, view?.winner],
    ["submitted", "agent:b", undefined, undefined],
  );
  assert.equal(history(scenario.state, scenario.tenant, "t")?.total, 1);
});

test("a live task is never forgotten, nor are its ancestors and its plan", () => {
  const scenario = world({ retentionMs: RETENTION }).given(
    ...running("p"),
    ...running("c", { parent: "p" }),
    ev("cancel.requested", "p", { payload: { grace_period_ms: 100 * RETENTION } }),
  );
  scenario.settle();
  for (let i = 0; i < 50; i += 1) tick(scenario.wait(RETENTION));
  assert.deepEqual([stateOf(scenario, "p"), stateOf(scenario, "c")], ["started", "started"]);
  scenario.wait(50 * RETENTION).settle();
  assert.deepEqual([stateOf(scenario, "p"), stateOf(scenario, "c")], ["cancelled", "cancelled"]);
});

test("a long grace holds on to nothing that has ended", () => {
  const scenario = world({ retentionMs: RETENTION }).given(
    ...running("p"),
    ev("submitted", "c", { parent: "p", target: "agent:b" }),
    ...running("g", { parent: "c" }),
    ev("cancel.requested", "p", { payload: { grace_period_ms: 100 * RETENTION } }),
    // Nobody runs c: now it waits for the service, and its target is quicker.
    ev("completed", "g"),
    ev("failed", "c", { by: "agent:b" }),
  );
  const plan = scenario.state.tenants.get(scenario.tenant)?.tasks.get("p")?.plan;
  assert.ok(plan);
  tick(scenario.wait(RETENTION + 1));
  const held = [...reachable(plan)].filter((value) => (value as Partial<Task>).ended !== undefined);
  assert.deepEqual(held, []);
});

test("a parent keeps the count of all its children; how many of them are forgotten is said", () => {
  const scenario = world({ retentionMs: RETENTION }).given(...running("p"));
  for (const id of ["a", "b", "c"]) scenario.given(...running(id, { parent: "p" }));
  scenario.given(ev("completed", "a"), ev("completed", "b"));
  tick(scenario.wait(RETENTION + 1));
  const { state, tenant } = scenario;
  const { children: count, live_children, forgotten_children } = readTask(state, tenant, "p") ?? {};
  assert.deepEqual([count, live_children, forgotten_children], [3, 1, 2]);
  assert.equal(tree(state, tenant, "p")?.nodes.length, 2);
  const page = children(state, tenant, "p", { limit: 10 });
  assert.deepEqual(
    page?.tasks.map(({ task_id }) => task_id),
    ["c"],
  );
  assert.equal(children(state, tenant, "p", { limit: 10, after: "a" }), undefined);
  scenario.given(ev("completed", "c"), ev("completed", "p"));
});

test("a whole tree is forgotten from its leaves up, whatever order its branches ended in", () => {
  const scenario = world({ retentionMs: RETENTION }).given(...running("p"));
  for (const id of ["a", "b"]) {
    scenario.given(...running(id, { parent: "p" }), ...running(`${id}1`, { parent: id }));
  }
  scenario.given(ev("completed", "b1"), ev("completed", "b"));
  scenario.wait(10).when(ev("failed", "p")).begun("task.failed");
  scenario.settle();
  tick(scenario.wait(RETENTION - 9));
  assert.deepEqual([...tenantOf(scenario).tasks.keys()], ["p", "a", "a1"]);
  tick(scenario.wait(10));
  assert.equal(scenario.state.tenants.size, 0, "a tenant of whom nothing is left");
  assert.equal(scenario.state.over.size, 0);
});

test("one entry lets go of a bounded number, and late events are still told who won", () => {
  const scenario = world({ retentionMs: RETENTION });
  for (let i = 0; i < 200; i += 1) scenario.given(...running(`t${i}`), ev("completed", `t${i}`));
  scenario.wait(RETENTION + 1);
  const left: number[] = [];
  for (let i = 0; i < 4; i += 1) {
    tick(scenario);
    left.push(scenario.state.over.size);
    if (i === 0) scenario.when(ev("failed", "t199")).rejected("task_error", { state: "completed" });
  }
  assert.deepEqual(left, [136, 8, 0, 0]);
  assertRefused(scenario, ev("failed", "t199"), "task t199 is not known");
});

test("a log that was written under a shorter retention folds: the id belongs to the new task", () => {
  const scenario = world({ retentionMs: RETENTION }).given(
    ...running("p"),
    ...running("c", { parent: "p" }),
    ev("completed", "c"),
  );
  tick(scenario.wait(RETENTION + 1));
  scenario.given(ev("submitted", "c", { by: "agent:b" }), ev("failed", "c", { by: "agent:b" }));
  scenario.given(ev("completed", "p"));
  tick(scenario.wait(RETENTION + 1));
  scenario.given(del("requested", { task: "c", parent: undefined }));

  const patient = createTaskDecider({ ...DEFAULT_TASK_SETTINGS, retentionMs: 2 * RETENTION });
  const state = patient.initial();
  for (const entry of scenario.log) patient.evolve(state, entry);
  const folded = readTask(state, scenario.tenant, "c");
  assert.deepEqual([folded?.state, folded?.submitter], ["submitted", "agent:planner"]);
  const late = scenario.now + 10 * RETENTION;
  const last = scenario.log.at(-1);
  assert.ok(last?.kind === "event");
  const envelope = event("environment.observed");
  patient.evolve(state, { ...last, envelope, at: late, seq: last.seq + 1 });
  assert.deepEqual([...(state.tenants.get(scenario.tenant)?.tasks.keys() ?? [])], ["c"]);
});

test("what a deadline owed and could not be written is given up, on every fold", () => {
  const scenario = world({ retentionMs: RETENTION }).given(
    ev("submitted", "t", { payload: { timeout_ms: 10 } }),
    ev("submitted", "u", { payload: { timeout_ms: 20 } }),
  );
  const owed = scenario.wait(10).owed();
  assert.ok(owed && "event" in owed);
  scenario.fail(owed.event.id);
  tick(scenario.wait(100 * RETENTION));
  const refolded = scenario.refold();
  assert.deepEqual(describeState(refolded), describeState(scenario.state));
  for (const state of [scenario.state, refolded]) {
    const next = scenario.decider.owed(state, scenario.now, { requests: new Set() });
    assert.ok(next && "event" in next && next.event.task_id === "u", JSON.stringify(next));
  }
});

test("an expiry that could not be written leaves the offer standing, and an escalation has its own", () => {
  const deadline = { deadline: formatInstant(Date.UTC(2026, 10, 30) + 50) };
  const scenario = parented().given(del("requested", { payload: deadline }));
  const owed = scenario.wait(50).owed();
  assert.ok(owed && "event" in owed);
  scenario.fail(owed.event.id);
  assert.equal(scenario.owed(), undefined);
  scenario.given(del("escalated", { to: "agent:boss" }));
  const refolded = scenario.refold();
  for (const state of [scenario.state, refolded]) {
    const next = scenario.decider.owed(state, scenario.now, { requests: new Set() });
    assert.ok(next && "event" in next && next.event.type === "delegation.rejected");
  }
});

test("a delegation goes with its task, and so does the key that made it", () => {
  const scenario = parented({ retentionMs: RETENTION }).given(
    del("requested", { payload: { key: "k" } }),
    del("accepted"),
    ev("started", "c", { by: "agent:worker" }),
  );
  const retry = (task: string) => del("requested", { task, payload: { key: "k" } });
  tick(scenario.wait(10 * RETENTION));
  scenario.when(retry("c2")).duplicate();
  scenario.given(ev("completed", "c", { by: "agent:worker" }));
  tick(scenario.wait(RETENTION));
  scenario.when(retry("c3")).duplicate();
  tick(scenario.wait(1));
  assert.equal(findDelegation(scenario.state, scenario.tenant, "c"), undefined);
  assertRefused(scenario, del("accepted"), "nobody has asked to delegate c");
  scenario.given(retry("c4"));
  assert.deepEqual([...tenantOf(scenario).delegations.byTask.keys()], ["c4"]);
  assert.equal(tenantOf(scenario).delegations.byKey.size, 1);
});

test("a rejected offer that left no task is told from a stranger's until it is forgotten", () => {
  const scenario = parented({ retentionMs: RETENTION }).given(
    del("requested", { payload: { key: "k" } }),
    del("rejected", { payload: { reason: "busy" } }),
  );
  tick(scenario.wait(RETENTION));
  scenario.when(del("accepted")).rejected("protocol_error", { state: "rejected" });
  scenario.when(del("requested", { task: "d", payload: { key: "k" } })).duplicate();
  tick(scenario.wait(1));
  assert.equal(findDelegation(scenario.state, scenario.tenant, "c"), undefined);
  assertRefused(scenario, del("accepted"), "nobody has asked to delegate c");
  scenario.given(del("requested", { payload: { key: "k" } }));
  assert.equal(findDelegation(scenario.state, scenario.tenant, "c")?.attempt, 1);
});

test("the rejection of a task that goes on is remembered as long as the task, its key no longer than others", () => {
  const scenario = world({ retentionMs: RETENTION }).given(
    ev("submitted", "c", { by: "agent:planner" }),
    del("requested", { parent: undefined, payload: { key: "k" } }),
    del("rejected", { parent: undefined, payload: { reason: "busy" } }),
  );
  tick(scenario.wait(10 * RETENTION));
  assert.equal(findDelegation(scenario.state, scenario.tenant, "c")?.state, "rejected");
  assert.equal(tenantOf(scenario).delegations.byKey.size, 0);
  scenario.given(ev("failed", "c", { by: "agent:planner" }));
  tick(scenario.wait(RETENTION + 1));
  assert.equal(scenario.state.tenants.size, 0);
});

test("an offer that gave way to another leaves its key for the retention only", () => {
  const scenario = parented({ retentionMs: RETENTION }).given(
    del("requested", { payload: { key: "k1" } }),
    del("accepted"),
  );
  const token = signed(claims(scenario.now, "jti_1"));
  scenario.given(del("handoff.completed", { token }));
  const again = { from: "agent:worker", to: "agent:sub" };
  scenario.given(del("requested", { ...again, payload: { key: "k2" } }));
  tick(scenario.wait(RETENTION));
  assert.equal(tenantOf(scenario).delegations.byKey.size, 2);
  tick(scenario.wait(1));
  assert.deepEqual(
    [...tenantOf(scenario).delegations.byKey.values()].map(({ taskId }) => taskId),
    ["c"],
  );
  scenario.when(del("requested", { ...again, task: "x", payload: { key: "k2" } })).duplicate();
  assert.equal(findDelegation(scenario.state, scenario.tenant, "c")?.attempt, 2);
});

test("used and void tokens of a tenant that has fallen silent are forgotten by anybody's entry", () => {
  const scenario = parented({ retentionMs: RETENTION }).given(del("requested"), del("accepted"));
  scenario.given(
    del("handoff.completed", { token: signed(claims(scenario.now, "jti_1")) }),
    ev("started", "c", { by: "agent:worker" }),
  );
  assert.equal(scenario.state.tokens.size, 1);
  scenario.wait(11 * 60_000 + 1);
  scenario.judge(event("environment.observed"), "other");
  assert.equal(scenario.state.tokens.size, 0);
  assert.equal(tenantOf(scenario).delegations.tokens.known.size, 0);
});

test("names that nobody uses any more are not kept for ever", () => {
  const scenario = world();
  scenario.given(ev("submitted", "keeps", { by: "agent:often" }));
  for (let i = 0; i < 30_000; i += 1) {
    const more = { session_id: `s${i}` };
    const entry = scenario.given(ev("submitted", `t${i}`, { by: "agent:often", more }));
    entry.given(ev("failed", `t${i}`, { by: "agent:often", more }));
  }
  const { names } = tenantOf(scenario);
  assert.ok(names.recent.size + names.before.size <= 20_000);
  assert.ok(names.recent.has("agent:often") || names.before.has("agent:often"));
});
