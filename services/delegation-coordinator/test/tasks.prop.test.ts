import assert from "node:assert/strict";
import { test } from "node:test";
import { type Decision, type DomainEntry, deriveId, type Envelope } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import fc from "fast-check";
import { describeState } from "../src/index.ts";
import { parentIdOf, taskIdOf } from "../src/rules/identity.ts";
import { ev, SERVICE, type World, world } from "./support.ts";

const IDS = ["t0", "t1", "t2", "t3", "t4", "t5", "t6", "__proto__"];
const AGENTS = ["agent:a", "agent:b", "agent:c"];
const VERBS = [
  "accepted",
  "started",
  "blocked",
  "progress",
  "output",
  "completed",
  "failed",
  "cancelled",
  "timed_out",
];
const TERMINAL = new Set(["task.completed", "task.failed", "task.cancelled", "task.timed_out"]);

const id = fc.constantFrom(...IDS);
const agent = fc.constantFrom(...AGENTS);
const span = fc.constantFrom(undefined, undefined, 0, 40, 100, 1e9, Number.MAX_SAFE_INTEGER);
/** Most tasks here have no deadline, or time-outs would leave nothing to cancel. */
const deadline = fc.oneof(
  { weight: 4, arbitrary: fc.constant(undefined) },
  { weight: 1, arbitrary: span },
);

type Command =
  | {
      do: "submit";
      id: string;
      parent: string | undefined;
      target: string | undefined;
      by: string;
      span: number | undefined;
    }
  | { do: "say"; verb: string; id: string; by: string }
  | { do: "own"; verb: string; id: string }
  | { do: "ask"; id: string; by: string; span: number | undefined }
  | { do: "grow"; parent: number; by: string; span: number | undefined; isRun: boolean }
  | { do: "close"; verb: string; parent: number; span: number | undefined }
  | { do: "step" }
  | { do: "settle" }
  | { do: "wait"; ms: number }
  | { do: "again"; index: number }
  | { do: "fail" };

const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("submit" as const),
      id,
      parent: fc.option(id, { nil: undefined, freq: 5 }),
      target: fc.option(agent, { nil: undefined }),
      by: agent,
      span: deadline,
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("say" as const),
      verb: fc.constantFrom(...VERBS),
      id,
      by: agent,
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("own" as const),
      verb: fc.constantFrom("started", ...VERBS),
      id,
    }),
  },
  {
    weight: 14,
    arbitrary: fc.record({
      do: fc.constant("grow" as const),
      parent: fc.nat(40),
      by: agent,
      span: deadline,
      isRun: fc.boolean(),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("close" as const),
      verb: fc.constantFrom(
        "cancelled",
        "cancelled",
        "failed",
        "timed_out",
        "cancel.requested",
        "cancel.requested",
      ),
      parent: fc.nat(40),
      span: fc.constantFrom(0, 20, 50, 1e9),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("ask" as const), id, by: agent, span }) },
  { weight: 6, arbitrary: fc.constant({ do: "step" as const }) },
  { weight: 1, arbitrary: fc.constant({ do: "settle" as const }) },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.constantFrom(1, 30, 60) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("again" as const), index: fc.nat(200) }) },
);
const failing = fc.oneof(
  { weight: 30, arbitrary: command },
  { weight: 1, arbitrary: fc.constant({ do: "fail" as const }) },
);

/** The rules of the log, told apart from the product: every prefix must keep them. */
class Oracle {
  readonly #parents = new Map<string, string | undefined>();
  readonly #ended = new Set<string>();
  readonly #closed = new Map<string, string>();
  readonly cited = new Set<string>();
  readonly ids = new Set<string>();
  #read = 0;

  read(log: readonly DomainEntry[]): void {
    for (const entry of log.slice(this.#read)) this.#entry(entry);
    this.#read = log.length;
  }

  #ancestors(task: string): string[] {
    const found: string[] = [];
    for (let at: string | undefined = task; at !== undefined; at = this.#parents.get(at))
      found.push(at);
    return found;
  }

  #entry(entry: DomainEntry): void {
    if (entry.kind === "obligation_failed") {
      for (const [root, plan] of this.#closed) if (plan === entry.id) this.#closed.delete(root);
      return;
    }
    if (entry.kind === "begun") {
      const root = taskIdOf(entry.plan.envelope) ?? "";
      assert.ok(!this.#ended.has(root), "a plan for an ended task");
      assert.ok(
        !this.#ancestors(root).some((at) => this.#closed.has(at)),
        "a plan in a closed subtree",
      );
      this.#closed.set(root, entry.plan.id);
      return;
    }
    const { envelope } = entry;
    if (envelope.type === "event.rejected") return;
    const task = taskIdOf(envelope) ?? "";
    assert.ok(!this.ids.has(envelope.id), `id ${envelope.id} twice`);
    this.ids.add(envelope.id);
    const over = this.#ancestors(task).find((at) => this.#closed.has(at));
    if (envelope.type === "task.submitted") {
      const parent = parentIdOf(envelope);
      assert.ok(!this.#parents.has(task), "an id used twice");
      if (parent !== undefined) {
        assert.ok(
          this.#parents.has(parent) && !this.#ended.has(parent),
          "a parent that is not live",
        );
        assert.ok(
          !this.#ancestors(parent).some((at) => this.#closed.has(at)),
          "a child in a closed subtree",
        );
      }
      this.#parents.set(task, parent);
      return;
    }
    assert.ok(this.#parents.has(task) && !this.#ended.has(task), "an event of no live task");
    if (!TERMINAL.has(envelope.type)) {
      assert.ok(over === undefined, "work in a closed subtree");
      return;
    }
    if (envelope.source === SERVICE && envelope.type === "task.cancelled") {
      if (envelope.causation_id !== undefined) this.cited.add(envelope.causation_id);
    }
    if (envelope.source === SERVICE && envelope.type === "task.timed_out") {
      assert.ok(
        over === undefined || this.#closed.get(over) === envelope.id,
        "a timer in a closed subtree",
      );
    }
    for (const [child, parent] of this.#parents) {
      assert.ok(parent !== task || this.#ended.has(child), `${task} ended over live ${child}`);
    }
    this.#ended.add(task);
    this.#closed.delete(task);
  }

  openPlans(): number {
    return this.#closed.size;
  }
}

function ownerOf(scenario: World, task: string): string {
  const found = scenario.state.tenants.get(scenario.tenant)?.tasks.get(task);
  return found?.owner ?? found?.target ?? found?.submitter ?? "agent:a";
}

/** A live task, preferring those with live children when asked for a parent. */
function pick(scenario: World, index: number, wanted: "any" | "parent"): string | undefined {
  const tasks = [...(scenario.state.tenants.get(scenario.tenant)?.tasks.values() ?? [])];
  const live = tasks.filter((task) => task.ended === undefined);
  const parents = wanted === "parent" ? live.filter((task) => task.liveCount > 0) : live;
  return parents[index % Math.max(1, parents.length)]?.id;
}

/** The envelope that a command publishes, or nothing when the command is not an envelope. */
function envelopeOf(scenario: World, sent: Envelope[], now: Command): Envelope | undefined {
  const next = `evt_${sent.length}`;
  switch (now.do) {
    case "submit": {
      const payload: JsonObject = now.span === undefined ? {} : { timeout_ms: now.span };
      const parent = now.parent === undefined ? {} : { parent: now.parent };
      const target = now.target === undefined ? {} : { target: now.target };
      return ev("submitted", now.id, { id: next, by: now.by, ...parent, ...target, payload });
    }
    case "grow": {
      const payload: JsonObject = now.span === undefined ? {} : { timeout_ms: now.span };
      const parent = pick(scenario, now.parent, "any");
      const under = parent === undefined || now.parent % 8 === 0 ? {} : { parent };
      return ev("submitted", `new${sent.length}`, { id: next, by: now.by, ...under, payload });
    }
    case "close": {
      const root = pick(scenario, now.parent, "parent");
      const payload: JsonObject = now.span === undefined ? {} : { grace_period_ms: now.span };
      return root === undefined
        ? undefined
        : ev(now.verb, root, { id: next, by: ownerOf(scenario, root), payload });
    }
    case "say":
      return ev(now.verb, now.id, { id: next, by: now.by });
    case "own":
      return ev(now.verb, now.id, { id: next, by: ownerOf(scenario, now.id) });
    case "ask": {
      const payload: JsonObject = now.span === undefined ? {} : { grace_period_ms: now.span };
      return ev("cancel.requested", now.id, { id: next, by: now.by, payload });
    }
    case "again":
      return sent[now.index % Math.max(1, sent.length)];
    default:
      return undefined;
  }
}

function run(commands: readonly Command[]): {
  scenario: World;
  decisions: Decision[];
  oracle: Oracle;
} {
  const scenario = world();
  const oracle = new Oracle();
  const sent: Envelope[] = [];
  const decisions: Decision[] = [];
  for (const now of commands) {
    const envelope = envelopeOf(scenario, sent, now);
    if (envelope) {
      const length = scenario.log.length;
      const { decision } = scenario.judge(envelope);
      if (now.do === "again")
        assert.equal(scenario.log.length, length, "a duplicate added an entry");
      else sent.push(envelope);
      decisions.push(decision);
      if (now.do === "grow" && now.isRun) {
        sent.push(ev("started", envelope.task_id ?? "", { id: `evt_${sent.length}`, by: now.by }));
        const started = sent.at(-1);
        if (started) scenario.judge(started);
      }
    } else if (now.do === "wait") scenario.wait(now.ms);
    else if (now.do === "settle") scenario.settle();
    else if (now.do === "step") {
      scenario.owed();
      scenario.step();
    } else if (now.do === "fail") {
      const owed = scenario.owed();
      if (owed && "cause" in owed) scenario.fail(owed.cause);
    }
    oracle.read(scenario.log);
  }
  return { scenario, decisions, oracle };
}

const RUNS = 300;
const sequences = fc.array(command, { minLength: 10, maxLength: 80, size: "max" });

test("every prefix of every log keeps the rules, and every plan finishes", () => {
  fc.assert(
    fc.property(sequences, (commands) => {
      const { scenario, oracle } = run(commands);
      scenario.settle();
      oracle.read(scenario.log);
      assert.equal(oracle.openPlans(), 0, "a begun plan that never ends");
      // Past every grace that any test here gives, nothing that was asked to end is live.
      scenario.settle(Date.UTC(9999, 11, 31, 23, 59, 59, 999));
      oracle.read(scenario.log);
      assert.equal(scenario.state.tenants.get("acme")?.plans.size ?? 0, 0);
      assert.equal(scenario.state.gentleCount, 0);
      assert.equal(scenario.owed(), undefined);
      for (const cause of oracle.cited) assert.ok(oracle.ids.has(cause), `no entry ${cause}`);
    }),
    { numRuns: RUNS, includeErrorInReport: true },
  );
});

test("a fresh fold of the log gives the same state, and owes the same", () => {
  fc.assert(
    fc.property(sequences, (commands) => {
      const { scenario } = run(commands);
      const live = describeState(scenario.state);
      const refolded = scenario.refold();
      assert.deepEqual(describeState(refolded), live);
      scenario.state = refolded;
      scenario.settle(Date.UTC(9999, 11, 31, 23, 59, 59, 999));
      assert.equal(refolded.tenants.get("acme")?.plans.size ?? 0, 0);
    }),
    { numRuns: RUNS, includeErrorInReport: true },
  );
});

test("decide and owed change nothing that matters", () => {
  fc.assert(
    fc.property(sequences, command, (commands, last) => {
      const { scenario } = run(commands);
      const before = JSON.stringify(describeState(scenario.state));
      const envelope = envelopeOf(scenario, [], last);
      if (envelope) {
        scenario.decider.decide(
          scenario.state,
          {
            envelope: { ...envelope, id: "evt_last" },
            tenant: "acme",
            source: envelope.source,
            intake: 1,
          },
          { now: scenario.now, deriveId: (index) => deriveId("acme", "in:1", index, 0) },
        );
      }
      scenario.owed();
      assert.equal(JSON.stringify(describeState(scenario.state)), before);
    }),
    { numRuns: RUNS, includeErrorInReport: true },
  );
});

test("obligations that cannot be met stop neither the fold nor the rest", () => {
  fc.assert(
    fc.property(fc.array(failing, { minLength: 10, maxLength: 80, size: "max" }), (commands) => {
      const { scenario, oracle } = run(commands);
      scenario.settle(Date.UTC(9999, 11, 31, 23, 59, 59, 999));
      oracle.read(scenario.log);
      assert.equal(scenario.owed(), undefined);
      assert.deepEqual(describeState(scenario.refold()), describeState(scenario.state));
    }),
    { numRuns: RUNS, includeErrorInReport: true },
  );
});

test("the generated runs reach what they are meant to attack", () => {
  const seen = new Map<string, number>();
  const note = (what: string) => seen.set(what, (seen.get(what) ?? 0) + 1);
  for (const commands of fc.sample(sequences, { numRuns: 200, seed: 7 })) {
    const { scenario, decisions } = run(commands);
    for (const decision of decisions) note(Object.keys(decision)[0] ?? "");
    for (const entry of scenario.log) {
      if (entry.kind === "begun") note(`begun ${entry.plan.kind}`);
      if (entry.kind === "event" && entry.envelope.source === SERVICE) note(entry.envelope.type);
      if (
        entry.kind === "event" &&
        JSON.stringify(entry.envelope.payload).includes("settling_by")
      ) {
        note("settling_by");
      }
      if (
        entry.kind === "event" &&
        JSON.stringify(entry.envelope.payload).includes('"forced":true')
      ) {
        note("forced");
      }
    }
  }
  const wanted = [
    "accept",
    "begin",
    "reject",
    "duplicate",
    "begun task.cancelled",
    "begun task.failed",
    "begun task.timed_out",
    "task.cancelled",
    "task.cancel.requested",
    "task.timed_out",
    "settling_by",
    "forced",
  ];
  for (const what of wanted)
    assert.ok((seen.get(what) ?? 0) >= 10, `${what}: ${seen.get(what) ?? 0}`);
});
