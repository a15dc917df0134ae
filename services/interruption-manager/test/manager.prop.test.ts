/** What holds for every history (issue "interruption manager", must show). */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "@harmovela/failure";
import { cut, Fold, instantPacking, readSnapshot } from "@harmovela/host";
import { assertTenantsApart } from "@harmovela/testkit";
import fc from "fast-check";
import { describeState, type ManagerSettings } from "../src/index.ts";
import type { ManagerState } from "../src/state.ts";
import { FAR, history, live } from "./generated.ts";
import { Oracle } from "./oracle.ts";
import { event, type Folded, iso, NOW, type World, world } from "./support.ts";

const RUNS = 150;

const settings: fc.Arbitrary<Partial<ManagerSettings>> = fc.record({
  onGraceExpired: fc.constantFrom("fail" as const, "force_stop" as const),
  orphanedTasks: fc.constantFrom("fail" as const, "keep" as const, "interrupt" as const),
});

test("both logs read naively: one open at a time, one consequence of each grace, one end of each cause", () => {
  const sum = {
    expired: 0,
    saved: 0,
    resumed: 0,
    closed: 0,
    trees: 0,
    resumedWithRoot: 0,
    granted: 0,
  };
  fc.assert(
    fc.property(settings, history, (chosen, moves) => {
      const scenario = world(chosen);
      const coordinator = live(scenario, moves);
      scenario.at(FAR);
      coordinator.settle();
      const oracle = new Oracle().read(scenario.journal);
      oracle.atRest(scenario.now);
      for (const [id, times] of coordinator.granted)
        assert.equal(times, 1, `${id} is asked for once`);
      sum.granted += coordinator.granted.size;
      for (const [name, count] of Object.entries(oracle.totals)) {
        sum[name as keyof typeof sum] += count;
      }
    }),
    { numRuns: RUNS },
  );
  for (const [name, count] of Object.entries(sum)) assert.ok(count > RUNS / 10, `${count} ${name}`);
});

test("every history comes to rest, and a fresh fold of it says the same", () => {
  fc.assert(
    fc.property(settings, history, (chosen, moves) => {
      const scenario = world(chosen);
      live(scenario, moves);
      scenario.said(FAR);
      assert.deepEqual(describeState(scenario.refold()), describeState(scenario.state));
      assert.deepEqual(scenario.said(), []);
    }),
    { numRuns: RUNS },
  );
});

const spec = world().decider.snapshots;
assert.ok(spec);

async function written(fold: Fold<ManagerState>): Promise<Buffer> {
  assert.ok(spec);
  const taken = await cut("interruptions", fold, spec, async () => true);
  assert.ok(taken);
  return taken.text;
}

async function reread(text: Buffer, { decider }: World): Promise<Fold<ManagerState>> {
  assert.ok(spec);
  const { record } = await readSnapshot(await instantPacking.pack(text), spec, instantPacking);
  return new Fold(decider, record);
}

function folded(fold: Fold<ManagerState>, journal: readonly Folded[]): Fold<ManagerState> {
  for (const { log, entry } of journal) {
    if (log === "own") fold.apply(entry);
    else fold.observe("tasks", entry);
  }
  return fold;
}

test("a snapshot anywhere and the tail are a full fold, to the last byte", async () => {
  await fc.assert(
    fc.asyncProperty(settings, history, fc.nat(100), async (chosen, moves, percent) => {
      const scenario = world({ ...chosen, retentionMs: 300 });
      live(scenario, moves);
      const journal = [...scenario.journal];
      const fresh = world({ ...chosen, retentionMs: 300 });
      const at = Math.floor((journal.length * percent) / 100);
      const full = await written(folded(new Fold(fresh.decider), journal));
      const before = await written(folded(new Fold(fresh.decider), journal.slice(0, at)));
      const after = folded(await reread(before, fresh), journal.slice(at));
      assert.ok(full.equals(await written(after)), `cut at ${at}`);
      assert.deepEqual(describeState(after.state), describeState(scenario.state));
    }),
    { numRuns: RUNS },
  );
});

test("a leader that goes on from a snapshot of another leader says and asks the same", async () => {
  await fc.assert(
    fc.asyncProperty(settings, history, async (chosen, moves) => {
      const scenario = world(chosen);
      live(scenario, moves);
      scenario.owed();
      const { log } = scenario;
      const position = log.length;
      const at = log.at(-1)?.at ?? 0;
      const record = { ...new Fold(scenario.decider).record, position, seq: position, at };
      const mine = new Fold(scenario.decider, { ...record, state: scenario.state });
      const next = world(chosen);
      next.state = (await reread(await written(mine), next)).state;
      next.at(scenario.now);
      const said = (one: World, now: number) => one.said(now).map(({ id }) => id);
      for (const now of [scenario.now, FAR]) {
        assert.deepEqual(next.requests(), scenario.requests());
        assert.deepEqual(said(next, now).sort(), said(scenario, now).sort());
      }
      assert.deepEqual(next.requests(), scenario.requests());
    }),
    { numRuns: RUNS },
  );
});

test("no event makes a decision throw, whatever it says, and every entry that follows can be folded", () => {
  const types = [
    "interruption.requested",
    "interruption.acknowledged",
    "interruption.saved",
    "interruption.resumed",
    "interruption.cancelled",
    "compensation.requested",
    "compensation.completed",
  ];
  const value = fc.constantFrom(
    "",
    "t0",
    "c0",
    "tree",
    "hv-checkpoint:x",
    `sha-256:${"0".repeat(64)}`,
    "__proto__",
    0,
    -1,
    null,
    [],
    {},
  );
  const odd = fc.record({
    type: fc.constantFrom(...types),
    payload: fc.dictionary(
      fc.constantFrom(
        "task_id",
        "reason",
        "description",
        "grace_period_ms",
        "scope",
        "digest",
        "location",
        "bytes_saved",
        "checkpoint_id",
        "original_task",
        "expired",
        "on_grace_expired",
      ),
      value,
    ),
    source: fc.constantFrom("agent:w", "agent:s", "agent:x", "service:other"),
    task: fc.constantFrom("t0", "t1", "u0", "x", ""),
    checkpoint: fc.option(fc.constantFrom("c0", "c1"), { nil: undefined }),
    deadline: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.boolean(), fc.array(odd, { maxLength: 30 }), history, (isOpen, odds, moves) => {
      const scenario = world({ externalTasks: isOpen });
      live(scenario, moves);
      for (const [index, { type, payload, source, task, checkpoint, deadline }] of odds.entries()) {
        const more = checkpoint === undefined ? {} : { checkpoint_id: checkpoint };
        const due: JsonObject = deadline ? { deadline: iso(NOW) } : {};
        const fields = { id: `o${index}`, source, task_id: task, ...more };
        scenario.judge(event(type, { ...payload, ...due }, { ...fields, compensation_id: "t1" }));
      }
      scenario.said(FAR);
      assert.deepEqual(describeState(scenario.refold()), describeState(scenario.state));
    }),
    { numRuns: RUNS },
  );
});

test("a tenant notices nothing of another one that has the same names", () => {
  fc.assert(
    fc.property(history, (moves) => {
      const scenario = world();
      live(scenario, moves);
      assertTenantsApart(scenario, describeState);
    }),
    { numRuns: 100, includeErrorInReport: true },
  );
});
