import assert from "node:assert/strict";
import { test } from "node:test";
import type { Envelope } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import { DEFAULT_TASK_SETTINGS } from "../src/index.ts";
import { answers, derived, errorOf, event } from "./family-support.ts";
import { payloadOf, SERVICE, type World, world } from "./support.ts";

const WINDOW = DEFAULT_TASK_SETTINGS.negotiationWindowMs;
const BOSS = "agent:boss";
const WORKER = "agent:w";

function request(kind: "command" | "query", id: string, fields: Partial<Envelope> = {}): Envelope {
  return event(`${kind}.requested`, {
    source: BOSS,
    target: WORKER,
    correlation_id: id,
    payload: kind === "command" ? { command: "c" } : { query_scope: "s" },
    ...fields,
  });
}

function answer(
  type: string,
  id: string,
  payload: JsonObject = {},
  fields: Partial<Envelope> = {},
): Envelope {
  return event(type, { source: WORKER, target: BOSS, correlation_id: id, payload, ...fields });
}

/** The worker has spoken before. */
function known(): World {
  return world().given(event("environment.observed", { source: WORKER }));
}

function isLive(scenario: World, kind: "commands" | "queries", id: string): boolean {
  return scenario.state.families.tenants.get(scenario.tenant)?.[kind].has(id) ?? false;
}

test("g01: target and correlation id are required, refused in the family's own words", () => {
  const lines = [
    event("command.requested", {
      source: "agent:probe",
      target: WORKER,
      payload: { command: "c" },
    }),
    event("query.requested", {
      source: "agent:probe",
      target: WORKER,
      payload: { query_scope: "s" },
    }),
  ];
  assert.deepEqual(answers(world(), lines), [
    "command.rejected invalid_command",
    "query.rejected invalid_query",
  ]);
});

test("5.9 every missing field is named", () => {
  const bare = { source: BOSS, payload: {} };
  world()
    .when(event("command.requested", bare))
    .rejected("invalid_command", { missing: ["target", "correlation_id"] });
  world()
    .when(event("query.requested", bare))
    .rejected("invalid_query", { missing: ["target", "correlation_id", "payload.query_scope"] });
});

test("g03: only the target ends a command, and nothing ends one that is not there", () => {
  const lines = [
    request("command", "c1"),
    answer("command.completed", "c1", {}, { source: "agent:mallory" }),
    answer("command.failed", "c1"),
    answer("command.completed", "c_none"),
  ];
  assert.deepEqual(answers(world(), lines), [
    "accept",
    "event.rejected unauthorized",
    "accept",
    "event.rejected invalid_command",
  ]);
});

test("5.9 a command to a known agent is accepted at once", () => {
  const asked = request("command", "c1", { tenant_id: "acme", session_id: "s" });
  const scenario = known().given(asked);
  const [accepted, ...more] = derived(scenario);
  assert.deepEqual(more, []);
  assert.equal(accepted?.type, "command.accepted");
  assert.equal(accepted?.source, SERVICE);
  assert.equal(accepted?.target, BOSS);
  assert.equal(accepted?.correlation_id, "c1");
  assert.equal(accepted?.causation_id, asked.id);
  assert.equal(accepted?.tenant_id, "acme");
  assert.equal(accepted?.session_id, "s");
  assert.deepEqual(payloadOf(accepted), {
    correlation_id: "c1",
    target: WORKER,
    negotiation_window_ms: WINDOW,
  });
  assert.deepEqual(derived(scenario.wait(10 * WINDOW)), []);
  scenario.when(answer("command.rejected", "c1")).rejected("invalid_command", { from: "accepted" });
  scenario.when(answer("command.accepted", "c1")).rejected("invalid_command");
  scenario.when(answer("command.completed", "c1")).accepted();
  scenario.when(answer("command.completed", "c1")).rejected("invalid_command");
});

for (const kind of ["command", "query"] as const) {
  const invalid = `invalid_${kind}` as const;

  test(`5.9 a ${kind} to an agent that nobody has seen is refused when the window ends`, () => {
    const asked = request(kind, "c1");
    const scenario = world();
    const asking = scenario.now;
    scenario.given(asked).wait(WINDOW - 1);
    assert.deepEqual(scenario.owed(), { wakeAt: asking + WINDOW });
    scenario.wait(1);
    const owed = scenario.owed();
    assert.ok(owed && "event" in owed && owed.urgency === "timer");
    assert.equal(owed.due, asking + WINDOW);
    const [refused] = derived(scenario);
    assert.equal(refused?.type, `${kind}.rejected`);
    assert.equal(refused?.target, BOSS);
    assert.equal(refused?.causation_id, asked.id);
    assert.equal(payloadOf(refused).reason, "negotiation_timeout");
    assert.equal(payloadOf(refused).acknowledged_event_id, asked.id);
    assert.equal(errorOf(refused).code, invalid);
    assert.ok(!isLive(scenario, kind === "command" ? "commands" : "queries", "c1"));
    const late = kind === "command" ? "command.completed" : "query.response";
    scenario.when(answer(late, "c1")).rejected(invalid);
  });

  test(`5.9 the window of a ${kind} is the requester's`, () => {
    const payload = { command: "c", query_scope: "s", negotiation_window_ms: 10 };
    const scenario = world().given(request(kind, "c1", { payload }));
    assert.deepEqual(derived(scenario.wait(9)), []);
    assert.equal(derived(scenario.wait(1))[0]?.type, `${kind}.rejected`);
  });

  test(`5.9 a live ${kind} keeps its correlation id for itself`, () => {
    const scenario = known().given(request(kind, "c1"));
    const { outcome } = scenario.when(request(kind, "c1"));
    assert.ok("reject" in outcome.decision);
    assert.equal(outcome.decision.as, `${kind}.rejected`);
    assert.equal(outcome.decision.reject.code, invalid);
    assert.ok(isLive(scenario, kind === "command" ? "commands" : "queries", "c1"));
    const end = kind === "command" ? "command.completed" : "query.response";
    scenario.given(answer(end, "c1"), request(kind, "c1"));
  });

  test(`5.9 a ${kind} to another tenant needs a role that crosses`, () => {
    const foreign = (roles: string[]) =>
      known().judge(request(kind, "c1", { target_tenant_id: "beta", roles })).decision;
    const denied = foreign(["operator"]);
    assert.ok("reject" in denied);
    assert.equal(denied.as, `${kind}.rejected`);
    assert.equal(denied.reject.code, "unauthorized");
    assert.ok("accept" in foreign(["cross-tenant-operator"]));
  });

  test(`9.8 a viewer ${kind === "query" ? "may query" : "may not command"}`, () => {
    const asked = request(kind, "c1", {
      actor_id: "actor",
      tenant_id: "alpha",
      target_tenant_id: "alpha",
      roles: ["viewer"],
      requested_action: kind === "query" ? "query.read" : "command.execute",
    });
    const { decision } = known().judge(asked);
    if (kind === "query") assert.ok("accept" in decision);
    else assert.ok("reject" in decision && decision.as === "command.rejected");
  });
}

test("5.9 an agent that speaks within the window is known: its command is accepted, its query stays open", () => {
  const scenario = world().given(request("command", "c1"), request("query", "q1"));
  scenario.wait(WINDOW - 1).given(event("environment.observed", { source: WORKER }));
  assert.deepEqual(
    derived(scenario).map(({ type, correlation_id }) => [type, correlation_id]),
    [["command.accepted", "c1"]],
  );
  assert.deepEqual(derived(scenario.wait(WINDOW)), []);
  scenario.given(answer("command.completed", "c1"), answer("query.response", "q1"));
});

test("5.9 who only was refused has not been seen", () => {
  const scenario = world().given(request("command", "c1"));
  scenario.when(answer("command.completed", "c_none")).rejected("invalid_command");
  assert.equal(derived(scenario.wait(WINDOW))[0]?.type, "command.rejected");
});

test("5.9 an answer that came in time counts, though nobody accepted", () => {
  const scenario = world().given(request("command", "c1")).wait(WINDOW);
  scenario.given(answer("command.completed", "c1"));
  assert.deepEqual(derived(scenario), []);
});

test("5.9 the target may accept or refuse by itself", () => {
  const accepting = world().given(request("command", "c1"), answer("command.accepted", "c1"));
  assert.deepEqual(derived(accepting.wait(WINDOW)), []);
  const refusing = world().given(request("command", "c1"), answer("command.rejected", "c1"));
  refusing.when(answer("command.completed", "c1")).rejected("invalid_command");
});

test("5.9 the command fixture: an echoed acceptance changes nothing", () => {
  const echo = answer("command.accepted", "c1", {}, { source: "harness:harmovela" });
  const lines = [request("command", "c1"), echo, answer("command.completed", "c1")];
  assert.deepEqual(answers(world(), lines), ["accept", "accept", "accept"]);
  const scenario = world().given(request("command", "c1"), { ...echo, id: "again" });
  assert.equal(derived(scenario.wait(WINDOW))[0]?.type, "command.rejected");
  scenario.when({ ...echo, id: "late" }).accepted();
});

test("5.9 the query fixture: an echoed response is no answer", () => {
  const echo = answer("query.response", "q1", {}, { source: "harness:harmovela" });
  const scenario = known().given(request("query", "q1"), echo);
  assert.ok(isLive(scenario, "queries", "q1"));
  scenario.given(answer("query.response", "q1"));
  assert.ok(!isLive(scenario, "queries", "q1"));
});

test("a harness does not end a command", () => {
  known()
    .given(request("command", "c1"))
    .when(answer("command.completed", "c1", {}, { source: "harness:harmovela" }))
    .rejected("unauthorized");
});

test("5.9 only the target answers a query, and query.error is terminal", () => {
  const scenario = known().given(request("query", "q1"));
  scenario
    .when(answer("query.response", "q1", {}, { source: "agent:mallory" }))
    .rejected("unauthorized");
  scenario.given(answer("query.error", "q1"));
  scenario.when(answer("query.response", "q1")).rejected("invalid_query");
});

test("5.9 snapshot versions of one target and scope do not go back", () => {
  const scenario = known();
  const respond = (id: string, version: string | number, scope = "s") => {
    scenario.given(request("query", id, { payload: { query_scope: scope } }));
    return scenario.when(answer("query.response", id, { snapshot_version: version }));
  };
  respond("q1", 3).accepted();
  respond("q2", 3).accepted();
  respond("q3", 2).rejected("invalid_query", { newest_version: 3 });
  respond("q4", 2, "other").accepted();
  respond("q5", "snap_010").accepted();
  respond("q6", "snap_9").rejected("invalid_query");
  respond("q7", "snap_11").accepted();
  respond("q8", "another form").accepted();
});

test("5.9 a response speaks of the scope that was asked for", () => {
  known()
    .given(request("query", "q1"))
    .when(answer("query.response", "q1", { query_scope: "other" }))
    .rejected("invalid_query");
});

test("5.9 an answer may name its request in the payload, and must name one", () => {
  const scenario = known().given(request("command", "c1"));
  scenario
    .when(event("command.completed", { source: WORKER }))
    .rejected("invalid_command", { missing: ["correlation_id"] });
  scenario
    .when(event("command.completed", { source: WORKER, payload: { correlation_id: "c1" } }))
    .accepted();
});

test("commands and queries of one correlation id are two things, and tenants are apart", () => {
  const scenario = known().given(request("command", "c1"), request("query", "c1"));
  assert.ok("accept" in scenario.judge(request("command", "c1"), "other").decision);
  scenario.given(answer("command.completed", "c1"), answer("query.response", "c1"));
});

test("a request that nobody ever answers is forgotten with the log that holds it", () => {
  const scenario = known().given(request("command", "c1"));
  scenario.settle();
  scenario.wait(DEFAULT_TASK_SETTINGS.retentionMs + 1).given(request("command", "c2"));
  assert.ok(!isLive(scenario, "commands", "c1"));
  assert.ok(isLive(scenario, "commands", "c2"));
});
