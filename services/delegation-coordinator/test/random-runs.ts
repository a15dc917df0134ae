/** Random histories of a small world: what agents send, when time passes, when the service acts. */
import assert from "node:assert/strict";
import type { Decision, Envelope } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import fc from "fast-check";
import { Oracle } from "./oracle.ts";
import { ev, type World, world } from "./support.ts";

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
const id = fc.constantFrom(...IDS);
const agent = fc.constantFrom(...AGENTS);
const span = fc.constantFrom(undefined, undefined, 0, 40, 100, 1e9, Number.MAX_SAFE_INTEGER);
/** Most tasks here have no deadline, or time-outs would leave nothing to cancel. */
const deadline = fc.oneof(
  { weight: 4, arbitrary: fc.constant(undefined) },
  { weight: 1, arbitrary: span },
);

export type Command =
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

export const command: fc.Arbitrary<Command> = fc.oneof(
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
export const failing = fc.oneof(
  { weight: 30, arbitrary: command },
  { weight: 1, arbitrary: fc.constant({ do: "fail" as const }) },
);

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
export function envelopeOf(scenario: World, sent: Envelope[], now: Command): Envelope | undefined {
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

export function run(commands: readonly Command[]): {
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
