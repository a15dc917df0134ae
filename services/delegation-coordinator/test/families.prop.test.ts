import assert from "node:assert/strict";
import { test } from "node:test";
import { deriveId, type Envelope, EVENT_TYPES } from "@harmovela/envelope";
import type { JsonValue } from "@harmovela/failure";
import { assertTenantsApart } from "@harmovela/testkit";
import fc from "fast-check";
import { describeState } from "../src/index.ts";
import { type World, world } from "./support.ts";

const RUNS = 300;
const FOREVER = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** Whatever the stages before let through: these families have payloads that nobody checked. */
const TYPES = EVENT_TYPES.filter((type) => !type.startsWith("task."));
const name = fc.constantFrom("one", "two", "__proto__");
const source = fc.constantFrom("agent:a", "agent:b", "harness:h", "service:other");
const profiles = fc.constantFrom(
  [],
  ["harmovela.runtime-semantics.v1"],
  ["harmovela.coordination.v1"],
  ["harmovela.unheard.v1"],
);

const payload: fc.Arbitrary<JsonValue> = fc.oneof(
  { weight: 1, arbitrary: fc.constantFrom<JsonValue>(null, 7, "text", [], [{}]) },
  {
    weight: 6,
    arbitrary: fc.record(
      {
        session_id: name,
        subscription_id: name,
        capabilities: fc.record(
          {
            profiles,
            required_profiles: profiles,
            heartbeat_interval_ms: fc.constantFrom(0, 0.5, 50, 1e300),
            budget: fc.constantFrom<JsonValue>({ max_actions: 1 }, "none", null),
          },
          { requiredKeys: [] },
        ),
        correlation_id: name,
        query_scope: name,
        snapshot_version: fc.constantFrom<JsonValue>(1, 2, "v1", "v2", null, {}),
        negotiation_window_ms: fc.constantFrom<JsonValue>(0, 10, 5000, Number.MAX_SAFE_INTEGER),
        call_id: name,
        budget_id: name,
        limit: fc.constantFrom(0, 1, 10),
      },
      { requiredKeys: [] },
    ) as fc.Arbitrary<JsonValue>,
  },
);

const draft = fc.record(
  {
    type: fc.constantFrom(...TYPES),
    source,
    payload,
    target: fc.constantFrom("agent:a", "agent:b", "agent:never", "harness:h", "service:other"),
    session_id: name,
    correlation_id: name,
    budget_id: name,
    budget_cost: fc.constantFrom(-1, 0, 0.1, 1, 5),
  },
  { requiredKeys: ["type", "source", "payload"] },
) as fc.Arbitrary<Partial<Envelope>>;

type Move = { say: Partial<Envelope> } | { wait: number } | { do: "step" | "settle" | "fail" };

const move: fc.Arbitrary<Move> = fc.oneof(
  { weight: 12, arbitrary: fc.record({ say: draft }) },
  { weight: 2, arbitrary: fc.record({ wait: fc.constantFrom(1, 100, 5000, 40 * 86_400_000) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom("step", "settle", "fail") }) },
) as fc.Arbitrary<Move>;
const moves = fc.array(move, { minLength: 10, maxLength: 80, size: "max" });

function envelope(fields: Partial<Envelope>, id: string): Envelope {
  return {
    spec_version: "0.2",
    id,
    type: "environment.observed",
    source: "agent:a",
    created_at: "2026-11-30T10:00:00Z",
    payload: {},
    ...fields,
  };
}

function run(list: readonly Move[], scenario: World = world({ subscriptionsMax: 3 })): World {
  let made = 0;
  for (const next of list) {
    if ("say" in next) {
      made += 1;
      scenario.judge(envelope(next.say, `evt_${made}`));
    } else if ("wait" in next) scenario.wait(next.wait);
    else if (next.do === "step") scenario.step();
    else if (next.do === "settle") scenario.settle();
    else {
      const owed = scenario.owed();
      if (owed && "event" in owed) scenario.fail(owed.event.id);
    }
  }
  return scenario;
}

test("any history is judged, folded again to the same state, and comes to rest", () => {
  fc.assert(
    fc.property(moves, (list) => {
      const scenario = run(list);
      assert.deepEqual(describeState(scenario.refold()), describeState(scenario.state));
      scenario.settle(FOREVER);
      assert.equal(scenario.owed(), undefined);
      assert.equal(scenario.state.families.agenda.duties.size, 0);
      // A refusal that could not be written leaves its request open for a late answer.
      if (!scenario.log.some((entry) => entry.kind === "obligation_failed")) {
        for (const tenant of scenario.state.families.tenants.values()) {
          assert.equal(tenant.awaited.size, 0, "a request that awaits somebody for ever");
        }
      }
      assert.deepEqual(describeState(scenario.refold()), describeState(scenario.state));
    }),
    { numRuns: RUNS, includeErrorInReport: true },
  );
});

test("decide and owed change nothing", () => {
  fc.assert(
    fc.property(moves, draft, (list, last) => {
      const scenario = run(list);
      const before = JSON.stringify(describeState(scenario.state));
      const said = envelope(last, "evt_last");
      scenario.decider.decide(
        scenario.state,
        { envelope: said, tenant: "acme", source: said.source, intake: 1 },
        { now: scenario.now, deriveId: (index) => deriveId("acme", "in:1", index, 0) },
      );
      scenario.owed();
      assert.equal(JSON.stringify(describeState(scenario.state)), before);
    }),
    { numRuns: RUNS, includeErrorInReport: true },
  );
});

test("what is terminal stays terminal, and ids of derived events are used once", () => {
  fc.assert(
    fc.property(moves, (list) => {
      const scenario = run(list.filter((next) => !("wait" in next)));
      scenario.settle();
      const ids = scenario.log.flatMap((entry) =>
        entry.kind === "event" ? [entry.envelope.id] : [],
      );
      assert.equal(new Set(ids).size, ids.length);
      const ended = new Set<string>();
      for (const entry of scenario.log) {
        if (entry.kind !== "event") continue;
        const { type, source: by, session_id: session = "" } = entry.envelope;
        if (type.endsWith(".rejected") && by === scenario.service) continue;
        const isWord = "in" in entry.cause && !by.startsWith("service:");
        assert.ok(!(isWord && ended.has(session)), `${type} after the end of ${session}`);
        if ("owed" in entry.cause && type === "session.error") ended.add(session);
      }
    }),
    { numRuns: RUNS, includeErrorInReport: true },
  );
});

/** The same draft in a world of its own: no name of it is used by the other conversation. */
function apart(fields: Partial<Envelope>, suffix: string): Partial<Envelope> {
  const rename = (value: unknown): unknown => {
    if (typeof value === "string" && ["one", "two", "__proto__"].includes(value)) {
      return `${value}${suffix}`;
    }
    if (typeof value === "string" && /^agent:/.test(value)) return `${value}${suffix}`;
    if (Array.isArray(value)) return value.map(rename);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, held]) => [key, rename(held)]));
  };
  return rename(fields) as Partial<Envelope>;
}

test("two conversations that share no name do not touch each other, however they interleave", () => {
  const lines = fc.array(draft, { minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(lines, lines, fc.infiniteStream(fc.boolean()), (left, right, turns) => {
      const mine = left.map((fields) => apart(fields, "-left"));
      const others = right.map((fields) => apart(fields, "-right"));
      const outcome = (scenario: World, fields: Partial<Envelope>, id: string) => {
        const { decision } = scenario.judge(envelope(fields, id));
        return "reject" in decision ? decision.reject.code : Object.keys(decision)[0];
      };
      const alone = world();
      const expected = mine.map((fields, at) => outcome(alone, fields, `evt_left_${at}`));
      const together = world();
      let at = 0;
      const got = mine.map((fields, index) => {
        while (at < others.length && turns.next().value) {
          outcome(together, others[at] ?? {}, `evt_right_${at}`);
          at += 1;
        }
        return outcome(together, fields, `evt_left_${index}`);
      });
      assert.deepEqual(got, expected);
    }),
    { numRuns: RUNS, includeErrorInReport: true },
  );
});

test("a tenant notices nothing of another one that has the same names", () => {
  fc.assert(
    fc.property(moves, (list) => {
      assertTenantsApart(run(list), describeState);
    }),
    { numRuns: 100, includeErrorInReport: true },
  );
});
