/** Random histories in which time passes quickly: what is over goes, and nothing else. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type DomainEntry, type Envelope, findSession, type Session } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import { reachable } from "@harmovela/testkit";
import fc from "fast-check";
import { findDelegation } from "../src/delegation/state.ts";
import type { Memory } from "../src/families/state.ts";
import { createTaskDecider, DEFAULT_TASK_SETTINGS, describeState } from "../src/index.ts";
import { parentIdOf, taskIdOf } from "../src/rules/identity.ts";
import type { Over, Task, TaskState } from "../src/state.ts";
import type { KnownToken } from "../src/tokens/memory.ts";
import { claims, del, signed, tokenWorld } from "./delegation-support.ts";
import { event, ofSession, opened } from "./family-support.ts";
import { type Command, command, envelopeOf } from "./random-runs.ts";
import { ev, type World } from "./support.ts";

const RUNS = 200;
const RETENTION = 100;
const TENANTS = ["acme", "other"];
const name = fc.constantFrom("one", "two", "__proto__");
const agent = fc.constantFrom("agent:a", "agent:b", "agent:c");
const task = fc.constantFrom("t0", "t1", "t2", "t3", "t4", "t5", "t6", "__proto__");

type Draft = { type: string; source: string; id: string; amount: number };
type Move =
  | { do: "task"; command: Command }
  | { do: "offer"; task: string; parent: string | undefined; by: string; to: string; key: boolean }
  | { do: "follow" | "refuse" | "escalate"; task: string }
  | { do: "family"; draft: Draft; tenant: string }
  | { do: "turn"; task: string; parent: string | undefined }
  | { do: "take"; task: string; session: string; by: string }
  | { do: "lose"; session: string }
  | { do: "wait"; ms: number };

const move: fc.Arbitrary<Move> = fc.oneof(
  { weight: 12, arbitrary: fc.record({ do: fc.constant("task" as const), command }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("offer" as const),
      task,
      parent: fc.option(task, { nil: undefined, freq: 2 }),
      by: agent,
      to: agent,
      key: fc.boolean(),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constantFrom(
        "follow" as const,
        "follow" as const,
        "refuse" as const,
        "escalate" as const,
      ),
      task,
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("family" as const),
      draft: fc.record({
        type: fc.constantFrom(
          "session.opened",
          "session.closed",
          "subscription.requested",
          "command.requested",
          "command.completed",
          "query.requested",
          "query.response",
          "tool.call.requested",
          "tool.call.progress",
          "tool.call.completed",
          "adaptation.budget.established",
          "environment.observed",
        ),
        source: agent,
        id: name,
        amount: fc.nat(3),
      }),
      tenant: fc.constantFrom(...TENANTS),
    }),
  },
  {
    weight: 14,
    arbitrary: fc.record({ do: fc.constant("take" as const), task, session: name, by: agent }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("lose" as const), session: name }) },
  // Short lives, so that ids come back.
  {
    weight: 16,
    arbitrary: fc.record({
      do: fc.constant("turn" as const),
      task,
      parent: fc.option(task, { nil: undefined, freq: 2 }),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("wait" as const),
      ms: fc.constantFrom(1, 20, 40, RETENTION, 3 * RETENTION),
    }),
  },
);
const history = fc.array(move, { minLength: 20, maxLength: 100, size: "max" });

function familyEvent({ type, source, id, amount }: Draft): Envelope {
  if (type === "session.opened") {
    return opened(id, { heartbeat_interval_ms: 0 }, { source });
  }
  const fields: Partial<Envelope> = { source };
  if (type.startsWith("session") || type.startsWith("subscription")) fields.session_id = id;
  if (/^(command|query)\./.test(type)) {
    fields.correlation_id = id;
    fields.target = type.endsWith("requested") ? "agent:b" : "agent:a";
    if (!type.endsWith("requested")) fields.source = "agent:b";
  }
  if (type === "environment.observed")
    Object.assign(fields, { budget_id: id, budget_cost: amount });
  const payload: JsonObject = {
    session_id: id,
    call_id: id,
    budget_id: id,
    limit: 2 * amount,
    query_scope: id,
    snapshot_version: amount,
    negotiation_window_ms: amount * RETENTION,
  };
  return event(type, { ...fields, payload });
}

/** Submits a task, or ends it. */
function turn(scenario: World, { task: id, parent }: Extract<Move, { do: "turn" }>): Envelope {
  const found = scenario.state.tenants.get(scenario.tenant)?.tasks.get(id);
  if (found && !found.ended) return ev("failed", id, { by: found.owner ?? found.submitter });
  return ev("submitted", id, parent === undefined ? {} : { parent });
}

/** Whoever may work on a task does so in a session that it opened, or opens one. */
function take(scenario: World, { task: id, session, by }: Extract<Move, { do: "take" }>): Envelope {
  const found = scenario.state.tenants.get(scenario.tenant)?.tasks.get(id);
  const source = found?.owner ?? found?.target ?? by;
  const own = sessionOf(scenario, source).session;
  if (own === undefined) return opened(session, { heartbeat_interval_ms: 0 }, { source });
  const verb = found?.owner === undefined ? "started" : "progress";
  return ev(verb, id, { by: source, more: { session_id: own } });
}

/** An agent says itself that it was too late; in a session that has a task, if there is one. */
function lose(scenario: World, named: string): Envelope {
  const instances = scenario.state.tenants.get(scenario.tenant)?.instances;
  const busy = [...(instances?.values() ?? [])].find(({ tasks }) => tasks.head);
  const id = busy?.session ?? named;
  const known = findSession(scenario.state.families.sessions, scenario.tenant, id);
  const error = { code: "session_timeout", message: "late", retryable: true };
  return ofSession("error", id, { error }, { source: known?.initiator ?? "agent:a" });
}

/** A session that the agent itself has opened. */
function sessionOf(scenario: World, agentName: string): { session?: string } {
  const sessions = scenario.state.families.sessions.tenants.get(scenario.tenant);
  const own = [...(sessions?.values() ?? [])].find(
    ({ initiator, endedAt }) => initiator === agentName && endedAt === undefined,
  );
  return own === undefined ? {} : { session: own.id };
}

function delegationEvent(scenario: World, now: Move): Envelope | undefined {
  if (now.do === "offer") {
    const key: JsonObject = now.key ? { key: "k" } : {};
    const { task: id, parent, by: from, to } = now;
    return del("requested", { task: id, parent, from, to, payload: key });
  }
  if (now.do !== "follow" && now.do !== "refuse" && now.do !== "escalate") return undefined;
  const found = findDelegation(scenario.state, scenario.tenant, now.task);
  if (found === undefined) return undefined;
  const { delegatedBy: from, delegatedTo: to = "agent:c", parentId, state } = found;
  const common = { task: now.task, parent: undefined, from, to };
  if (now.do === "refuse") return del("rejected", common);
  if (now.do === "escalate") return del("escalated", { ...common, by: from, to: "agent:z" });
  if (state !== "accepted") return del("accepted", { ...common, ...sessionOf(scenario, to) });
  const over = { iss: from, sub: to, task_id: now.task, parent_task_id: parentId ?? null };
  const token = signed(claims(scenario.now, `j${scenario.log.length}`, over));
  return del("handoff.completed", { ...common, token });
}

/** What must and what may be remembered, told from the log alone. */
class Expectation {
  readonly live = new Map<string, { parent: string | undefined }>();
  readonly #ended = new Map<string, number>();
  readonly sessions = new Set<string>();
  reused = 0;
  orphaned = 0;
  #read = 0;

  follow(log: readonly DomainEntry[]): void {
    for (const entry of log.slice(this.#read)) if (entry.kind === "event") this.#event(entry);
    this.#read = log.length;
  }

  #event({ envelope, at, tenant, cause }: Extract<DomainEntry, { kind: "event" }>): void {
    const { type } = envelope;
    if (type.endsWith(".rejected") && "in" in cause && envelope.source.startsWith("service:"))
      return;
    const session = `${tenant} ${envelope.session_id}`;
    if (type === "session.opened") this.sessions.add(session);
    if (type === "session.closed" || type === "session.error") this.sessions.delete(session);
    const id = taskIdOf(envelope);
    if (id === undefined) return;
    if (type === "task.submitted" || type === "delegation.requested") this.#open(id, at, envelope);
    else if (/^task\.(completed|failed|cancelled|timed_out)$/.test(type)) {
      assert.ok(this.live.delete(id), `${type} of ${id}, which is not live`);
      if (type === "task.failed" && envelope.source.startsWith("service:")) this.orphaned += 1;
      this.#ended.set(id, at);
    }
  }

  #open(id: string, at: number, envelope: Envelope): void {
    const ended = this.#ended.get(id);
    if (ended !== undefined) {
      assert.ok(ended + RETENTION < at, `${id} is used again ${at - ended} after its end`);
      this.#ended.delete(id);
      this.reused += 1;
    }
    if (this.live.has(id)) return;
    const parent = parentIdOf(envelope);
    assert.ok(parent === undefined || this.live.has(parent), `${id} under ${parent}, not live`);
    this.live.set(id, { parent });
  }

  /** A task that was offered only may be taken out again. */
  withdrawn(id: string): void {
    this.live.delete(id);
  }
}

/** Nothing is held that was over longer ago than the retention. */
function assertForgotten(state: TaskState, at: number): void {
  const isOld = (when: number | undefined) => when !== undefined && when + RETENTION < at;
  for (const held of reachable(state)) {
    const { ended } = held as Partial<Task>;
    const { endedAt } = held as Partial<Session>;
    const { usedAt } = held as Partial<Memory>;
    const { jti, due } = held as Partial<KnownToken>;
    const { kind, at: since } = held as Partial<Over>;
    if (typeof ended === "object") assert.ok(!isOld(ended.at), `a task that ended at ${ended.at}`);
    assert.ok(!isOld(endedAt), `a session that ended at ${endedAt}`);
    assert.ok(!isOld(usedAt), `something unused since ${usedAt}`);
    assert.ok(kind !== "offer" || !isOld(since), `an offer that was over at ${since}`);
    assert.ok(jti === undefined || due === undefined || due >= at, `a token of ${due}`);
  }
  for (const member of state.ring.backwards()) {
    if (member.kind !== "instance") continue;
    assert.ok(member.lost && member.tasks.head, `the instance ${member.session} owes nothing`);
  }
  for (const tenant of state.tenants.values()) {
    for (const id of tenant.instances.keys()) {
      const found = findSession(state.families.sessions, tenant.name, id);
      assert.ok(found && found.endedAt === undefined, `an instance of the session ${id}`);
    }
    const { byTask, byKey } = tenant.delegations;
    for (const { taskId, task: record, lastAt } of byTask.values()) {
      const isHeld = record !== undefined || tenant.tasks.has(taskId) || !isOld(lastAt);
      assert.ok(isHeld, `a rejected offer of ${taskId}`);
    }
    const offers = state.over.items.flatMap((item) =>
      item?.kind === "offer" ? [item.delegation] : [],
    );
    for (const retry of byKey.values()) {
      const isHeld = [...byTask.values(), ...offers].some((offer) => offer.retry === retry);
      assert.ok(isHeld, `a key that nothing explains: ${retry.key}`);
    }
  }
}

/** Each thing around tasks has its one memory, which says when it was used. */
function assertNoted({ tenants, memories }: TaskState["families"]): void {
  let things = 0;
  for (const { sources, versions, calls, budgets, commands, queries } of tenants.values()) {
    for (const table of [sources, versions, calls, budgets, commands, queries])
      things += table.size;
  }
  assert.equal(memories.size, things);
}

/** What lives is there, and whole. */
function assertThere(scenario: World, expected: Expectation): void {
  const tasks = scenario.state.tenants.get(scenario.tenant)?.tasks ?? new Map<string, Task>();
  for (const id of expected.live.keys()) {
    const found = tasks.get(id);
    // An offer that came to nothing takes its task with it.
    if (found === undefined) {
      assert.equal(findDelegation(scenario.state, scenario.tenant, id)?.task, undefined);
      expected.withdrawn(id);
      continue;
    }
    assert.equal(found.ended, undefined, `${id} is live`);
  }
  for (const found of tasks.values()) {
    assert.ok(found.ended || expected.live.has(found.id), `${found.id} is not known to be live`);
    if (!found.parent) continue;
    const { parent } = found;
    assert.equal(tasks.get(parent.id), parent, `the parent of ${found.id}`);
    assert.ok(found.ended || !parent.ended, `${parent.id} ended over ${found.id}`);
  }
  for (const found of tasks.values()) {
    let listed = 0;
    for (let child = found.firstChild; child; child = child.nextSibling) listed += 1;
    assert.equal(found.childCount, listed + found.forgottenCount);
  }
  const { sessions } = scenario.state.families;
  const held = [...sessions.tenants].flatMap(([tenant, of]) =>
    [...of.values()].flatMap((session) =>
      session.endedAt === undefined ? [`${tenant} ${session.id}`] : [],
    ),
  );
  assert.deepEqual(held.sort(), [...expected.sessions].sort());
}

function run(moves: readonly Move[]): { scenario: World; expected: Expectation } {
  const scenario = tokenWorld({ retentionMs: RETENTION });
  const expected = new Expectation();
  const sent: Envelope[] = [];
  for (const now of moves) {
    if (now.do === "wait") scenario.wait(now.ms);
    else if (now.do === "family") scenario.judge(familyEvent(now.draft), now.tenant);
    else if (now.do === "turn") scenario.judge(turn(scenario, now));
    else if (now.do === "take") scenario.judge(take(scenario, now));
    else if (now.do === "lose") scenario.judge(lose(scenario, now.session));
    else if (now.do === "task") act(scenario, sent, now.command);
    else {
      const envelope = delegationEvent(scenario, now);
      if (envelope) scenario.judge(envelope);
    }
    expected.follow(scenario.log);
    const last = scenario.log.at(-1);
    if (last) assertForgotten(scenario.state, last.at);
    assertThere(scenario, expected);
    assertNoted(scenario.state.families);
  }
  return { scenario, expected };
}

function act(scenario: World, sent: Envelope[], now: Command): void {
  const envelope = envelopeOf(scenario, sent, now);
  if (envelope) {
    scenario.judge(envelope);
    sent.push(envelope);
  } else if (now.do === "wait") scenario.wait(now.ms);
  else if (now.do === "step") {
    scenario.owed();
    scenario.step();
  } else scenario.settle();
}

test("nothing that is over is held longer than the retention, and nothing that lives is lost", () => {
  let reused = 0;
  let orphaned = 0;
  fc.assert(
    fc.property(history, (moves) => {
      const { scenario, expected } = run(moves);
      scenario.settle(Date.UTC(9999, 11, 31, 23, 59, 59, 999));
      expected.follow(scenario.log);
      reused += expected.reused;
      orphaned += expected.orphaned;
    }),
    { numRuns: RUNS },
  );
  assert.ok(reused > RUNS / 4, `only ${reused} ids were used again`);
  assert.ok(orphaned > RUNS / 20, `only ${orphaned} tasks failed with their session`);
});

test("folds in one go, in the leader and half in each forget alike", () => {
  fc.assert(
    fc.property(history, fc.nat(100), (moves, percent) => {
      const { scenario } = run(moves);
      const live = describeState(scenario.state);
      assert.deepEqual(describeState(scenario.refold()), live);
      // A leader that took over in the middle and has looked at what is owed.
      const cut = Math.floor((scenario.log.length * percent) / 100);
      const state = scenario.decider.initial();
      for (const [index, entry] of scenario.log.entries()) {
        if (index === cut) scenario.decider.owed(state, entry.at, { requests: new Set() });
        scenario.decider.evolve(state, entry);
      }
      assert.deepEqual(describeState(state), live);
    }),
    { numRuns: RUNS },
  );
});

test("a fold under any other retention takes every log", () => {
  fc.assert(
    fc.property(history, fc.constantFrom(0, 1, 50, 1000, 1e9), (moves, retentionMs) => {
      const { scenario } = run(moves);
      const decider = createTaskDecider({ ...DEFAULT_TASK_SETTINGS, retentionMs });
      const state = decider.initial();
      for (const entry of scenario.log) decider.evolve(state, entry);
      const tasks = (of: TaskState) =>
        [...(of.tenants.get(scenario.tenant)?.tasks.values() ?? [])]
          .filter(({ ended }) => !ended)
          .map(({ id, state: at, owner }) => `${id} ${at} ${owner}`);
      assert.deepEqual(tasks(state).sort(), tasks(scenario.state).sort());
    }),
    { numRuns: RUNS },
  );
});
