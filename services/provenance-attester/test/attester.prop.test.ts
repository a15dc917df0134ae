/** What holds for every history. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Domain, DomainEntry, Envelope } from "@harmovela/envelope";
import { cut, Fold, instantPacking, readSnapshot } from "@harmovela/host";
import { assertTenantsApart } from "@harmovela/testkit";
import fc from "fast-check";
import { describeState } from "../src/index.ts";
import type { AttesterState } from "../src/state.ts";
import {
  attest,
  event,
  fact,
  NOW,
  retract,
  revoke,
  SERVICE,
  type World,
  world,
} from "./support.ts";

const RUNS = 300;
const SOURCES = ["agent:a", "agent:b", "agent:c"] as const;
const IDS = ["e0", "e1", "e2", "e3", "e4", "e5", "e6", "e7"] as const;

const cites = fc.array(fc.constantFrom(...IDS, "never"), { maxLength: 3, size: "max" });

/** An event of another log; the same id may stand in two of them. */
const sighting = fc.record({
  do: fc.constant("see" as const),
  domain: fc.constantFrom("tasks" as const, "beliefs" as const, "interruptions" as const),
  id: fc.constantFrom(...IDS),
  source: fc.constantFrom(...SOURCES),
  cites,
  retracts: fc.option(fc.constantFrom(...IDS), { nil: undefined, freq: 4 }),
});
const vouching = fc.record({
  do: fc.constant("attest" as const),
  of: fc.constantFrom(...IDS, "never"),
  source: fc.constantFrom(...SOURCES, "agent:v", "agent:w"),
  isBySelf: fc.boolean(),
});
const revoking = fc.record({ do: fc.constant("revoke" as const), nth: fc.nat(5) });
const waiting = fc.record({
  do: fc.constant("wait" as const),
  ms: fc.constantFrom(1, 50, 29_999, 30_000),
});
const trimming = fc.record({
  do: fc.constant("trim" as const),
  domain: fc.constantFrom("tasks" as const, "beliefs" as const, "provenance" as const),
  to: fc.nat(12),
});
const settling = fc.record({ do: fc.constant("settle" as const) });
const move = fc.oneof(
  { weight: 9, arbitrary: sighting },
  { weight: 4, arbitrary: vouching },
  { weight: 2, arbitrary: revoking },
  { weight: 1, arbitrary: waiting },
  { weight: 3, arbitrary: trimming },
  { weight: 2, arbitrary: settling },
);
type Move = typeof move extends fc.Arbitrary<infer M> ? M : never;
const history = fc.array(move, { minLength: 5, maxLength: 40, size: "max" });

function sightingOf(seen: Extract<Move, { do: "see" }>, name: string): Envelope {
  const { domain, source, cites: links, retracts } = seen;
  const last = links.at(-1);
  const evidence =
    last === undefined
      ? {}
      : { evidence_chain: links.map((id) => ({ source: "agent:a", id })), causation_id: last };
  const fields = { id: seen.id, source, ...evidence };
  if (domain !== "beliefs")
    return event(domain === "tasks" ? "task.output" : "interruption.saved", { name }, fields);
  // Two sources keep to the few ids, one always finds a new one.
  if (retracts === undefined) {
    return fact(
      seen.id,
      source === "agent:c" ? { ...fields, id: `${seen.id} in ${name}` } : fields,
    );
  }
  return retract(retracts, { ...fields, id: `${seen.id} of ${name}`, causation_id: retracts });
}

function live(scenario: World, moves: readonly Move[]): World {
  const attestations: { id: string; source: string }[] = [];
  for (const [place, now] of moves.entries()) {
    switch (now.do) {
      case "see":
        scenario.seen(now.domain, sightingOf(now, `${place}`));
        break;
      case "attest": {
        const { of, source } = now;
        const id = `v${place}`;
        const payload = { attestor: now.isBySelf ? source : "agent:famous", method: "m" };
        scenario.own.judge(attest(of, { id, source, payload }));
        attestations.push({ id, source });
        break;
      }
      case "revoke": {
        const named = attestations[now.nth];
        if (named === undefined) break;
        scenario.own.judge(revoke(named.id, { id: `r${place}`, source: named.source }));
        break;
      }
      case "wait":
        scenario.own.wait(now.ms);
        break;
      case "trim":
        scenario.trimmed({ [now.domain]: now.to + 1 });
        break;
      case "settle":
        scenario.own.settle();
        break;
    }
  }
  return scenario;
}

const settings = { retentionMs: 60, rememberedMax: 14 };

const sight = (domain: Domain, id: string, source: string, retracts?: string): Move =>
  ({ do: "see", domain, id, source, cites: [], retracts }) as Move;
/** Before it comes two take it back, of whom one may; its id stands in another log as well. */
const TAKEN_BACK_BY_TWO: Move[] = [
  sight("beliefs", "e0", "agent:c", "e1"),
  sight("beliefs", "e0", "agent:a", "e1"),
  sight("beliefs", "e1", "agent:a"),
  sight("tasks", "e1", "agent:a"),
];

test("folds that read the other logs in another order between own entries hold the same state", () => {
  let doubtful = 0;
  fc.assert(
    fc.property(
      history,
      fc.shuffledSubarray(["tasks", "beliefs", "interruptions"] as Domain[], { minLength: 3 }),
      (moves, order) => {
        for (const limits of [{}, settings]) {
          const scenario = live(world(limits), moves);
          scenario.own.settle();
          const state = refold(scenario, order);
          assert.deepEqual(describeState(state), describeState(scenario.state));
          const { own } = scenario;
          const after = own.decider.owed(state, own.now, { requests: new Set() });
          assert.deepEqual(after, own.owed());
          for (const { isAmbiguous } of scenario.state.tenants.get("acme")?.events.values() ?? []) {
            if (isAmbiguous) doubtful += 1;
          }
        }
      },
    ),
    { numRuns: RUNS, examples: [[TAKEN_BACK_BY_TWO, ["tasks", "beliefs", "interruptions"]]] },
  );
  assert.ok(doubtful > RUNS / 4, `only ${doubtful} ids in two logs`);
});

/** Between two own entries each other log as a whole, one after the other. */
function refold({ own, observed }: World, order: readonly Domain[]): AttesterState {
  const state = own.decider.initial();
  for (let after = 0; after <= own.log.length; after += 1) {
    for (const domain of order) {
      for (const seen of observed) {
        if (seen.after === after && seen.domain === domain) {
          own.decider.observe?.(state, domain, seen.entry);
        }
      }
    }
    const entry = own.log[after];
    if (entry !== undefined) own.decider.evolve(state, entry);
  }
  return state;
}

/** Events of three logs that cite each other, each id once. */
const lineage = fc.uniqueArray(
  fc.record({
    id: fc.constantFrom(...IDS),
    domain: fc.constantFrom("tasks" as const, "beliefs" as const, "interruptions" as const),
    source: fc.constantFrom(...SOURCES),
    cites,
  }),
  { selector: ({ id }) => id, minLength: 3, maxLength: 8 },
);
const vouchers = fc.uniqueArray(
  fc.record({ of: fc.constantFrom(...IDS), source: fc.constantFrom(...SOURCES, "agent:v") }),
  { selector: ({ of, source }) => `${of} ${source}`, maxLength: 8 },
);

test("L1: any order of arrival gives the equal graph, attestations before their events too", async () => {
  let counted = 0;
  await fc.assert(
    fc.asyncProperty(
      lineage.chain((events) =>
        fc.tuple(fc.constant(events), fc.shuffledSubarray(events, { minLength: events.length })),
      ),
      vouchers.chain((said) =>
        fc.tuple(fc.constant(said), fc.shuffledSubarray(said, { minLength: said.length })),
      ),
      fc.array(fc.boolean(), { minLength: 16, maxLength: 16 }),
      async ([events, others], [said, again], isVouchedFirst) => {
        const graphs: string[] = [];
        for (const [seen, vouched] of [
          [events, said],
          [others, again],
        ] as const) {
          const scenario = world();
          const left = [...vouched];
          for (const [index, one] of seen.entries()) {
            if (isVouchedFirst[index]) vouch(scenario, left.pop());
            scenario.seen(
              one.domain,
              sightingOf({ do: "see", retracts: undefined, ...one }, one.id),
            );
            if (index % 2 === 0) scenario.own.settle();
          }
          for (const one of left) vouch(scenario, one);
          scenario.own.settle(NOW + 40_000);
          const ids = [...(scenario.state.tenants.get("acme")?.events.keys() ?? [])].sort();
          graphs.push(JSON.stringify(await Promise.all(ids.map((id) => lookAt(scenario, id)))));
          for (const id of IDS) if (ids.includes(id)) counted += await scenario.count(id);
        }
        assert.equal(graphs[0], graphs[1]);
      },
    ),
    { numRuns: RUNS },
  );
  assert.ok(counted > RUNS, `only ${counted} attestations counted`);
});

function vouch(scenario: World, one: { of: string; source: string } | undefined): void {
  if (one === undefined) return;
  const { of, source } = one;
  scenario.own.judge(attest(of, { id: `${source} on ${of}`, source }));
}

/** What anybody can ask about an event, without places and times of arrival. */
async function lookAt(scenario: World, id: string): Promise<unknown> {
  const chain = await scenario.read("chain", { event_id: id });
  const graph = await scenario.read("graph", { event_id: id });
  const may = await scenario.read("may", { event_id: id });
  return JSON.parse(
    JSON.stringify({ chain, nodes: sorted(graph.nodes), edges: graph.edges, may }, (key, value) =>
      ["seq", "logged_at", "at"].includes(key)
        ? undefined
        : key === "attestations"
          ? sorted(value)
          : value,
    ),
  );
}

function sorted(list: unknown): unknown[] {
  return Array.isArray(list)
    ? [...list].sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
    : [];
}

test("an event counts as many attestations as independent sources that stand by theirs", async () => {
  let all = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.record({
          source: fc.constantFrom(...SOURCES, "agent:v", "agent:w"),
          isSeenFirst: fc.boolean(),
          isRevoked: fc.boolean(),
          isRepeated: fc.boolean(),
        }),
        { maxLength: 12 },
      ),
      async (said) => {
        const scenario = world();
        const standing = new Set<string>();
        const sent = said.map(({ source }, index) => attest("e0", { id: `v${index}`, source }));
        const judge = (isFirst: boolean): void => {
          for (const [index, { isSeenFirst, isRepeated }] of said.entries()) {
            const one = sent[index];
            if (one === undefined || isSeenFirst !== isFirst) continue;
            scenario.own.judge(one);
            if (isRepeated) scenario.own.judge(one);
          }
        };
        judge(false);
        scenario.seen("beliefs", fact("e0", { id: "e0", source: "agent:a" }));
        judge(true);
        for (const [index, { source, isRevoked }] of said.entries()) {
          if (!isRevoked) {
            if (source !== "agent:a") standing.add(source);
            continue;
          }
          scenario.own.given(revoke(`v${index}`, { source }));
          scenario.own.when(revoke(`v${index}`, { source })).rejected("protocol_error");
        }
        scenario.own.settle();
        assert.equal(await scenario.count("e0"), standing.size);
        all += standing.size;
      },
    ),
    { numRuns: RUNS },
  );
  assert.ok(all > RUNS / 2, `only ${all} attestations`);
});

const spec = world().own.decider.snapshots;

async function written({ own }: World, state: AttesterState): Promise<Buffer> {
  assert.ok(spec);
  const { record } = new Fold(own.decider);
  const taken = await cut(
    "provenance",
    new Fold(own.decider, { ...record, state }),
    spec,
    async () => true,
  );
  assert.ok(taken);
  return taken.text;
}

async function reread(text: Buffer): Promise<AttesterState> {
  assert.ok(spec);
  const { record } = await readSnapshot(await instantPacking.pack(text), spec, instantPacking);
  return record.state as AttesterState;
}

test("a snapshot anywhere and the tail are a full fold, to the last byte", async () => {
  await fc.assert(
    fc.asyncProperty(history, fc.nat(100), async (moves, percent) => {
      const scenario = live(world(settings), moves);
      const { own, observed } = scenario;
      const steps = stepsOf(own.log, observed);
      const at = Math.floor((steps.length * percent) / 100);
      const full = own.decider.initial();
      for (const step of steps) step(own.decider, full);
      let state = own.decider.initial();
      for (const [index, step] of steps.entries()) {
        if (index === at) state = await reread(await written(scenario, state));
        step(own.decider, state);
      }
      assert.ok(
        (await written(scenario, full)).equals(await written(scenario, state)),
        `cut at ${at}`,
      );
      assert.deepEqual(describeState(state), describeState(scenario.state));
    }),
    { numRuns: RUNS },
  );
});

type Step = (decider: World["own"]["decider"], state: AttesterState) => void;

function stepsOf(log: readonly DomainEntry[], observed: World["observed"]): Step[] {
  const steps: Step[] = [];
  for (let after = 0; after <= log.length; after += 1) {
    for (const seen of observed) {
      if (seen.after !== after) continue;
      steps.push((decider, state) => decider.observe?.(state, seen.domain, seen.entry));
    }
    const entry = log[after];
    if (entry !== undefined) steps.push((decider, state) => decider.evolve(state, entry));
  }
  return steps;
}

test("every history comes to rest: nothing is owed twice, and each loss is told of once", () => {
  let losses = 0;
  let refusals = 0;
  fc.assert(
    fc.property(history, fc.boolean(), (moves, isSmall) => {
      const scenario = live(world(isSmall ? settings : {}), moves);
      scenario.trimmed({ tasks: 100, beliefs: 100, interruptions: 100 });
      scenario.own.settle(NOW + 10_000_000);
      assert.equal(scenario.own.owed(), undefined);
      assert.equal(scenario.state.waiting.size + scenario.state.ready.size, 0);
      const told: string[] = [];
      for (const entry of scenario.own.log) {
        if (entry.kind !== "event" || entry.envelope.source !== SERVICE) continue;
        if (entry.envelope.type === "provenance.chain.truncated") {
          told.push(`${entry.envelope.causation_id}`);
        } else if ("owed" in entry.cause) refusals += 1;
      }
      if (!isSmall) assert.equal(new Set(told).size, told.length, "each once");
      losses += told.length;
    }),
    { numRuns: RUNS },
  );
  assert.ok(
    losses > RUNS / 10 && refusals > RUNS / 4,
    `only ${losses} losses, ${refusals} refusals`,
  );
});

test("nothing is left of what is over, whatever came before", () => {
  fc.assert(
    fc.property(history, (moves) => {
      const scenario = live(world(settings), moves);
      scenario.own.settle(NOW + 10_000_000);
      for (let left = 0; left < 40; left += 1) {
        scenario.own.wait(61);
        scenario.trimmed({});
        scenario.own.settle();
      }
      const tenant = scenario.state.tenants.get("acme");
      for (const known of tenant?.events.values() ?? []) {
        assert.ok(known.isLive || (known.citedBy?.size ?? 0) > 0, `${known.id} is held by nothing`);
      }
      for (const missing of tenant?.missing.values() ?? []) assert.ok(missing.citedBy.size > 0);
    }),
    { numRuns: RUNS },
  );
});

test("a tenant notices nothing of another one that has the same names", () => {
  fc.assert(
    fc.property(history, (moves) => {
      assertTenantsApart(live(world(), moves).own, describeState);
    }),
    { numRuns: 100, includeErrorInReport: true },
  );
});
