import assert from "node:assert/strict";
import { test } from "node:test";
import { session } from "../src/index.ts";
import { answers, derived, event, ofSession, opened, openSession } from "./family-support.ts";
import { ev, payloadOf, type World, world } from "./support.ts";

const FILTER = { types: ["task.*"] };

function requested(session?: string, source = "agent:a") {
  return event("subscription.requested", {
    source,
    payload: FILTER,
    ...(session === undefined ? {} : { session_id: session }),
  });
}

/** Subscribes and returns the id that the service gave. */
function subscribe(scenario: World, session?: string, source?: string): string {
  const [created] = derived(scenario.given(requested(session, source)));
  return String(payloadOf(created).subscription_id);
}

function live(scenario: World): string[] {
  return [...(scenario.state.families.tenants.get(scenario.tenant)?.subscriptions.keys() ?? [])];
}

function cancelled(id: string, source = "agent:a") {
  return event("subscription.cancelled", { source, payload: { subscription_id: id } });
}

test("5.2 a request is created by the service under an id of its own, told in the verdict too", () => {
  const scenario = world();
  const { decision } = scenario.judge(requested());
  assert.ok("accept" in decision);
  const [created] = derived(scenario);
  assert.equal(created?.type, "subscription.created");
  assert.equal(created?.target, "agent:a");
  const { subscription_id, filter, expires_at } = payloadOf(created);
  assert.match(String(subscription_id), /^sub_[0-9A-Z]{26}$/);
  assert.deepEqual(decision.verdict, { subscription_id });
  assert.deepEqual(filter, FILTER);
  assert.equal(expires_at, null);
  assert.deepEqual(live(scenario), [subscription_id]);
});

test("b08: closing a session cancels its subscriptions, one entry each, and leaves its task alone", () => {
  const session = { more: { session_id: "s" } };
  const lines = [
    opened("s", { profiles: ["harmovela.core.v1"] }, { target: "harness:harmovela" }),
    requested("s"),
    ev("submitted", "task_b8", session),
    ev("accepted", "task_b8", session),
    ev("started", "task_b8", session),
    ofSession("closed", "s", { reason: "bye" }),
  ];
  assert.deepEqual(answers(world(), lines), [
    "accept",
    "> session.ready",
    "accept",
    "> subscription.created",
    "accept",
    "accept",
    "accept",
    "accept",
    "> subscription.cancelled",
  ]);
});

test("5.1 only the closed session's own subscriptions go", () => {
  const scenario = openSession(openSession(world(), "one"), "two");
  const [first, second] = [subscribe(scenario, "one"), subscribe(scenario, "one")];
  const kept = [subscribe(scenario, "two"), subscribe(scenario)];
  const closing = ofSession("closed", "one");
  const said = derived(scenario.given(closing));
  assert.deepEqual(
    said.map((envelope) => [envelope.type, payloadOf(envelope).subscription_id]),
    [
      ["subscription.cancelled", first],
      ["subscription.cancelled", second],
    ],
  );
  for (const envelope of said) {
    assert.equal(envelope.causation_id, closing.id);
    assert.equal(envelope.session_id, "one");
    assert.equal(envelope.target, "agent:a");
  }
  assert.deepEqual(live(scenario), kept);
});

test("5.2 its consumer cancels it, a stranger does not, an unknown one is acknowledged", () => {
  const scenario = world();
  const id = subscribe(scenario);
  scenario.when(cancelled(id, "agent:mallory")).rejected("unauthorized");
  scenario.when(cancelled("sub_0002")).accepted();
  assert.deepEqual(live(scenario), [id]);
  scenario.when(cancelled(id)).accepted();
  assert.deepEqual(live(scenario), []);
  scenario.when(cancelled(id)).accepted();
});

test("5.2 a consumer that cancels before the creation was said gets none", () => {
  const scenario = world();
  const { decision } = scenario.judge(requested());
  assert.ok("accept" in decision);
  scenario.given(cancelled(String(decision.verdict?.subscription_id)));
  assert.deepEqual(derived(scenario), []);
});

test("5.2 replay is not offered", () => {
  const asked = { ...requested(), payload: { ...FILTER, from_cursor: "HV_LOG_TASKS:1" } };
  const { outcome } = world().when(asked);
  assert.ok("reject" in outcome.decision);
  assert.equal(outcome.decision.as, "subscription.rejected");
  assert.equal(outcome.decision.reject.code, "subscription_rejected");
});

test("a filter that would not fit into its confirmation is refused", () => {
  const types = Array.from({ length: 700 }, (_, index) => `${"x".repeat(100)}${index}`);
  world()
    .when({ ...requested(), payload: { types } })
    .rejected("subscription_rejected", { length_max: 65_536 });
});

test("a session is read with its live subscriptions", () => {
  const scenario = openSession(world(), "s");
  const id = subscribe(scenario, "s");
  const view = session(scenario.state.families, scenario.tenant, "s");
  assert.equal(view?.state, "ready");
  assert.deepEqual(view?.subscriptions, [
    { subscription_id: id, state: "created", consumer: "agent:a" },
  ]);
  assert.equal(session(scenario.state.families, "other", "s"), undefined);
});

test("a session holds so many subscriptions and no more", () => {
  const scenario = world({ subscriptionsMax: 2 });
  const first = subscribe(scenario, "s");
  subscribe(scenario, "s");
  scenario.when(requested("s")).rejected("subscription_rejected");
  subscribe(scenario, "other");
  scenario.given(cancelled(first));
  scenario.when(requested("s")).accepted();
});

test("what a harness echoes and what is asked of an agent changes nothing", () => {
  const scenario = world().given(
    event("subscription.created", {
      source: "harness:aep",
      payload: { subscription_id: "sub_0002", filter: FILTER },
    }),
    { ...requested(), target: "agent:feed" },
  );
  assert.deepEqual(derived(scenario), []);
  assert.deepEqual(live(scenario), []);
  const id = subscribe(scenario);
  scenario.given(cancelled(id, "harness:aep"));
  assert.deepEqual(live(scenario), [id]);
});

test("9.8 a denied subscription is refused in its own words", () => {
  const { outcome } = world().when({
    ...requested(),
    actor_id: "actor",
    tenant_id: "alpha",
    roles: ["viewer"],
    requested_action: "event.subscribe",
    target_tenant_id: "beta",
  });
  assert.ok("reject" in outcome.decision);
  assert.equal(outcome.decision.as, "subscription.rejected");
  assert.equal(outcome.decision.reject.code, "unauthorized");
});
