/** Delegations under random histories: offers, answers, handoffs, work, cancellations and time. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { DomainEntry, Envelope } from "@harmovela/envelope";
import { formatInstant } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import { assertTenantsApart } from "@harmovela/testkit";
import fc from "fast-check";
import { findDelegation, ownerOf } from "../src/delegation/state.ts";
import { describeState, issueToken } from "../src/index.ts";
import { claims, del, signed, tokenWorld } from "./delegation-support.ts";
import { ev, SERVICE, type World } from "./support.ts";

const RUNS = 300;
const TASKS = ["t0", "t1", "t2", "__proto__"];
const AGENTS = ["agent:a", "agent:b", "agent:c"];
const task = fc.constantFrom(...TASKS);
const agent = fc.constantFrom(...AGENTS);
const jti = fc.constantFrom("j0", "j1", "j2", "j3", "j4", "j5");

const move = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("offer" as const),
      task,
      parent: fc.option(task, { nil: undefined, freq: 2 }),
      by: agent,
      to: fc.option(agent, { nil: undefined, freq: 4 }),
      dueMs: fc.constantFrom(undefined, undefined, -100, 60),
      key: fc.constantFrom(undefined, undefined, undefined, "k"),
    }),
  },
  // What the state says is next, so that histories get somewhere.
  { weight: 14, arbitrary: fc.record({ do: fc.constant("follow" as const), task, jti }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("refuse" as const), task }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("escalate" as const), task, to: agent }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("say" as const),
      verb: fc.constantFrom("accepted", "rejected", "handoff.completed", "escalated"),
      task,
      from: agent,
      to: agent,
      by: agent,
      jti,
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("work" as const),
      verb: fc.constantFrom(
        "submitted",
        "started",
        "progress",
        "completed",
        "failed",
        "cancelled",
        "cancel.requested",
      ),
      task,
      by: fc.option(agent, { nil: undefined, freq: 3 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("issue" as const), task }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.nat(120) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("step" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("settle" as const) }) },
);
type Move = typeof move extends fc.Arbitrary<infer T> ? T : never;

function parentOf(scenario: World, id: string): string | undefined {
  return findDelegation(scenario.state, scenario.tenant, id)?.parentId;
}

function tokenFor(scenario: World, id: string, from: string, to: string, name: string): string {
  const over = { iss: from, sub: to, task_id: id, parent_task_id: parentOf(scenario, id) ?? null };
  return signed(claims(scenario.now, name, over));
}

function envelopeOf(scenario: World, now: Move): Envelope | undefined {
  if (now.do === "offer") {
    const deadline: JsonObject =
      now.dueMs === undefined ? {} : { deadline: formatInstant(scenario.now + now.dueMs) };
    const key: JsonObject = now.key === undefined ? {} : { key: now.key };
    return del("requested", {
      task: now.task,
      parent: now.parent,
      from: now.by,
      payload: { ...deadline, ...key },
      more: { delegated_to: now.to as never },
    });
  }
  if (now.do === "say") {
    const { verb, from, to, by } = now;
    const token = tokenFor(scenario, now.task, from, to, now.jti);
    const isHandoff = verb === "handoff.completed";
    return del(verb, {
      task: now.task,
      parent: undefined,
      from,
      to,
      by,
      ...(isHandoff ? { token } : {}),
    });
  }
  if (now.do === "work") {
    const found = scenario.state.tenants.get(scenario.tenant)?.tasks.get(now.task);
    const by = now.by ?? found?.owner ?? found?.submitter ?? "agent:a";
    return ev(now.verb, now.task, { by, payload: { reason: "r" } });
  }
  if (now.do !== "follow" && now.do !== "refuse" && now.do !== "escalate") return undefined;
  const delegation = findDelegation(scenario.state, scenario.tenant, now.task);
  if (delegation === undefined) return undefined;
  const { delegatedBy: from, delegatedTo: to = "agent:c", state } = delegation;
  const common = { task: now.task, parent: undefined, from, to };
  if (now.do === "refuse") return del("rejected", common);
  if (now.do === "escalate") return del("escalated", { ...common, by: from, to: now.to });
  if (state !== "accepted") return del("accepted", common);
  const token = tokenFor(scenario, now.task, from, to, now.jti);
  return del("handoff.completed", { ...common, token });
}

/** The rules, told apart from the product and kept by every prefix of the log. */
class Rules {
  readonly #owners = new Map<string, string>();
  readonly #open = new Set<string>();
  readonly #spent = new Set<string>();
  readonly #scenario: World;
  handoffs = 0;
  expired = 0;
  replaced = 0;
  #read = 0;

  constructor(scenario: World) {
    this.#scenario = scenario;
  }

  check(): void {
    const { log } = this.#scenario;
    for (const entry of log.slice(this.#read)) this.#entry(entry);
    this.#read = log.length;
    this.#state();
  }

  #entry(entry: DomainEntry): void {
    if (entry.kind !== "event" || !entry.envelope.type.startsWith("delegation.")) return;
    const { type, source, task_id: id = "", delegated_to: to = "" } = entry.envelope;
    if (type === "delegation.requested") {
      this.#owners.set(id, source);
      this.#open.add(id);
    } else if (type === "delegation.escalated") {
      this.#open.add(id);
      this.replaced += 1;
    } else if (type === "delegation.handoff.completed") {
      assert.ok(this.#open.delete(id), `a second handoff of ${id}`);
      this.#owners.set(id, to);
      const proof = entry.envelope.handoff_proof as { jti: string } | undefined;
      assert.ok(proof && !this.#spent.has(proof.jti), "a token used twice");
      this.#spent.add(proof.jti);
      this.handoffs += 1;
    } else if (type === "delegation.rejected" && source === SERVICE) {
      this.expired += 1;
    }
  }

  #state(): void {
    const { state, tenant } = this.#scenario;
    const found = state.tenants.get(tenant);
    for (const one of found?.tasks.values() ?? []) {
      const delegation = found?.delegations.byTask.get(one.id);
      if (delegation?.task === one) assert.equal(ownerOf(one), this.#owners.get(one.id));
      if (one.parent) {
        assert.equal(found?.tasks.get(one.parent.id), one.parent, "a parent that is not there");
        assert.ok(one.ended || !one.parent.ended, `${one.parent.id} ended over live ${one.id}`);
      }
    }
    for (const delegation of found?.delegations.byTask.values() ?? []) {
      const { task: record, timer } = delegation;
      if (record) assert.equal(found?.tasks.get(delegation.taskId), record, "a lost record");
      if (timer) assert.ok(record && !record.ended, "a timer of nothing");
    }
  }
}

function workerOf({ state, tenant }: World, { task_id: id = "" }: Envelope): string | undefined {
  return state.tenants.get(tenant)?.tasks.get(id)?.owner;
}

function run(moves: readonly Move[]): { scenario: World; rules: Rules } {
  const scenario = tokenWorld();
  const rules = new Rules(scenario);
  for (const now of moves) {
    const envelope = envelopeOf(scenario, now);
    if (envelope) {
      const before = JSON.stringify(describeState(scenario.state));
      const worker = workerOf(scenario, envelope);
      const { decision } = scenario.judge(envelope);
      const isChanging = "accept" in decision || "begin" in decision;
      const after = JSON.stringify(describeState(scenario.state));
      if (!isChanging) assert.equal(after, before, "a refusal changed the state");
      const isWork = ["task.progress", "task.completed"].includes(envelope.type);
      if (isChanging && isWork) assert.equal(envelope.source, worker, "work of another");
    } else if (now.do === "issue") issue(scenario, now.task);
    else if (now.do === "wait") scenario.wait(now.ms);
    else if (now.do === "step") {
      scenario.owed();
      scenario.step();
    } else if (now.do === "settle") scenario.settle();
    rules.check();
  }
  return { scenario, rules };
}

function issue(scenario: World, id: string): void {
  const { state, tenant, now } = scenario;
  const asker = findDelegation(state, tenant, id)?.delegatedBy ?? "agent:a";
  const answer = issueToken(state, { tenant, asker, params: { task_id: id }, now });
  if ("refused" in answer) return;
  const { jti } = answer.issue;
  scenario.append({ kind: "token_issued", body: answer.issue, cause: { owed: jti }, tenant });
}

const history = fc.array(move, { minLength: 10, maxLength: 60, size: "max" });

test("one owner, one handoff of an offer, no token twice, no ended parent over a live child", () => {
  const reached = { handoffs: 0, expired: 0, replaced: 0 };
  fc.assert(
    fc.property(history, (moves) => {
      const { scenario, rules } = run(moves);
      scenario.settle(scenario.now + 10_000);
      rules.check();
      assert.equal(scenario.state.tenants.get(scenario.tenant)?.plans.size ?? 0, 0);
      for (const name of ["handoffs", "expired", "replaced"] as const) reached[name] += rules[name];
    }),
    { numRuns: RUNS },
  );
  for (const [name, count] of Object.entries(reached)) {
    assert.ok(count > RUNS / 10, `only ${count} ${name}`);
  }
});

test("a fresh fold of the log gives the same state, and owes the same", () => {
  fc.assert(
    fc.property(history, (moves) => {
      const { scenario } = run(moves);
      const again = scenario.refold();
      assert.deepEqual(describeState(again), describeState(scenario.state));
      const underWay = { requests: new Set<string>() };
      assert.deepEqual(
        scenario.decider.owed(again, scenario.now + 10_000, underWay),
        scenario.decider.owed(scenario.state, scenario.now + 10_000, underWay),
      );
    }),
    { numRuns: RUNS },
  );
});

test("a tenant notices nothing of another one that has the same names", () => {
  fc.assert(
    fc.property(history, (moves) => {
      assertTenantsApart(run(moves).scenario, describeState);
    }),
    { numRuns: 100, includeErrorInReport: true },
  );
});
