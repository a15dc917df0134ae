/** What a party, a former party or a stranger may not take: sessions, tasks and answers of others. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { issueToken } from "../src/index.ts";
import { accepted, del, handedOff, requested, standing, tokenWorld } from "./delegation-support.ts";
import { event, ofSession, opened, openSession } from "./family-support.ts";
import { ev, running, stateOf, world } from "./support.ts";

const subscription = (fields: Parameters<typeof event>[1] = {}) =>
  event("subscription.requested", { payload: { types: ["task.*"] }, ...fields });

test("5.1 nobody ends a session that nobody opened", () => {
  const scenario = world().given(...running("t", { by: "agent:a" }));
  for (const authenticated of [false, true]) {
    const either = world({ authenticated });
    either
      .when(ofSession("closed", "s", {}, { source: "agent:m" }))
      .rejected("session_error", { session_id: "s" });
    either.when(opened("s")).accepted();
  }
  scenario.when(ev("progress", "t", { by: "agent:a" })).accepted();
});

test("5.6 a former owner cannot escalate a handed-off task to itself", () => {
  handedOff()
    .when(del("escalated", { by: "agent:planner", to: "agent:planner" }))
    .rejected("protocol_error");
});

test("5.6 the owner is not held up by an escalation that nobody takes", () => {
  const words = { by: "agent:worker", from: "agent:worker", to: "agent:chief" };
  for (const by of ["agent:planner", "agent:worker"]) {
    const scenario = handedOff().given(del("escalated", { by, from: by, to: "agent:ghost" }));
    for (const other of ["agent:planner", "agent:ghost", "agent:stranger"]) {
      if (other === by) continue;
      const { outcome } = scenario.when(del("escalated", { ...words, by: other, from: other }));
      assert.ok("reject" in outcome.decision, other);
    }
    scenario.when(del("escalated", { ...words, to: "agent:worker" })).rejected("protocol_error");
    scenario.given(
      del("escalated", words),
      del("accepted", { from: "agent:worker", to: "agent:chief" }),
    );
    scenario.when(del("accepted", { to: "agent:ghost" })).rejected("protocol_error");
    scenario.given(del("handoff.completed", { from: "agent:worker", to: "agent:chief" }));
    assert.equal(standing(scenario), "handed_off agent:chief");
  }
});

test("5.6 an owner whose task was escalated by another takes it elsewhere after the acceptance too", () => {
  const scenario = handedOff().given(
    del("escalated", { by: "agent:planner", to: "agent:idler" }),
    del("accepted", { to: "agent:idler" }),
  );
  scenario.given(del("escalated", { by: "agent:worker", from: "agent:worker", to: "agent:chief" }));
  assert.equal(standing(scenario), "escalated agent:worker");
});

test("5.2 a stranger has no subscriptions in another's session, and takes none of its room", () => {
  const scenario = openSession(world({ subscriptionsMax: 1 }), "s1");
  const { outcome } = scenario.when(subscription({ session_id: "s1", source: "agent:m" }));
  assert.ok("reject" in outcome.decision);
  assert.equal(outcome.decision.as, "subscription.rejected");
  assert.equal(outcome.decision.reject.code, "unauthorized");
  scenario.when(subscription({ session_id: "s1" })).accepted();
  scenario.when(subscription({ session_id: "s1" })).rejected("subscription_rejected");
});

test("5.2 nobody fills a session before it is opened", () => {
  const scenario = world({ subscriptionsMax: 1 });
  scenario.given(subscription({ session_id: "s1", source: "agent:m" }));
  openSession(scenario, "s1");
  scenario.when(subscription({ session_id: "s1" })).accepted();
  scenario.settle();
  scenario.given(ofSession("closed", "s1"));
  assert.equal(scenario.settle().length, 2, "both end with the session that they name");
});

test("5.6 an offer that nobody accepted gives no right to end the task", () => {
  for (const name of ["failed", "cancelled", "cancel.requested"]) {
    const scenario = tokenWorld().given(
      ev("submitted", "T", { by: "agent:planner" }),
      ...running("kid", { by: "agent:k", parent: "T" }),
      del("requested", { task: "T", parent: undefined }),
    );
    const payload =
      name === "failed"
        ? { error: { code: "task_error", message: "x", retryable: false } }
        : undefined;
    const end = ev(name, "T", {
      by: "agent:worker",
      ...(payload === undefined ? {} : { payload }),
    });
    scenario.when(end).rejected("unauthorized");
    scenario.settle();
    assert.equal(stateOf(scenario, "kid"), "started");
  }
});

test("5.6 a delegate that comes back in another session may give its task back", () => {
  const scenario = requested();
  for (const id of ["s1", "s2"]) openSession(scenario, id, undefined, { source: "agent:worker" });
  scenario.given(del("accepted", { session: "s1" }));
  scenario.when(del("rejected", { session: "s2" })).rejected("protocol_error");
  scenario.given(ofSession("closed", "s1", {}, { source: "agent:worker" })).settle();
  scenario.when(del("rejected", { session: "s2" })).accepted();
});

test("5.9 a harness that is the target answers once", () => {
  const scenario = world().given(
    event("command.requested", {
      target: "harness:x",
      correlation_id: "k",
      payload: { command: "go" },
    }),
  );
  scenario.settle();
  const done = () =>
    event("command.completed", { source: "harness:x", correlation_id: "k", payload: {} });
  scenario.given(done());
  scenario.when(done()).rejected("invalid_command");
});

test("7 tokens that have expired do not count against those that may be issued", () => {
  const scenario = accepted();
  const ask = () =>
    issueToken(scenario.state, {
      tenant: "acme",
      asker: "agent:planner",
      params: { task_id: "c", ttl_ms: 1000 },
      now: scenario.now,
    });
  for (let count = 0; count < 100; count += 1) {
    const made = ask();
    assert.ok("issue" in made);
    const cause = { owed: `token:${made.issue.jti}` };
    scenario.append({ kind: "token_issued", body: made.issue, cause, tenant: "acme" });
  }
  assert.ok("refused" in ask());
  scenario.wait(3_600_000);
  assert.ok("issue" in ask());
});

test("5.2 a subscription that its consumer cancels after its session ended is cancelled once", () => {
  const scenario = openSession(world(), "s1");
  scenario.given(subscription({ session_id: "s1" })).settle();
  const [id = ""] = scenario.state.families.tenants.get("acme")?.subscriptions.keys() ?? [];
  const cancel = event("subscription.cancelled", { payload: { subscription_id: id } });
  scenario.given(ofSession("closed", "s1"), cancel).settle();
  const cancelled = scenario
    .events()
    .filter(({ envelope }) => envelope.type === "subscription.cancelled");
  assert.equal(cancelled.length, 1);
});
