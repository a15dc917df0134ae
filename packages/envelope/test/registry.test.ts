import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Domain,
  domainOf,
  EVENT_TYPES,
  familyOf,
  isBeginning,
  isRegistered,
  isWellFormedType,
} from "../src/index.ts";

test("109 types are registered, all well formed, none twice", () => {
  assert.equal(EVENT_TYPES.length, 109);
  assert.equal(new Set(EVENT_TYPES).size, 109);
  for (const type of EVENT_TYPES) {
    assert.ok(isRegistered(type));
    assert.ok(isWellFormedType(type), type);
    assert.match(type, /^[a-z][a-z0-9]*(\.[a-z][a-z0-9_]*)+$/);
  }
});

test("each family has as many types as the registry says", () => {
  const counts: Record<string, number> = {};
  for (const type of EVENT_TYPES) counts[familyOf(type)] = (counts[familyOf(type)] ?? 0) + 1;
  assert.deepEqual(counts, {
    session: 5,
    capabilities: 3,
    subscription: 5,
    event: 5,
    task: 11,
    context: 7,
    memory: 8,
    belief: 2,
    provenance: 3,
    state: 4,
    freshness: 2,
    delegation: 5,
    interruption: 5,
    compensation: 2,
    tool: 11,
    agent: 6,
    environment: 4,
    command: 5,
    query: 4,
    adaptation: 12,
  });
});

test("names that occur only in prose are not registered", () => {
  const rows =
    "session.open session.timeout subscription.ready task.escalated task.delegated task.delegation.accepted task.running delivery.failed delivery.replay.requested policy.violated audit.event.delivered environment.page.changed environment.object.detected constructor __proto__ toString task";
  for (const type of rows.split(" ")) assert.equal(isRegistered(type), false, type);
});

test("each family belongs to one domain, and what is unknown to tasks", () => {
  const rows: [string, Domain][] = [
    ["belief.revised", "beliefs"],
    ["freshness.expired", "beliefs"],
    ["memory.fact.added", "beliefs"],
    ["context.updated", "beliefs"],
    ["state.delta.applied", "beliefs"],
    ["interruption.saved", "interruptions"],
    ["compensation.requested", "interruptions"],
    ["provenance.chain.truncated", "provenance"],
    ["task.submitted", "tasks"],
    ["delegation.requested", "tasks"],
    ["session.opened", "tasks"],
    ["adaptation.goal.blocked", "tasks"],
    ["nobody.knows", "tasks"],
    ["memory.nobody.knows", "beliefs"],
    ["constructor.call", "tasks"],
    ["", "tasks"],
  ];
  for (const [type, domain] of rows) assert.equal(domainOf(type), domain, type);
});

test("what begins something can wait; what ends, answers, stops or takes back cannot", () => {
  const beginnings = EVENT_TYPES.filter(isBeginning);
  assert.equal(beginnings.length, 29);
  for (const type of beginnings) {
    assert.doesNotMatch(
      type,
      /\.(completed|failed|cancelled|timed_out|rejected|accepted|closed|error|invalidated|revoked|revised|saved|resumed)$/,
    );
  }
  for (const type of [
    "task.cancel.requested",
    "interruption.requested",
    "compensation.requested",
  ]) {
    assert.equal(isBeginning(type), false, type);
  }
  for (const type of ["task.submitted", "delegation.requested", "memory.fact.added"]) {
    assert.equal(isBeginning(type), true, type);
  }
});
