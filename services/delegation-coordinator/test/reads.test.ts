import assert from "node:assert/strict";
import { test } from "node:test";
import { history, task, tree, why } from "../src/index.ts";
import { ev, running, type World, world } from "./support.ts";

function family(): World {
  return world().given(
    ...running("p"),
    ev("submitted", "c1", { target: "agent:b", parent: "p" }),
    ev("started", "c1", { by: "agent:b" }),
    ev("submitted", "c2", { target: "agent:w", parent: "p" }),
    ev("submitted", "g", { by: "agent:b", parent: "c1" }),
  );
}

const ask = (scenario: World, id: string) => why(scenario.state, "acme", id, scenario.now);

test("task tells where a task stands", () => {
  const scenario = family();
  const found = task(scenario.state, "acme", "c1");
  assert.equal(found?.state, "started");
  assert.equal(found?.owner, "agent:b");
  assert.equal(found?.parent_task_id, "p");
  assert.equal(found?.live_children, 1);
  assert.equal(found?.submitted_seq, 3);
  assert.equal(found?.last_seq, 4);
  assert.equal(task(scenario.state, "acme", "nobody"), undefined);
  assert.equal(task(scenario.state, "other", "c1"), undefined);
});

test("task names the winner of an ended task and the plan of one being ended", () => {
  const scenario = family();
  scenario.when(ev("cancelled", "p", { id: "evt_cancel" })).begun("task.cancelled");
  assert.equal(task(scenario.state, "acme", "g")?.settling_by, "evt_cancel");
  scenario.settle();
  const found = task(scenario.state, "acme", "p");
  assert.equal(found?.settling_by, undefined);
  assert.deepEqual(found?.winner, { event_id: "evt_cancel", type: "task.cancelled", seq: 11 });
});

test("tree lists parents before children, ended ones too, and counts what it cuts", () => {
  const scenario = family().given(ev("cancelled", "g"));
  const ids = (limit?: number) => {
    const view = tree(scenario.state, "acme", "p", limit === undefined ? {} : { limit });
    return [view?.nodes.map((node) => node.task_id), view?.truncated, view?.truncatedMore];
  };
  assert.deepEqual(ids(), [["p", "c1", "g", "c2"], 0, false]);
  assert.deepEqual(ids(2), [["p", "c1"], 2, false]);
  assert.deepEqual(tree(scenario.state, "acme", "c1")?.nodes.length, 2);
  assert.equal(tree(scenario.state, "acme", "nobody"), undefined);
});

test("history names the log positions of a task, the last 256 of many", () => {
  const scenario = family();
  assert.deepEqual(history(scenario.state, "acme", "p"), { sequences: [1, 2], total: 2 });
  for (let i = 0; i < 400; i++) scenario.given(ev("progress", "p"));
  const found = history(scenario.state, "acme", "p");
  assert.equal(found?.total, 402);
  assert.equal(found?.sequences.length, 256);
  assert.deepEqual([found?.sequences[0], found?.sequences.at(-1)], [151, 406]);
});

test("refusals leave a task's history and activity alone", () => {
  const scenario = family();
  scenario
    .wait(1000)
    .when(ev("progress", "c1", { by: "agent:x" }))
    .rejected("unauthorized");
  assert.equal(history(scenario.state, "acme", "c1")?.total, 2);
  assert.equal(task(scenario.state, "acme", "c1")?.last_seq, 4);
});

test("why: a parent waits for its children, each with its last activity", () => {
  const scenario = family().wait(3000);
  assert.equal(
    ask(scenario, "p"),
    "p (started, owner agent:a) waits for 2 live children: c1 (started, owner agent:b, last activity 3 s ago), c2 (submitted, for agent:w, last activity 3 s ago).",
  );
});

test("why: a task waits for its owner, its target, or anybody, until its deadline", () => {
  const scenario = family();
  scenario.given(ev("cancelled", "g"));
  assert.match(ask(scenario, "c1") ?? "", /waits for its owner, last activity 0 s ago\.$/);
  assert.match(ask(scenario, "c2") ?? "", /waits for agent:w to accept it/);
  scenario.given(ev("submitted", "t", { payload: { timeout_ms: 1000 } }));
  assert.match(
    ask(scenario, "t") ?? "",
    /waits for anybody to accept it, .* until its deadline at 2026-11-30T00:00:01\.000Z\.$/,
  );
  assert.equal(ask(scenario, "nobody"), undefined);
});

test("why: being ended by a cascade, or asked to stop", () => {
  const hard = family();
  hard.when(ev("cancelled", "p", { id: "evt_x" })).begun("task.cancelled");
  assert.equal(
    ask(hard, "c1"),
    "c1 (started, owner agent:b) is being cancelled by evt_x of agent:a through p, leaves first: 3 tasks below p are still live.",
  );
  const gentle = family().given(ev("cancel.requested", "p", { id: "evt_y" }));
  assert.equal(
    ask(gentle, "p"),
    "p (started, owner agent:a) is asked to stop by evt_y of agent:a, the rest forced at 2026-11-30T00:00:05.000Z: 3 tasks below p are still live.",
  );
});

test("Q5 why: four ends, four causes", () => {
  const user = family().given(
    ev("cancelled", "g", { id: "evt_u", payload: { reason: "no need" } }),
  );
  assert.equal(
    ask(user, "g"),
    "g was cancelled by agent:a (evt_u) at 2026-11-30T00:00:00.000Z, because: no need.",
  );
  const parent = family();
  parent.when(ev("cancelled", "p", { id: "evt_p" })).begun("task.cancelled");
  parent.settle();
  assert.match(
    ask(parent, "g") ?? "",
    /^g was cancelled by the cancellation of its ancestor p \(evt_p\) at /,
  );
  const failure = family();
  failure.when(ev("failed", "p", { id: "evt_f" })).begun("task.failed");
  failure.settle();
  assert.match(
    ask(failure, "g") ?? "",
    /^g was cancelled by the failure of its ancestor p \(evt_f\) at /,
  );
  const deadline = world().given(...running("p", { payload: { timeout_ms: 10 } }));
  deadline.given(...running("c", { parent: "p" }));
  deadline.wait(10).settle();
  assert.match(
    ask(deadline, "c") ?? "",
    /^c was cancelled by the deadline of its ancestor p \(hv_/,
  );
  assert.match(ask(deadline, "p") ?? "", /^p was ended by its deadline: timed out by service:/);
});
