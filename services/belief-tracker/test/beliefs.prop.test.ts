/** What holds for every history (issue "belief and freshness tracker", must show). */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { DomainEntry, Envelope } from "@harmovela/envelope";
import { cut, Fold, instantPacking, readSnapshot } from "@harmovela/host";
import { assertTenantsApart } from "@harmovela/testkit";
import fc from "fast-check";
import { describeState } from "../src/index.ts";
import type { BeliefState } from "../src/state.ts";
import { ExpectedEnds } from "./expected-ends.ts";
import { envelopeOf, FAR, history, live } from "./generated.ts";
import {
  envelopesOf,
  event,
  fact,
  iso,
  NOW,
  payloadOf,
  resting,
  retract,
  SERVICE,
  type World,
  world,
} from "./support.ts";

const RUNS = 300;

function derivedIn(scenario: World, type: string): Envelope[] {
  return envelopesOf(scenario.log).filter((sent) => sent.type === type && sent.source === SERVICE);
}

/** Independent: each source speaks of each subject once; what cites another may come before it. */
const independent = fc.uniqueArray(
  fc.record({
    fact: fc.constantFrom("t0", "t1", "t2"),
    by: fc.constantFrom("agent:a", "agent:b", "agent:c", "agent:d"),
    value: fc.nat(2),
    from: fc.constantFrom(-20, 0, 10),
    until: fc.option(fc.constantFrom(-10, 0, 5, 10, 20), { nil: undefined }),
    on: fc.array(fc.constantFrom("t0 agent:a", "t1 agent:b", "t2 agent:c", "elsewhere"), {
      maxLength: 2,
    }),
  }),
  { selector: ({ fact: of, by }) => `${of} ${by}`, minLength: 2, maxLength: 12 },
);

test("any order of independent claims gives the same state", () => {
  let conflicts = 0;
  fc.assert(
    fc.property(
      independent.chain((claims) =>
        fc.tuple(fc.constant(claims), fc.shuffledSubarray(claims, { minLength: claims.length })),
      ),
      fc.boolean(),
      ([first, second], isAtOnce) => {
        const [one, other] = [first, second].map((claims) => {
          const scenario = world();
          for (const { fact: of, by, value, from, until, on } of claims) {
            scenario.given(
              fact(of, value, {
                id: `${of} ${by}`,
                source: by,
                valid_from: iso(NOW + from),
                ...(until === undefined ? {} : { valid_until: iso(NOW + until) }),
                ...(on.length === 0 ? {} : resting(...on)),
              }),
            );
            if (isAtOnce) scenario.settle();
          }
          scenario.settle();
          conflicts += derivedIn(scenario, "belief.conflict.detected").length;
          return scenario;
        });
        assert.ok(one && other);
        assert.deepEqual(describeState(other.state), describeState(one.state));
      },
    ),
    { numRuns: RUNS },
  );
  assert.ok(conflicts > RUNS, `only ${conflicts} conflicts`);
});

test("marked is exactly what can be reached from a retraction, each once, in whatever order it comes", () => {
  const claim = fc.array(fc.nat(11), { maxLength: 3, size: "max" });
  let all = 0;
  fc.assert(
    fc.property(
      fc.array(claim, { minLength: 8, maxLength: 15, size: "max" }),
      fc.array(fc.record({ of: fc.nat(7), after: fc.nat(11), steps: fc.nat(4) }), {
        minLength: 2,
        maxLength: 4,
      }),
      (edges, retractions) => {
        const scenario = world();
        const retracted = new Set<number>();
        for (const [index, on] of edges.entries()) {
          const evidence = on.map((other) => `c${other}`);
          const rests = evidence.length === 0 ? {} : resting(...evidence);
          scenario.given(fact(`${index}`, index, { id: `c${index}`, ...rests }));
          for (const { of, after, steps } of retractions) {
            if (after === index && of <= index && !retracted.has(of)) {
              retracted.add(of);
              scenario.given(retract(`${of}`, { id: `gone${of}` }));
            }
            for (let step = 0; step < steps; step += 1) scenario.step();
          }
        }
        scenario.settle();
        const expected = reachedFrom(retracted, edges);
        const marks = derivedIn(scenario, "state.invalidated").map((mark) =>
          String(payloadOf(mark).event_id),
        );
        assert.equal(new Set(marks).size, marks.length, "each once");
        // What is retracted itself may have been marked before that.
        const found = marks.filter((id) => !retracted.has(Number(id.slice(1))));
        assert.deepEqual(found.sort(), expected.map((index) => `c${index}`).sort());
        for (const of of retracted) {
          assert.ok(
            scenario.log.some((entry) => isEvent(entry, `gone${of}`)),
            "the plan has ended",
          );
        }
        all += marks.length;
      },
    ),
    { numRuns: RUNS },
  );
  assert.ok(all > RUNS, `only ${all} marks`);
});

function isEvent(entry: DomainEntry, id: string): boolean {
  return entry.kind === "event" && entry.envelope.id === id;
}

/** Told from the edges alone; what does not live is no conclusion. */
function reachedFrom(roots: ReadonlySet<number>, edges: readonly number[][]): number[] {
  const reached = new Set(roots);
  for (let before = -1; before !== reached.size; ) {
    before = reached.size;
    for (const [index, on] of edges.entries()) {
      if (on.some((other) => other !== index && reached.has(other))) reached.add(index);
    }
  }
  return [...reached].filter((index) => !roots.has(index));
}

test("there are as many expiries as resources and windows that came to their end, each at its time", () => {
  let all = 0;
  let together = 0;
  fc.assert(
    fc.property(history, (moves) => {
      const scenario = world();
      const windows = new ExpectedEnds();
      for (const [place, now] of moves.entries()) {
        if (now.do === "wait") scenario.wait(now.ms);
        scenario.settle();
        windows.pass(scenario.now);
        const sent = envelopeOf(scenario, now, place);
        if (sent === undefined) continue;
        const { decision } = scenario.judge(sent);
        if (!("reject" in decision)) windows.apply(now, sent, scenario.now);
      }
      scenario.settle(FAR);
      windows.pass(FAR);
      const said = derivedIn(scenario, "freshness.expired").map((expired) => {
        const { resource, valid_until: until, claim_count: count } = payloadOf(expired);
        assert.ok(expired.created_at >= String(until), "never before its end");
        assert.equal(expired.valid_until, until);
        if (count !== undefined) together += 1;
        return `${resource} ${Date.parse(String(until))}`;
      });
      assert.deepEqual(said.sort(), windows.told.sort());
      all += said.length;
    }),
    { numRuns: RUNS },
  );
  assert.ok(all > RUNS, `only ${all} expiries`);
  assert.ok(together > 0, "no two claims have ended together");
});

test("claims whose windows are never changed: one expiry for each resource and end, whatever the order", () => {
  const claim = fc.record({
    of: fc.constantFrom("t0", "t1"),
    by: fc.constantFrom("agent:a", "agent:b", "agent:c"),
    end: fc.constantFrom(-5, 0, 1, 2, 3),
    wait: fc.nat(2),
  });
  fc.assert(
    fc.property(
      fc.array(claim, { minLength: 1, maxLength: 20 }),
      fc.boolean(),
      (claims, isAtOnce) => {
        const scenario = world();
        for (const { of, by, end, wait } of claims) {
          scenario.wait(wait).given(fact(of, 1, { source: by, valid_until: iso(NOW + end) }));
          if (isAtOnce) scenario.settle();
        }
        scenario.settle(FAR);
        const said = derivedIn(scenario, "freshness.expired").map(
          (expired) => `${payloadOf(expired).resource} ${expired.valid_until}`,
        );
        assert.equal(new Set(said).size, said.length);
      },
    ),
    { numRuns: RUNS },
  );
});

const spec = world().decider.snapshots;
assert.ok(spec);

async function written(fold: Fold<BeliefState>): Promise<Buffer> {
  assert.ok(spec);
  const taken = await cut("beliefs", fold, spec, async () => true);
  assert.ok(taken);
  return taken.text;
}

async function reread(text: Buffer, { decider }: World): Promise<Fold<BeliefState>> {
  assert.ok(spec);
  const { record } = await readSnapshot(await instantPacking.pack(text), spec, instantPacking);
  return new Fold(decider, record);
}

function folded(fold: Fold<BeliefState>, entries: readonly DomainEntry[]): Fold<BeliefState> {
  for (const entry of entries) fold.apply(entry);
  return fold;
}

test("a snapshot anywhere and the tail are a full fold, to the last byte", async () => {
  await fc.assert(
    fc.asyncProperty(history, fc.nat(100), async (moves, percent) => {
      const scenario = live(world({ retentionMs: 300 }), moves);
      const { log, decider } = scenario;
      const at = Math.floor((log.length * percent) / 100);
      const full = await written(folded(new Fold(decider), log));
      const before = await written(folded(new Fold(decider), log.slice(0, at)));
      const after = folded(await reread(before, scenario), log.slice(at));
      assert.ok(full.equals(await written(after)), `cut at ${at}`);
      assert.deepEqual(describeState(after.state), describeState(scenario.state));
    }),
    { numRuns: RUNS },
  );
});

test("a leader that goes on from a snapshot of another leader owes the same", async () => {
  await fc.assert(
    fc.asyncProperty(history, async (moves) => {
      const scenario = live(world(), moves);
      const { decider, log } = scenario;
      scenario.owed();
      const last = log.at(-1);
      const position = log.length;
      const record = { ...new Fold(decider).record, position, seq: position, at: last?.at ?? 0 };
      const { state } = await reread(
        await written(new Fold(decider, { ...record, state: scenario.state })),
        scenario,
      );
      const next = world();
      next.state = state;
      next.log.push(...log);
      scenario.settle(FAR);
      next.settle(FAR);
      assert.deepEqual(
        envelopesOf(next.log).map(({ id }) => id),
        envelopesOf(log).map(({ id }) => id),
      );
    }),
    { numRuns: RUNS },
  );
});

test("every history comes to rest, and no decision throws", () => {
  const types = [
    "memory.fact.updated",
    "memory.preference.updated",
    "context.updated",
    "context.invalidated",
    "context.snapshot.ready",
    "state.delta.applied",
    "state.invalidated",
    "belief.revised",
    "belief.conflict.detected",
    "freshness.window.changed",
    "freshness.expired",
  ];
  const payload = fc.dictionary(
    fc.constantFrom(
      "fact_id",
      "context_key",
      "resource",
      "subject",
      "corrected",
      "replaced_by",
      "change_type",
      "new_valid_until",
    ),
    fc.constantFrom("", "f0", "memory:f0", "e1", "removed", iso(NOW), "[[[", "7"),
  );
  const odd = fc.record({
    type: fc.constantFrom(...types),
    payload,
    source: fc.constantFrom("agent:a", "memory:m"),
    cause: fc.option(fc.constantFrom("o0", "o1", "e1", "e3"), { nil: undefined }),
  });
  fc.assert(
    fc.property(fc.array(odd, { maxLength: 30 }), history, (odds, moves) => {
      const scenario = live(world(), moves);
      for (const [index, { type, payload: said, source, cause }] of odds.entries()) {
        const more = cause === undefined ? {} : { causation_id: cause };
        scenario.judge(event(type, said, { id: `o${index}`, source, ...more }));
      }
      scenario.settle(FAR);
      assert.equal(scenario.owed(), undefined);
      assert.deepEqual(describeState(scenario.refold()), describeState(scenario.state));
    }),
    { numRuns: RUNS },
  );
});

test("a tenant notices nothing of another one that has the same names", () => {
  fc.assert(
    fc.property(history, (moves) => {
      assertTenantsApart(live(world(), moves), describeState);
    }),
    { numRuns: 100, includeErrorInReport: true },
  );
});
