/** A service that runs for months holds what lives and what ended lately, and no more. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Envelope, EventEntry } from "@harmovela/envelope";
import { createTaskDecider, DEFAULT_TASK_SETTINGS } from "../src/index.ts";
import type { TaskState } from "../src/state.ts";

const TASKS = 200_000;
/** So many tasks a day, and so many days are remembered. */
const PER_DAY = 2_000;
const DAYS = 2;
const DAY_MS = 86_400_000;

const FRAME = { spec_version: "0.2", created_at: "2026-11-30T10:00:00Z", payload: {} };

function said(type: string, source: string, index: number): Envelope {
  return { ...FRAME, id: `${type} ${index}`, type, source };
}

/** The entries of one short life: submitted, and ended by who submitted it. */
function life(index: number): Envelope[] {
  const source = `agent:${index % 7}`;
  const begun = said("task.submitted", source, index);
  const ended = said("task.failed", source, index);
  begun.task_id = ended.task_id = `t${index}`;
  begun.session_id = ended.session_id = `s${index}`;
  begun.parent_task_id = "root";
  return index % 10 === 0 ? [...rarer(index), begun, ended] : [begun, ended];
}

/** An offer that is refused, and somebody who speaks once and sets a budget. */
function rarer(index: number): Envelope[] {
  const parties = { task_id: `o${index}`, delegated_by: "agent:1", delegated_to: "agent:w" };
  const offer = said("delegation.requested", "agent:1", index);
  const refusal = said("delegation.rejected", "agent:w", index);
  const budget = said("adaptation.budget.established", `agent:once-${index}`, index);
  return [
    { ...offer, ...parties, payload: { key: `k${index}` } },
    { ...refusal, ...parties },
    { ...budget, payload: { budget_id: `b${index}`, limit: 1 } },
  ];
}

/** Everything that is counted somewhere. */
function held({ tenants, over, tokens, timers, families }: TaskState): number {
  let count = over.size + tokens.size + timers.size + families.memories.size;
  for (const { tasks, plans, delegations } of tenants.values()) {
    count += tasks.size + plans.size + delegations.byTask.size + delegations.byKey.size;
  }
  for (const { sources, budgets, calls, versions } of families.tenants.values()) {
    count += sources.size + budgets.size + calls.size + versions.size;
  }
  return count;
}

test("two hundred thousand short tasks over a hundred days keep a flat count", () => {
  const decider = createTaskDecider({ ...DEFAULT_TASK_SETTINGS, retentionMs: DAYS * DAY_MS });
  const state = decider.initial();
  const start = Date.UTC(2026, 10, 30);
  let seq = 0;
  const fold = (envelope: Envelope, at: number) => {
    seq += 1;
    const frame = {
      seq,
      tenant: "acme",
      cause: { in: seq },
      at,
      epoch: 1,
      prev: seq - 1,
      seen: {},
    };
    const entry: EventEntry = { kind: "event", ...frame, envelope };
    decider.evolve(state, entry);
  };
  const root = { spec_version: "0.2", source: "agent:0", created_at: "2026-11-30T10:00:00Z" };
  fold({ ...root, id: "root", type: "task.submitted", task_id: "root", payload: {} }, start);

  const counts: number[] = [];
  for (let index = 0; index < TASKS; index += 1) {
    const at = start + Math.floor((index * DAY_MS) / PER_DAY);
    for (const envelope of life(index)) fold(envelope, at);
    if (index % PER_DAY === PER_DAY - 1) counts.push(held(state));
  }
  const settled = counts.slice(DAYS + 1);
  const [least, most] = [Math.min(...settled), Math.max(...settled)];
  assert.equal(settled.length, TASKS / PER_DAY - DAYS - 1);
  assert.ok(most - least <= 100, `from ${least} to ${most}`);
  // Each day's tasks twice (table and queue), an offer with its key and queue, a source and a budget.
  assert.ok(most <= (DAYS * PER_DAY * 29) / 10 + 100, `${most}`);
  const kept = state.tenants.get("acme")?.tasks.get("root");
  assert.equal(kept?.childCount, TASKS);
  assert.equal(kept?.liveCount, 0);
});
