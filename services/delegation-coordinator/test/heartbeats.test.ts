import assert from "node:assert/strict";
import { test } from "node:test";
import { HeartbeatMemory } from "@harmovela/envelope";
import { createTaskDecider, DEFAULT_TASK_SETTINGS } from "../src/index.ts";
import {
  errorOf,
  event,
  ofSession,
  openSession,
  owedListening,
  sessionOf,
} from "./family-support.ts";
import { SERVICE, type World, world } from "./support.ts";

const INTERVAL = 1000;
const WINDOW = 3 * INTERVAL;

function beating(id = "s"): World {
  return openSession(world(), id, { heartbeat_interval_ms: INTERVAL });
}

function lost(scenario: World, memory: HeartbeatMemory): string | undefined {
  const owed = owedListening(scenario, memory);
  if (owed === undefined || !("event" in owed)) return undefined;
  return owed.event.session_id;
}

test("5.1 three missed intervals end a session, with the time of its last sign of life", () => {
  const scenario = beating();
  const memory = new HeartbeatMemory(scenario.now);
  const last = scenario.now + 500;
  memory.hear(scenario.tenant, "agent:a", "s", last);
  scenario.at(last + WINDOW - 1);
  assert.deepEqual(owedListening(scenario, memory), { wakeAt: last + WINDOW });
  scenario.wait(1);
  const owed = owedListening(scenario, memory);
  assert.ok(owed && "event" in owed);
  assert.equal(owed.due, last + WINDOW);
  assert.equal(owed.event.type, "session.error");
  assert.equal(owed.event.source, SERVICE);
  const error = errorOf(owed.event);
  assert.equal(error.code, "session_timeout");
  assert.equal(error.retryable, true);
  const { last_heartbeat_at } = error.details as { last_heartbeat_at: string };
  assert.equal(Date.parse(last_heartbeat_at), last);

  scenario.append({
    kind: "event",
    envelope: owed.event,
    cause: { owed: owed.cause },
    tenant: owed.tenant,
  });
  assert.equal(sessionOf(scenario, "s").state, "error");
  assert.equal(lost(scenario, memory), undefined);
  scenario.when(ofSession("heartbeat", "s")).rejected("session_closed");
});

test("5.1 after a take-over every session gets a full fresh window", () => {
  const scenario = beating().wait(100 * WINDOW);
  const memory = new HeartbeatMemory(scenario.now);
  assert.deepEqual(owedListening(scenario, memory), { wakeAt: scenario.now + WINDOW });
  assert.equal(lost(scenario.wait(WINDOW), memory), "s");
});

test("5.1 only the initiator's signs of life count", () => {
  const scenario = beating();
  const memory = new HeartbeatMemory(scenario.now);
  memory.hear(scenario.tenant, "agent:mallory", "s", scenario.now + 500);
  memory.hear("other", "agent:a", "s", scenario.now + 500);
  assert.equal(lost(scenario.wait(WINDOW), memory), "s");
});

test("5.1 nobody is missed while nobody listens, or without agreed heartbeats", () => {
  const scenario = beating();
  scenario.wait(100 * WINDOW);
  assert.equal(scenario.owed(), undefined);
  const silent = openSession(world(), "s").wait(100 * WINDOW);
  assert.equal(owedListening(silent, new HeartbeatMemory(0)), undefined);
});

test("5.1 a good heartbeat leaves no entry, and a closed session is not missed", () => {
  const scenario = beating();
  const { length } = scenario.log;
  scenario.when(ofSession("heartbeat", "s")).ignored();
  assert.equal(scenario.log.length, length);
  scenario.given(ofSession("closed", "s")).wait(WINDOW);
  assert.equal(owedListening(scenario, new HeartbeatMemory(0)), undefined);
});

test("the longest silent session is lost first, and its time-out does not hold up others", () => {
  const scenario = beating("one").wait(10);
  openSession(scenario, "two", { heartbeat_interval_ms: INTERVAL });
  const memory = new HeartbeatMemory(0);
  scenario.wait(WINDOW);
  const first = owedListening(scenario, memory);
  assert.ok(first && "event" in first);
  assert.equal(first.event.session_id, "one");
  scenario.fail(first.event.id);
  assert.equal(lost(scenario, memory), "two");
});

test("an interval below the least is raised, and fractions are", () => {
  const scenario = openSession(world(), "s", { heartbeat_interval_ms: 0.5 });
  assert.equal(sessionOf(scenario, "s").heartbeatIntervalMs, DEFAULT_TASK_SETTINGS.heartbeatMinMs);
});

test("only signs of life that matter are worth remembering", () => {
  const scenario = openSession(beating(), "silent");
  const { watches } = createTaskDecider(DEFAULT_TASK_SETTINGS);
  const isWatched = (source: string, id: string) =>
    watches?.(scenario.state, scenario.tenant, source, id);
  assert.equal(isWatched("agent:a", "s"), true);
  assert.equal(isWatched("agent:b", "s"), false);
  assert.equal(isWatched("agent:a", "silent"), false);
  assert.equal(isWatched("agent:a", "unknown"), false);
  scenario.given(ofSession("closed", "s"));
  assert.equal(isWatched("agent:a", "s"), false);
});

test("timers of tasks and sessions come in the order of their due times", () => {
  const scenario = beating();
  scenario.given(
    event("task.submitted", { task_id: "t", payload: { task_id: "t", timeout_ms: WINDOW - 1 } }),
  );
  scenario.wait(2 * WINDOW);
  const owed = owedListening(scenario, new HeartbeatMemory(0));
  assert.ok(owed && "event" in owed);
  assert.equal(owed.event.type, "task.timed_out");
});
