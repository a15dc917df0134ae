import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "@harmovela/failure";
import { event, opened } from "./family-support.ts";
import { ev, type World, world } from "./support.ts";

const ISSUER = "agent:budget-manager";

function say(name: string, payload: JsonObject, source = ISSUER) {
  return event(`adaptation.${name}`, { source, payload });
}

function established(limit: number, id = "b"): World {
  return world().given(say("budget.established", { budget_id: id, limit }));
}

function cost(amount: number, id = "b") {
  return event("adaptation.outcome.correlated", {
    source: "agent:worker",
    budget_id: id,
    budget_cost: amount,
  });
}

test("C22 the positive fixture passes", () => {
  established(100).given(
    say("goal.created", { goal_id: "goal-01" }, "agent:planner"),
    cost(25),
    say("goal.updated", { goal_id: "goal-01" }, "agent:planner"),
    say("goal.achieved", { goal_id: "goal-01" }, "agent:worker"),
  );
});

test("C22 the negative fixture: what passes the limit is refused, what others say of it is a fact", () => {
  const scenario = established(50);
  scenario.when(cost(200)).rejected("budget_exceeded", { limit: 50, spent: 0, cost: 200 });
  scenario.when(say("cost.exceeded", { budget_id: "b" }, "agent:worker")).accepted();
  scenario.when(say("budget.exhausted", { budget_id: "b" }, "agent:monitor")).accepted();
  scenario.when(cost(50)).accepted();
});

test("C22 costs add up, a refused one costs nothing, and the limit itself may be reached", () => {
  const scenario = established(50).given(cost(20), cost(20));
  scenario.when(cost(20)).rejected("budget_exceeded", { spent: 40, exhausted: false });
  scenario.when(cost(10)).accepted();
  scenario.when(cost(0.1)).rejected("budget_exceeded", { spent: 50, exhausted: true });
  scenario.when(cost(0)).accepted();
});

test("C22 costs are decimal: rounding is no cost, and no digit of a whole sum is lost", () => {
  const tenths = established(0.3).given(cost(0.1), cost(0.1));
  tenths.when(cost(0.1)).accepted();
  tenths.when(cost(0.1)).rejected("budget_exceeded", { spent: 0.3, exhausted: true });
  const cents = established(1);
  for (let paid = 0; paid < 100; paid += 1) cents.given(cost(0.01));
  cents.when(cost(0.01)).rejected("budget_exceeded", { spent: 1 });
  const whole = established(9_007_199_254_740_991).given(cost(9_007_199_254_740_989), cost(1));
  whole.when(cost(2)).rejected("budget_exceeded", { spent: 9_007_199_254_740_990 });
  whole.when(cost(1)).accepted();
});

test("C22 the other form names the scope that it limits", () => {
  const scenario = world().given(
    say("budget.established", {
      scope_type: "goal",
      scope_id: "g1",
      budget: { max_cost_usd_millicents: 10 },
      authority: { issuer: ISSUER, capability: "budget.establish" },
    }),
  );
  scenario.given(cost(10, "goal:g1"));
  scenario.when(cost(1, "goal:g1")).rejected("budget_exceeded");
});

test("C22 every family pays, and pays once when its end is planned", () => {
  const scenario = established(10).given(
    ev("submitted", "root"),
    ev("started", "root"),
    ev("submitted", "child", { parent: "root" }),
  );
  const spending = { budget_id: "b", budget_cost: 6 };
  scenario.when(ev("failed", "root", { more: { ...spending, payload: {} } })).begun("task.failed");
  scenario.settle();
  scenario.when(cost(5)).rejected("budget_exceeded", { spent: 6 });
  scenario.when(cost(4)).accepted();
  scenario.when({ ...opened("s"), ...spending }).rejected("budget_exceeded");
});

test("only its issuer changes a budget", () => {
  const scenario = established(10).given(cost(10));
  const adjusted = (source?: string) =>
    say("budget.adjusted", { budget_id: "b", new_limit: 20 }, source);
  scenario.when(adjusted("agent:worker")).rejected("unauthorized");
  scenario.when(cost(5)).rejected("budget_exceeded");
  scenario.when(adjusted()).accepted();
  scenario.when(cost(5)).accepted();
  scenario.when(say("budget.exhausted", { budget_id: "b" })).accepted();
  scenario.when(cost(1)).rejected("budget_exceeded", { exhausted: true });
});

test("a budget is established once, by somebody who may", () => {
  const again = (source: string) =>
    say("budget.established", { budget_id: "b", limit: 99 }, source);
  const scenario = established(10);
  scenario.when(again(ISSUER)).rejected("protocol_error");
  scenario.when(again("agent:mallory")).rejected("unauthorized");
  scenario
    .when(say("budget.established", { budget_id: "c", limit: 1, authority: { capability: "x" } }))
    .rejected("missing_capability");
});

test("a cost below zero is no cost, and a budget that nobody set has no limit", () => {
  established(10).when(cost(-1)).rejected("invalid_envelope", { path: "budget_cost" });
  world().when(cost(1000)).accepted();
});

test("budgets belong to their tenant", () => {
  const scenario = established(10);
  assert.ok("accept" in scenario.judge(cost(11), "other").decision);
});
