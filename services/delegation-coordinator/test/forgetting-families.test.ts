/** Around tasks, what nobody uses is forgotten after the retention (architecture, section 6). */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Envelope } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import { describeState } from "../src/index.ts";
import { derived, event, ofSession, openSession } from "./family-support.ts";
import { type World, world } from "./support.ts";

const RETENTION = 10_000;
const SENSOR = "agent:sensor";
const tick = (scenario: World): World =>
  scenario.given(event("environment.observed", { source: SENSOR }));
const small = (): World => world({ retentionMs: RETENTION });

function familiesOf(scenario: World) {
  const tenant = scenario.state.families.tenants.get(scenario.tenant);
  assert.ok(tenant);
  return tenant;
}

function request(kind: "command" | "query", id: string, more: JsonObject = {}): Envelope {
  const payload = kind === "query" ? { query_scope: "s", ...more } : { command: "c", ...more };
  return event(`${kind}.requested`, {
    source: "agent:boss",
    target: "agent:w",
    correlation_id: id,
    payload,
  });
}

const answer = (type: string, id: string, payload: JsonObject = {}): Envelope =>
  event(type, { source: "agent:w", correlation_id: id, payload });

const call = (word: string, source: string): Envelope =>
  event(`tool.call.${word}`, { source, target: "tool:t", payload: { call_id: "k" } });

const budget = (limit: number, name = "established"): Envelope =>
  event(`adaptation.budget.${name}`, { payload: { budget_id: "b", limit } });

const cost = (amount: number): Envelope =>
  event("environment.observed", { source: SENSOR, budget_id: "b", budget_cost: amount });

test("5.9 who has been silent for the retention counts as never seen", () => {
  const scenario = small().given(event("environment.observed", { source: "agent:w" }));
  scenario.wait(RETENTION - 1).given(event("environment.observed", { source: "agent:w" }));
  tick(scenario.wait(RETENTION));
  scenario.given(request("command", "c1"));
  assert.deepEqual(
    derived(scenario).map(({ type }) => type),
    ["command.accepted"],
  );
  tick(scenario.wait(1));
  assert.ok(!familiesOf(scenario).sources.has("agent:w"));
  scenario.given(request("command", "c2"));
  assert.deepEqual(derived(scenario), []);
  scenario.wait(5000);
  assert.deepEqual(
    derived(scenario).map(({ type }) => type),
    ["command.rejected"],
  );
});

test("5.9 a window never outlasts the memory of its request: the answer comes while it is known", () => {
  const scenario = small().given(request("query", "q1", { negotiation_window_ms: 1e9 }));
  const owed = scenario.owed();
  assert.ok(owed && "wakeAt" in owed);
  assert.equal(owed.wakeAt, scenario.now + RETENTION);
  scenario.wait(RETENTION);
  assert.deepEqual(
    derived(scenario).map(({ type }) => type),
    ["query.rejected"],
  );
});

test("a request without answer is over at its time, whoever has looked", () => {
  const scenario = small().given(event("environment.observed", { source: "agent:w" }));
  scenario.given(request("query", "q1"));
  tick(scenario.wait(RETENTION));
  const unlooked = scenario.wait(1);
  const late = answer("query.response", "q1");
  unlooked.when(late).rejected("invalid_query");
  unlooked.given(request("query", "q1"), answer("query.response", "q1"));
});

test("an answered request leaves nothing that would end a later one of its name", () => {
  const scenario = small().given(event("environment.observed", { source: "agent:w" }));
  scenario.given(request("query", "q1"), answer("query.response", "q1"));
  scenario.wait(RETENTION / 2).given(request("query", "q1"));
  tick(scenario.wait(RETENTION / 2 + 1));
  scenario.given(answer("query.response", "q1"));
});

test("a tool call is over when nobody has said a word about it for the retention", () => {
  const scenario = small().given(call("requested", "agent:a"), call("started", "tool:t"));
  scenario.wait(RETENTION).given(call("progress", "tool:t"));
  scenario.wait(RETENTION).given(call("progress", "tool:t"));
  scenario.wait(RETENTION + 1);
  scenario.when(call("progress", "tool:t")).rejected("tool_error");
  scenario.given(call("requested", "agent:b"));
  tick(scenario.wait(RETENTION + 1));
  assert.equal(familiesOf(scenario).calls.size, 0);
});

test("C22 a budget is in use while somebody spends, changes or is held back by it", () => {
  const scenario = small().given(budget(2), cost(1));
  scenario.wait(RETENTION).given(cost(1));
  for (let i = 0; i < 5; i += 1) scenario.wait(RETENTION).when(cost(1)).rejected("budget_exceeded");
  scenario.wait(RETENTION).given(budget(3, "adjusted"));
  tick(scenario.wait(RETENTION));
  scenario.when(budget(9)).rejected("protocol_error");
  tick(scenario.wait(1));
  assert.equal(familiesOf(scenario).budgets.size, 0);
  scenario.given(
    event("adaptation.budget.established", {
      source: "agent:b",
      payload: { budget_id: "b", limit: 1 },
    }),
  );
  assert.equal(familiesOf(scenario).budgets.get("b")?.spent, 0);
});

test("5.9 a snapshot version that nobody answers with any more is no bound", () => {
  const scenario = small().given(event("environment.observed", { source: "agent:w" }));
  const ask = (id: string, snapshot_version: number) => {
    scenario.given(request("query", id));
    return scenario.when(answer("query.response", id, { snapshot_version }));
  };
  ask("q1", 7).accepted();
  scenario.wait(RETENTION);
  ask("q2", 8).accepted();
  scenario.wait(RETENTION);
  ask("q3", 7).rejected("invalid_query");
  tick(scenario.wait(1));
  assert.equal(familiesOf(scenario).versions.size, 0);
  ask("q4", 1).accepted();
});

test("nothing is left of a tenant in which nothing has happened for the retention", () => {
  const scenario = openSession(small(), "s1").given(
    budget(5),
    request("command", "c1"),
    call("requested", "agent:a"),
    ofSession("closed", "s1"),
  );
  scenario.settle();
  const before = scenario.state.families.tenants.size;
  scenario.wait(RETENTION + 1).judge(event("environment.observed"), "other");
  const { families } = scenario.state;
  assert.deepEqual([before, [...families.tenants.keys()]], [1, ["other"]]);
  assert.deepEqual([...families.sessions.tenants.keys()], []);
  assert.deepEqual([families.memories.size, families.agenda.duties.size], [1, 0]);
  // A service that speaks leaves nothing to remember.
  scenario.judge(event("environment.observed", { source: "service:other" }), "third");
  assert.ok(!families.tenants.has("third"));
});

test("one entry looks at a bounded number, and what is in use finds its place again", () => {
  const scenario = small();
  const from = (index: number) => event("environment.observed", { source: `agent:${index}` });
  for (let i = 0; i < 200; i += 1) scenario.given(from(i));
  scenario.wait(RETENTION);
  for (let i = 150; i < 200; i += 1) scenario.given(from(i));
  scenario.wait(1);
  const left: number[] = [];
  for (let i = 0; i < 5; i += 1) left.push(familiesOf(tick(scenario)).sources.size);
  assert.equal(left.at(-1), 51);
  assert.ok((left[0] ?? 0) >= 201 - 64, `${left}`);
  assert.deepEqual(describeState(scenario.refold()), describeState(scenario.state));
});

test("5.1 a subscription whose end could not be written ends with its session all the same", () => {
  const scenario = openSession(small(), "s1").given(
    event("subscription.requested", { session_id: "s1", payload: { types: ["task.*"] } }),
  );
  scenario.settle();
  scenario.given(ofSession("closed", "s1"));
  const owed = scenario.owed();
  assert.ok(owed && "event" in owed && owed.event.type === "subscription.cancelled");
  scenario.fail(owed.event.id);
  const { subscriptions, subscribers } = familiesOf(scenario);
  assert.deepEqual([subscriptions.size, subscribers.size], [0, 0]);
});
