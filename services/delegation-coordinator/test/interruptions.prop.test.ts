/** Random histories of tasks of which some are interrupted, whatever the order. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { DomainEntry, Envelope } from "@harmovela/envelope";
import { cut, Fold, instantPacking, readSnapshot } from "@harmovela/host";
import { assertTenantsApart } from "@harmovela/testkit";
import fc from "fast-check";
import { describeState } from "../src/index.ts";
import { taskIdOf } from "../src/rules/identity.ts";
import type { TaskState } from "../src/state.ts";
import { BOSS, expire, inter, MANAGER, missing, request, undo } from "./interruption-support.ts";
import { Oracle } from "./oracle.ts";
import { type Command, command, envelopeOf } from "./random-runs.ts";
import { ev, SERVICE, type World, world } from "./support.ts";

const RUNS = 250;
const END_OF_TIME = Date.UTC(9999, 11, 31, 23, 59, 59, 999);
const LEGAL = ["task.cancelled", "task.cancel.requested", "task.failed", "task.timed_out"];
const ENDS = ["task.completed", "task.cancelled", "task.failed", "task.timed_out"];

type Step =
  | { do: "task"; command: Command }
  | { do: "say"; what: What; at: number; policy: string }
  | { do: "ask"; verb: "failed" | "cancelled" | "completed"; at: number; pick: number }
  | { do: "undo"; at: number; isOwnFirst: boolean };
type What =
  | "requested"
  | "acknowledged"
  | "saved"
  | "resumed"
  | "cancelled"
  | "expired"
  | "missing";

const say = fc.record({
  do: fc.constant("say" as const),
  what: fc.constantFrom<What>(
    "requested",
    "acknowledged",
    "saved",
    "saved",
    "resumed",
    "resumed",
    "cancelled",
    "expired",
    "missing",
  ),
  at: fc.nat(40),
  policy: fc.constantFrom("save_and_stop", "drain_then_stop", "force_stop"),
});
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.record({ do: fc.constant("task" as const), command }) },
    { weight: 3, arbitrary: say },
    {
      weight: 1,
      arbitrary: fc.record({
        do: fc.constant("ask" as const),
        verb: fc.constantFrom("failed", "cancelled", "completed"),
        at: fc.nat(40),
        pick: fc.nat(20),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        do: fc.constant("undo" as const),
        at: fc.nat(40),
        isOwnFirst: fc.boolean(),
      }),
    },
  ),
  { minLength: 20, maxLength: 110, size: "max" },
);

/** The rules of tasks that are stopped, told apart from the product. */
class Stops {
  readonly #stopped = new Map<string, string>();
  readonly #causes = new Map<string, Set<string>>();
  readonly #known = new Set<string>();
  readonly #ended = new Set<string>();
  readonly granted: string[] = [];
  #read = 0;
  #seen = 0;

  read({ log, observed }: World): void {
    for (; this.#read < log.length; this.#read += 1) {
      while ((observed[this.#seen]?.after ?? Number.POSITIVE_INFINITY) <= this.#read)
        this.#look(observed);
      const entry = log[this.#read];
      if (entry) this.#judge(entry);
    }
    while (this.#seen < observed.length) this.#look(observed);
  }

  #look(observed: World["observed"]): void {
    const entry = observed[this.#seen]?.entry;
    this.#seen += 1;
    if (entry === undefined) return;
    const { envelope, cause } = entry;
    const task = envelope.task_id ?? "";
    const isLive = this.#known.has(task) && !this.#ended.has(task);
    if (!isLive && !envelope.type.startsWith("compensation.")) return;
    const due = (): void => {
      this.#causes.set(task, (this.#causes.get(task) ?? new Set()).add(envelope.id));
    };
    switch (envelope.type) {
      case "interruption.requested":
        if ("owed" in cause) due();
        if (envelope.interruption_policy === "force_stop") this.#stopped.set(task, envelope.id);
        break;
      case "interruption.saved":
      case "interruption.cancelled":
        this.#stopped.set(task, envelope.id);
        due();
        break;
      case "interruption.resumed":
        this.#stopped.delete(task);
        break;
      default:
        due();
    }
  }

  #judge(entry: DomainEntry): void {
    if (entry.kind === "begun") this.#grant(entry.plan.envelope);
    if (entry.kind !== "event" || entry.envelope.type === "event.rejected") return;
    const { envelope } = entry;
    const task = taskIdOf(envelope) ?? "";
    if (this.#stopped.has(task)) {
      assert.ok(LEGAL.includes(envelope.type), `${envelope.type} of ${task}, which is stopped`);
    }
    const { parent_task_id: parent } = envelope;
    if (envelope.type === "task.submitted" && parent !== undefined) {
      assert.ok(!this.#stopped.has(parent), `${task} was born under ${parent}, which is stopped`);
    }
    if (envelope.type === "task.submitted") this.#known.add(task);
    if ("in" in entry.cause) this.#grant(envelope);
    if (!ENDS.includes(envelope.type)) return;
    this.#ended.add(task);
    this.#stopped.delete(task);
  }

  #grant({ source, type, task_id: task = "", causation_id: cause = "" }: Envelope): void {
    if (source !== MANAGER) return;
    this.granted.push(type);
    assert.ok(this.#causes.get(task)?.has(cause), `${type} of ${task} by ${cause}`);
  }
}

interface Run {
  scenario: World;
  oracle: Oracle;
  stops: Stops;
}

function tasksOf(scenario: World): string[] {
  const tasks = [...(scenario.state.tenants.get("acme")?.tasks.values() ?? [])];
  return tasks.filter(({ ended }) => ended === undefined).map(({ id }) => id);
}

function speak(scenario: World, { what, at, policy }: Extract<Step, { do: "say" }>, id: string) {
  const live = tasksOf(scenario);
  const task = live[at % Math.max(1, live.length)] ?? "t0";
  const owner = scenario.state.tenants.get("acme")?.tasks.get(task)?.owner;
  const by = at % 2 === 0 ? (owner ?? BOSS) : BOSS;
  if (what === "expired") expire(scenario, task, { id });
  else if (what === "missing") scenario.observe("interruptions", missing(task, id));
  else {
    const fields = { id, by, policy, checkpoint: `ck_${id}` };
    scenario.observe("interruptions", inter(what, task, fields));
  }
}

/** The manager asks for something, mostly for what is due. */
function ask(scenario: World, step: Extract<Step, { do: "ask" }>, id: string): Envelope {
  const live = tasksOf(scenario);
  const task = live[step.at % Math.max(1, live.length)] ?? "t0";
  const tenant = scenario.state.tenants.get("acme");
  const due = tenant?.tasks.get(task)?.hold?.due ?? [];
  const found = due[step.pick % Math.max(1, due.length)];
  const verb = found && step.pick < 15 ? found.type.slice(5) : step.verb;
  return request(verb, task, found?.id ?? "evt_none", { id });
}

function undoing(scenario: World, step: Extract<Step, { do: "undo" }>, id: string): Envelope[] {
  const task = `undo_${step.at % 4}`;
  const isAsked = step.at % 3 !== 0;
  const name = step.at % 5 === 0 ? "completed" : "requested";
  if (isAsked) scenario.observe("interruptions", undo(name, task, { id, of: "t0" }));
  const known = scenario.state.tenants.get("acme")?.compensations.get(task);
  const asked = known?.id ?? "evt_none";
  const more = { id: `${id}_ask`, compensation_id: "t0" };
  const made = request("submitted", task, asked, more);
  const own = ev("submitted", task, { by: BOSS, id: `${id}_own` });
  const done = request("completed", task, known?.completedBy ?? "evt_none", { id: `${id}_done` });
  return step.isOwnFirst ? [own, made, done] : [made, own, done];
}

function run(all: readonly Step[]): Run {
  const scenario = world();
  const [oracle, stops] = [new Oracle(), new Stops()];
  const sent: Envelope[] = [];
  for (const [index, step] of all.entries()) {
    const id = `evt_step_${index}`;
    const judged: Envelope[] = [];
    if (step.do === "say") speak(scenario, step, id);
    else if (step.do === "ask") judged.push(ask(scenario, step, id));
    else if (step.do === "undo") judged.push(...undoing(scenario, step, id));
    else {
      const { command: now } = step;
      const envelope = envelopeOf(scenario, sent, now);
      if (envelope) sent.push(envelope);
      if (envelope) judged.push(envelope);
      if (now.do === "grow" && now.isRun && envelope) {
        judged.push(ev("started", envelope.task_id ?? "", { id: `${id}_run`, by: now.by }));
      }
      if (now.do === "wait") scenario.wait(now.ms);
      else if (now.do === "settle") scenario.settle();
      else if (now.do === "step") scenario.step();
    }
    for (const envelope of judged) scenario.judge(envelope);
    scenario.owed();
    stops.read(scenario);
    oracle.read(scenario.log);
  }
  return { scenario, oracle, stops };
}

function assertSound(state: TaskState): void {
  for (const { tasks } of state.tenants.values()) {
    for (const { id, ended, hold } of tasks.values()) {
      assert.ok(ended === undefined || hold === undefined, `${id} has ended and is held`);
    }
  }
}

test("P1 with tasks that are stopped every prefix keeps the rules, and everything comes to rest", () => {
  fc.assert(
    fc.property(steps, (all) => {
      const { scenario, oracle, stops } = run(all);
      assertSound(scenario.state);
      scenario.settle(END_OF_TIME);
      stops.read(scenario);
      oracle.read(scenario.log);
      assert.equal(scenario.state.gentleCount, 0);
      assert.equal(scenario.state.tenants.get("acme")?.plans.size ?? 0, 0);
      assert.equal(scenario.owed(), undefined);
      assertSound(scenario.state);
    }),
    { numRuns: RUNS, includeErrorInReport: true },
  );
});

test("P4 a fresh fold of both logs, and a snapshot anywhere plus the tail, give the same state", async () => {
  await fc.assert(
    fc.asyncProperty(steps, fc.nat(), async (all, where) => {
      const { scenario } = run(all);
      const live = describeState(scenario.state);
      assert.deepEqual(describeState(scenario.refold()), live);
      const from = where % (scenario.log.length + 1);
      const seen = scenario.observed.filter(({ after }) => after < from).length;
      const whole = {
        log: scenario.log.slice(0, from),
        observed: scenario.observed.slice(0, seen),
      };
      const before = refoldOf(scenario, whole);
      const copy = await writtenDown(scenario, before);
      const after = scenario.foldOn(copy, from, seen);
      assert.deepEqual(describeState(after), live);
      scenario.state = after;
      scenario.settle(END_OF_TIME);
      assert.equal(after.gentleCount, 0);
    }),
    { numRuns: RUNS, includeErrorInReport: true },
  );
});

/** The state as a snapshot gives it back. */
async function writtenDown({ decider }: World, state: TaskState): Promise<TaskState> {
  const { snapshots } = decider;
  assert.ok(snapshots);
  const fold = new Fold({ ...decider, initial: () => state });
  const taken = await cut("tasks", fold, snapshots, async () => true);
  assert.ok(taken);
  const data = await instantPacking.pack(taken.text);
  const { record } = await readSnapshot(data, snapshots, instantPacking);
  return new Fold(decider, record).state;
}

function refoldOf(scenario: World, { log, observed }: Pick<World, "log" | "observed">): TaskState {
  const part = world();
  part.log.push(...log);
  part.observed.push(...observed);
  return part.foldOn(scenario.decider.initial());
}

test("the generated runs reach what they are meant to attack", () => {
  const seen = new Map<string, number>();
  const note = (what: string) => seen.set(what, (seen.get(what) ?? 0) + 1);
  for (const all of fc.sample(steps, { numRuns: 200, seed: 11 })) {
    const { scenario, stops } = run(all);
    for (const type of stops.granted) note(`granted ${type}`);
    for (const entry of scenario.log) {
      if (entry.kind === "begun" && entry.plan.envelope.source === MANAGER)
        note("begun by request");
      if (entry.kind !== "event") continue;
      const { payload, source, type } = entry.envelope;
      const text = JSON.stringify(payload);
      if (/is stopped by/.test(text)) note("refused work");
      if (/no entry that is known here/.test(text)) note("refused request");
      if (source === SERVICE && type === "task.cancelled") note("cancelled");
    }
  }
  const wanted = [
    "granted task.failed",
    "granted task.cancelled",
    "granted task.submitted",
    "refused work",
    "refused request",
    "cancelled",
    "begun by request",
  ];
  for (const what of wanted)
    assert.ok((seen.get(what) ?? 0) >= 10, `${what}: ${seen.get(what) ?? 0}`);
});

test("a tenant notices nothing of another one that has the same names", () => {
  fc.assert(
    fc.property(steps, (all) => {
      assertTenantsApart(run(all).scenario, describeState);
    }),
    { numRuns: 100, includeErrorInReport: true },
  );
});
