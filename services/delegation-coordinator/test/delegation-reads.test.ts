import assert from "node:assert/strict";
import { test } from "node:test";
import { HarmovelaError, type JsonObject, type JsonValue } from "@harmovela/failure";
import { children, createCoordinator, delegation, list, owner, task } from "../src/index.ts";
import { accepted, del, handedOff, parented, rejected, requested } from "./delegation-support.ts";
import { ev, type World } from "./support.ts";

const view = (scenario: World, id = "c") => delegation(scenario.state, scenario.tenant, id);
const ownerIn = (scenario: World, id = "c") => owner(scenario.state, scenario.tenant, id);

test("a delegation is read with its parties, its owner and whom to ask", () => {
  const found = view(requested());
  assert.equal(found?.state, "requested");
  assert.equal(found?.delegated_by, "agent:planner");
  assert.equal(found?.delegated_to, "agent:worker");
  assert.equal(found?.parent_task_id, "p");
  assert.equal(found?.owner, "agent:planner");
  assert.equal(found?.attempt, 1);
  assert.equal(view(parented()), undefined);
});

test("a status query goes to the new delegate after an escalation, and back after a rejection", () => {
  const scenario = handedOff();
  assert.equal(view(scenario)?.route, "agent:worker");
  const parties = { from: "agent:worker", to: "agent:boss" };
  scenario.given(del("escalated", { ...parties, by: "agent:worker" }));
  assert.equal(view(scenario)?.route, "agent:boss");
  assert.equal(ownerIn(scenario)?.route, "agent:boss");
  scenario.given(del("rejected", parties));
  assert.equal(view(scenario)?.route, "agent:worker");
  assert.equal(view(rejected())?.route, "agent:planner");
});

test("owner and worker are told apart until the handoff", () => {
  const scenario = accepted();
  assert.equal(ownerIn(scenario)?.owner, "agent:planner");
  assert.equal(ownerIn(scenario)?.worker, "agent:worker");
  const read = task(scenario.state, scenario.tenant, "c");
  assert.equal(read?.owner, "agent:planner");
  assert.equal(read?.worker, "agent:worker");
  scenario.given(del("handoff.completed"));
  assert.equal(ownerIn(scenario)?.owner, "agent:worker");
  assert.equal(task(scenario.state, scenario.tenant, "c")?.owner, "agent:worker");
});

test("a task that nobody took is its submitter's", () => {
  const scenario = parented().given(ev("submitted", "t", { target: "agent:w" }));
  assert.equal(ownerIn(scenario, "t")?.owner, "agent:a");
  assert.equal(ownerIn(scenario, "t")?.worker, null);
  assert.equal(ownerIn(scenario, "t")?.route, "agent:w");
  assert.equal(ownerIn(scenario, "nobody"), undefined);
});

function family(): World {
  const scenario = parented();
  for (const id of ["c0", "c1", "c2", "c3", "c4"]) scenario.given(del("requested", { task: id }));
  // One of the middle leaves no gap behind.
  return scenario.given(del("rejected", { task: "c2" }), del("accepted", { task: "c3" }));
}

const ids = (page: { tasks: JsonObject[] } | undefined) => page?.tasks.map((one) => one.task_id);

test("children are listed page by page, rejected offers left out", () => {
  const { state, tenant } = family();
  const first = children(state, tenant, "p", { limit: 2 });
  assert.deepEqual(ids(first), ["c0", "c1"]);
  assert.equal(first?.after, "c1");
  const second = children(state, tenant, "p", { limit: 2, after: first?.after });
  assert.deepEqual(ids(second), ["c3", "c4"]);
  assert.equal(second?.after, undefined);
  assert.equal(children(state, tenant, "p", { limit: 2, after: "c2" }), undefined);
  assert.equal(children(state, tenant, "nobody", { limit: 2 }), undefined);
});

test("tasks are listed by state, agent and silence", () => {
  const scenario = family();
  const { state, tenant } = scenario;
  const all = { limit: 10 };
  const find = (filter: Parameters<typeof list>[2], now = scenario.now) =>
    ids(list(state, tenant, filter, all, now));
  assert.deepEqual(find({ state: "accepted" }), ["c3"]);
  assert.deepEqual(find({ agent: "agent:probe" }), ["p"]);
  assert.deepEqual(find({ agent: "agent:worker" }), ["c0", "c1", "c3", "c4"]);
  assert.deepEqual(find({ state: "live" }), ["p", "c0", "c1", "c3", "c4"]);
  assert.deepEqual(find({ silentMs: 1000 }), []);
  assert.equal(find({ silentMs: 1000 }, scenario.now + 1000)?.length, 5);
});

test("a list goes on behind its last task", () => {
  const { state, tenant, now } = family();
  const seen: unknown[] = [];
  let after: string | undefined;
  do {
    const page = list(state, tenant, { agent: "agent:worker" }, { limit: 1, after }, now);
    seen.push(...(ids(page) ?? []));
    after = page?.after;
  } while (after !== undefined);
  assert.deepEqual(seen, ["c0", "c1", "c3", "c4"]);
  assert.equal(list(state, tenant, {}, { limit: 1, after: "c2" }, now), undefined);
});

test("reads refuse what they cannot answer", async () => {
  const { state, tenant, now } = family();
  const { reads } = createCoordinator();
  const nothing = async () => undefined;
  const context = { tenant, source: "agent:x", now, event: nothing, signature: nothing };
  const ask = async (verb: string, params: JsonObject): Promise<JsonValue> =>
    (await reads[verb]?.(state, params, context)) ?? null;
  const codeOf = async (verb: string, params: JsonObject) => {
    try {
      await ask(verb, params);
      return "answered";
    } catch (error) {
      return error instanceof HarmovelaError ? error.code : error;
    }
  };
  const rows: [string, JsonObject, string][] = [
    ["delegation", { task_id: "c0" }, "answered"],
    ["delegation", { task_id: "p" }, "task_error"],
    ["owner", { task_id: "" }, "invalid_query"],
    ["children", { task_id: "p", limit: 0 }, "invalid_query"],
    ["children", { task_id: "p", after: "c2" }, "invalid_query"],
    ["children", { task_id: "x" }, "task_error"],
    ["list", { state: "running" }, "invalid_query"],
    ["list", { state: "started", silent_ms: 0 }, "answered"],
    ["list", { silent_ms: -1 }, "invalid_query"],
  ];
  for (const [verb, params, code] of rows) {
    assert.equal(await codeOf(verb, params), code, `${verb} ${JSON.stringify(params)}`);
  }
});
