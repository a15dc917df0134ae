/** What an agent says of its beliefs on the wire, and what it makes of what it hears. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Envelope } from "@harmovela/envelope";
import type { JsonValue } from "@harmovela/failure";
import { HarmovelaError } from "@harmovela/failure";
import type { BeliefChange, BeliefWatch } from "../src/index.ts";
import { type Peer, World } from "./world.ts";

const DOMAIN = "beliefs";

function sent(peer: Peer): Envelope[] {
  return peer.arrivals.map(({ bytes }) => JSON.parse(bytes) as Envelope);
}

async function changes(world: World, watch: BeliefWatch, count: number): Promise<BeliefChange[]> {
  const seen: BeliefChange[] = [];
  while (seen.length < count) {
    const { value } = await world.run(watch.next());
    assert.ok(value);
    seen.push(value.change);
  }
  return seen;
}

describe("agent.beliefs says", () => {
  it("a claim with its evidence, its window and what it is worth", async () => {
    await using world = new World();
    const peer = await world.peer({ domain: DOMAIN });
    const { beliefs } = world.agent({ agent: "agent:a" }).agent;
    const seen = { source: "sensor:s", id: "evt_seen" };
    const until = new Date(1_900_000_000_000);
    const belief = await world.run(
      beliefs.assert("memory:gate", "A12", {
        restsOn: [{ source: "agent:b", id: "evt_b" }, seen],
        confidence: 0.6,
        scope: "inference",
        trust: "verified",
        validUntil: until,
        staleAfter: "PT5M",
        refreshHint: "https://gates.example/A12",
        envelope: { session_id: "s1" },
      }),
    );
    assert.deepEqual(belief, {
      key: "memory:gate",
      id: belief.id,
      source: "agent:a",
      value: "A12",
    });
    const [envelope] = sent(peer);
    assert.equal(envelope?.id, belief.id);
    assert.deepEqual(
      { ...envelope, created_at: "", id: "" },
      {
        spec_version: "0.2",
        id: "",
        created_at: "",
        source: "agent:a",
        type: "memory.fact.added",
        belief_status: "asserted",
        belief_scope: "inference",
        causation_id: "evt_seen",
        evidence_chain: [{ source: "agent:b", id: "evt_b" }, seen],
        confidence: 0.6,
        source_trust: "verified",
        valid_until: until.toISOString(),
        stale_after: "PT5M",
        refresh_hint: "https://gates.example/A12",
        session_id: "s1",
        payload: { fact_id: "gate", value: "A12" },
      },
    );
  });

  it("C31 revisions as canonical JSON; with evidence what is revised stands last", async () => {
    await using world = new World();
    const peer = await world.peer({ domain: DOMAIN });
    const { beliefs } = world.agent({ agent: "agent:a" }).agent;
    const first = await world.run(beliefs.assert("context:tree", { b: 1, a: [] }));
    await world.run(beliefs.revise(first, { b: 2 }, { restsOn: [{ source: "agent:b", id: "e" }] }));
    await world.run(beliefs.retract(first, { reason: "gone", replacedBy: "evt_new" }));
    await world.run(beliefs.retract("memory:f"));
    await world.run(beliefs.retract("belief:evt_9"));
    const [asserted, revised, ...retracted] = sent(peer);
    assert.deepEqual(asserted?.payload, { context_key: "tree", new_value: { b: 1, a: [] } });
    assert.deepEqual(revised?.payload, { previous: '{"a":[],"b":1}', corrected: '{"b":2}' });
    assert.equal(revised?.causation_id, first.id);
    assert.deepEqual(revised?.evidence_chain, [
      { source: "agent:b", id: "e" },
      { source: "agent:a", id: first.id },
    ]);
    assert.deepEqual(
      retracted.map(({ type, causation_id, belief_status, payload }) => [
        type,
        causation_id,
        belief_status,
        payload,
      ]),
      [
        [
          "context.invalidated",
          first.id,
          "retracted",
          { context_key: "tree", reason: "gone", replaced_by: "evt_new" },
        ],
        ["memory.fact.invalidated", undefined, "retracted", { fact_id: "f" }],
        ["state.invalidated", undefined, "retracted", { resource: "belief:evt_9" }],
      ],
    );
  });

  it("nothing under a key that no claim can have", async () => {
    await using world = new World();
    const { beliefs } = world.agent().agent;
    for (const key of ["weather", "memory:", "state:f", ""]) {
      await assert.rejects(beliefs.assert(key, 1), { code: "invalid_argument" });
    }
  });
});

describe("agent.beliefs asks", () => {
  it("by key, by source, by belief; whatever is no plain yes is a no", async () => {
    await using world = new World();
    const answers: JsonValue[] = [{ useable: true, reasons: [] }, { useable: "yes" }, null];
    const asked: JsonValue[] = [];
    await world.peer({
      domain: DOMAIN,
      reads: {
        useable: (params) => {
          asked.push(params);
          return answers[asked.length - 1] ?? null;
        },
      },
    });
    const { beliefs } = world.agent().agent;
    const belief = { key: "memory:f", id: "evt_1", source: "agent:a", value: 1 };
    const yes = await world.run(beliefs.useable("memory:f"));
    assert.deepEqual(yes, { useable: true, reasons: [], position: "HV_LOG_TASKS:1" });
    assert.equal((await world.run(beliefs.useable(belief))).useable, false);
    const one = { key: "memory:f", source: "agent:a" };
    assert.equal((await world.run(beliefs.useable(one))).useable, false);
    assert.deepEqual(asked, [{ key: "memory:f" }, { event_id: "evt_1" }, one]);
  });

  it("what an event id stands for, before it revises it", async () => {
    await using world = new World();
    const get = () => ({ key: "memory:f", source: "agent:b", value: 1 });
    const peer = await world.peer({ domain: DOMAIN, reads: { get } });
    const { beliefs } = world.agent({ agent: "agent:a" }).agent;
    const revised = await world.run(beliefs.revise("evt_1", 2));
    assert.deepEqual([revised.key, revised.value], ["belief:evt_1", 2]);
    assert.deepEqual(sent(peer)[0]?.payload, { previous: "1", corrected: "2" });
  });
});

describe("agent.beliefs.watch", () => {
  it("names each change of its key, and of nothing else", async () => {
    await using world = new World();
    const subject = () => ({ claims: [{ event_id: "evt_old" }], conflict: { id: "hv_conflict" } });
    const peer = await world.peer({ domain: DOMAIN, reads: { subject } });
    const watch = world.agent().agent.beliefs.watch("memory:f");
    await world.run(watch.ready);
    const fact = { fact_id: "f" };
    const service = "service:belief-tracker";
    const told: [BeliefChange | undefined, Partial<Envelope> & { type: string }][] = [
      ["asserted", { type: "memory.fact.added", id: "evt_new", payload: { ...fact, value: 1 } }],
      [undefined, { type: "memory.fact.added", payload: { fact_id: "g", value: 1 } }],
      [undefined, { type: "context.updated", payload: { context_key: "f" } }],
      ["revised", { type: "belief.revised", source: "agent:b", causation_id: "evt_old" }],
      ["revised", { type: "belief.revised", source: "agent:b", causation_id: "evt_new" }],
      [undefined, { type: "belief.revised", source: "agent:b", causation_id: "evt_else" }],
      [
        "contradicted",
        {
          type: "belief.conflict.detected",
          id: "hv_2",
          payload: { subject: "memory:f", claims: [] },
        },
      ],
      ["resolved", { type: "belief.revised", source: service, causation_id: "hv_2" }],
      ["resolved", { type: "belief.revised", source: service, causation_id: "hv_conflict" }],
      ["window", { type: "freshness.window.changed", payload: { resource: "memory:f" } }],
      ["stale", { type: "freshness.expired", payload: { resource: "memory:f" } }],
      [
        "unknown",
        { type: "state.invalidated", source: service, payload: { resource: "memory:f" } },
      ],
      ["retracted", { type: "memory.fact.invalidated", payload: fact }],
      [
        "retracted",
        { type: "state.invalidated", source: "agent:b", payload: { resource: "memory:f" } },
      ],
    ];
    for (const [, envelope] of told) await world.run(peer.append(envelope));
    const expected = told.flatMap(([change]) => (change === undefined ? [] : [change]));
    assert.deepEqual(await changes(world, watch, expected.length), expected);
    await world.run(watch.close());
    assert.deepEqual(await world.run(watch.next()), { done: true, value: undefined });
  });

  it("of a key that nobody has claimed begins, of a service that fails does not", async () => {
    await using world = new World();
    const reads = {
      subject: ({ key }: { key?: JsonValue }): JsonValue => {
        const code = key === "memory:f" ? "invalid_query" : "unauthorized";
        throw new HarmovelaError(code, "no");
      },
    };
    const peer = await world.peer({ domain: DOMAIN, reads });
    const { beliefs } = world.agent().agent;
    const watch = beliefs.watch("memory:f");
    await world.run(watch.ready);
    await world.run(
      peer.append({ type: "memory.fact.added", payload: { fact_id: "f", value: 1 } }),
    );
    assert.deepEqual(await changes(world, watch, 1), ["asserted"]);
    await assert.rejects(world.run(beliefs.watch("memory:g").next()), { code: "unauthorized" });
  });

  it("asks later with what it has seen", async () => {
    await using world = new World();
    const asked: JsonValue[] = [];
    const reads = {
      subject: () => ({ claims: [] }),
      useable: (params: JsonValue) => {
        asked.push(params);
        return { useable: true, reasons: [] };
      },
    };
    const peer = await world.peer({ domain: DOMAIN, reads });
    const { beliefs } = world.agent().agent;
    const watch = beliefs.watch("memory:f");
    await world.run(watch.ready);
    const cursor = await world.run(
      peer.append({ type: "memory.fact.added", payload: { fact_id: "f", value: 1 } }),
    );
    await changes(world, watch, 1);
    await world.run(beliefs.useable("memory:f"));
    assert.deepEqual(asked, [{ cursor, key: "memory:f" }]);
  });
});
