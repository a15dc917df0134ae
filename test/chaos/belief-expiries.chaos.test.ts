/**
 * A belief tracker that is killed around due times and between the marks of a retraction. The default is
 * a handful of kills; HARMOVELA_CHAOS_KILLS=200 takes several minutes.
 */
import assert from "node:assert/strict";
import { env } from "node:process";
import { test } from "node:test";
import { setTimeout as pass } from "node:timers/promises";
import { startNatsServer } from "@harmovela/testkit";
import {
  belief,
  endOf,
  expectedEnds,
  expiriesIn,
  type Life,
  live,
  resourceOf,
  type Said,
} from "./belief-windows.ts";
import { eventually } from "./deadline.ts";
import { Fleet, type ServiceProcess } from "./fleet.ts";
import type { KillOrder } from "./kill-order.ts";
import { chaosSeed, repeatCommand, seededRandom } from "./seeded.ts";
import { Sender } from "./sender.ts";
import { assertGreen, controlsOf, eventsOf, readRecords, type StoredEvent } from "./stored-log.ts";

const FILE = "test/chaos/belief-expiries.chaos.test.ts";
const TENANT = "acme";
const DOMAIN = "beliefs";
const KILLS = Number(env.HARMOVELA_CHAOS_KILLS ?? 6);
const WINDOWS_PER_KILL = 50;
/** Over which the windows of one round end, and the pause before the first. */
const SPREAD_MS = 1_000;
const LEAD_MS = 200;
/** One outage in so many is long: most of a round's windows end in it. */
const LONG_EVERY = 5;
const LONG_MS = 1_500;
const DEADLINE_MS = 60_000;
const LEASE_MS = 600;

/** Where the process that dies by itself is, in its n-th expiry. */
const POINTS: KillOrder["point"][] = ["published", "acked", "before", "released", "later"];

interface Outage {
  from: number;
  to: number;
}

/** Half of the windows are left alone; the others are extended, shortened or ended, once or twice. */
function livesOf(round: number, chance: () => number): Life[] {
  return Array.from({ length: WINDOWS_PER_KILL }, (_, number) => {
    const endsIn = LEAD_MS + (SPREAD_MS * number) / WINDOWS_PER_KILL;
    const changes = Array.from({ length: Math.max(0, Math.floor(4 * chance()) - 1) }, () => ({
      after: 900 * chance(),
      endsIn: -50 + 900 * chance(),
    }));
    return { fact: `w${round}-${number}`, endsIn, changes };
  });
}

/** Each end once, never early; the ends that came while nobody led. */
function assertEnds(
  events: StoredEvent[],
  said: Said,
  outages: readonly Outage[],
): { ends: number; inOutage: number } {
  const told = new Map<string, number[]>();
  let inOutage = 0;
  for (const expiry of expiriesIn(events)) {
    const resource = resourceOf(expiry);
    const end = endOf(expiry);
    const { detected_at: detectedAt } = expiry.envelope.payload as Record<string, string>;
    assert.ok(expiry.at >= end, `${resource} counts as ended ${end - expiry.at} ms early`);
    assert.ok(expiry.time >= end, `${resource} was told ${end - expiry.time} ms early`);
    assert.ok(Date.parse(detectedAt ?? "") >= end, `${resource} says that it ended early`);
    told.set(resource, [...(told.get(resource) ?? []), end]);
    if (outages.some(({ from, to }) => end >= from && end <= to)) inOutage += 1;
  }
  const expected = expectedEnds(events, said);
  assert.equal(expected.size, KILLS * WINDOWS_PER_KILL);
  for (const [resource, ends] of expected) {
    assert.deepEqual(told.get(resource)?.toSorted(), ends.toSorted(), resource);
  }
  assert.equal(told.size, expected.size);
  return { ends: [...told.values()].flat().length, inOutage };
}

test("kill -9 around due times: each end of a window is told once, none early", async (t) => {
  const seed = chaosSeed();
  t.diagnostic(repeatCommand(seed, FILE));
  const chance = seededRandom(seed);
  await using server = await startNatsServer();
  await using sender = await Sender.open(server.url, TENANT);
  await using fleet = await Fleet.open({
    domain: DOMAIN,
    url: server.url,
    leaseTtlMs: LEASE_MS,
    isLeaseFreed: true,
  });
  const seen: string[] = [];
  sender.bus.subscribe(`hv.${TENANT}.ev.beliefs.>`, ({ data }) => {
    const { type, id } = JSON.parse(Buffer.from(data).toString()) as { type: string; id: string };
    if (type === "freshness.expired") seen.push(id);
  });
  const said: Said = new Map();
  const lives: Promise<void>[] = [];
  const outages: number[] = [];
  for (let round = 0; round < KILLS; round += 1) {
    // Two of three die in an expiry of this round, the others at any moment of it.
    const point = POINTS[round % POINTS.length] ?? "acked";
    const n = 1 + Math.floor(20 * chance());
    const isOrdered = round % 3 !== 2;
    const doomed: ServiceProcess = fleet.start(
      isOrdered ? { of: "step", n, point, more: 2, tenant: TENANT } : undefined,
    );
    await doomed.until("leading");
    lives.push(...livesOf(round, chance).map((life) => live(sender, said, life)));
    if (!isOrdered) {
      await pass(LEAD_MS + SPREAD_MS * chance());
      await doomed.kill();
    }
    await doomed.ended;
    outages.push(Date.now());
    if (round % LONG_EVERY === 1) await pass(LONG_MS);
  }
  const last = fleet.start();
  await Promise.all(lives);
  const events = await eventually(DEADLINE_MS, "every window that ends has ended", async () => {
    const stored = eventsOf(await readRecords(sender.bus, DOMAIN));
    const wanted = [...expectedEnds(stored, said).values()].flat().length;
    const isJudged = stored.filter(({ envelope: { id } }) => said.has(id)).length === said.size;
    return isJudged && expiriesIn(stored).length >= wanted ? stored : undefined;
  });
  const records = await readRecords(sender.bus, DOMAIN);
  const report = assertGreen(records, { domain: DOMAIN });
  const epochs = new Set(controlsOf(records, "epoch").map(({ seq }) => seq));
  const begins = records.filter(({ seq }) => epochs.has(seq)).map(({ time }) => time);
  const spans = outages.map((from) => ({ from, to: begins.find((to) => to >= from) ?? from }));
  const { ends, inOutage } = assertEnds(events, said, spans);
  assert.ok(inOutage > 0, "no window has ended while nobody led");
  assert.equal(fleet.killed, KILLS);
  assert.deepEqual(fleet.failures, []);
  await last.kill();
  await sender.bus.flush();
  assert.deepEqual(
    seen,
    expiriesIn(eventsOf(records)).map(({ envelope: { id } }) => id),
  );
  t.diagnostic(
    `${server.version}: ${KILLS} kills, ${ends} ends of ${KILLS * WINDOWS_PER_KILL} claims told, ` +
      `${inOutage} due times fell into a down time; ${said.size} events, ${report.entries} entries`,
  );
});

/** In a layer of so many, each rests on two of the one before. */
const WIDTH = 4;
/** Each process makes exactly one mark, and ends at another moment of it. */
const MARK_POINTS: KillOrder[] = [
  { of: "step", n: 1, point: "published", tenant: TENANT },
  { of: "step", n: 1, point: "acked", tenant: TENANT },
  { of: "step", n: 2, point: "before", tenant: TENANT },
  { of: "step", n: 1, point: "later", more: 4, tenant: TENANT },
];

test("kill -9 after every single mark of a retraction: each conclusion is marked once", async (t) => {
  const dependents = Math.max(12, KILLS);
  await using server = await startNatsServer();
  await using sender = await Sender.open(server.url, TENANT);
  await using fleet = await Fleet.open({
    domain: DOMAIN,
    url: server.url,
    leaseTtlMs: LEASE_MS,
    isLeaseFreed: true,
  });
  const base = belief("agent:a", "memory.fact.added", { fact_id: "base", value: 1 });
  const drawn: string[] = [];
  {
    await using planter = fleet.start();
    await planter.until("leading");
    await sender.send(base);
    for (let number = 0; number < dependents; number += 1) {
      const layer = number - (number % WIDTH) - WIDTH;
      const grounds = layer < 0 ? [base.id] : [drawn[layer], drawn[layer + ((number + 1) % WIDTH)]];
      const evidence_chain = grounds.map((id = base.id) => ({ source: "agent:a", id }));
      const fact = { fact_id: `d${number}`, value: number };
      const conclusion = belief("agent:b", "memory.fact.added", fact, { evidence_chain });
      drawn.push(conclusion.id);
      await sender.send(conclusion);
    }
  }
  const retraction = belief(
    "agent:a",
    "memory.fact.invalidated",
    { fact_id: "base" },
    { belief_status: "retracted" },
  );
  // The first process ends between the entry that begins the walk and its acknowledgement.
  const beginner = fleet.start({ of: "begun", n: 1, point: "published", tenant: TENANT });
  await beginner.until("leading");
  const answered = sender.send(retraction, DEADLINE_MS);
  await beginner.ended;
  let orders = 0;
  fleet.keep(3, () => {
    orders += 1;
    return MARK_POINTS[orders % MARK_POINTS.length];
  });
  const answer = await answered;
  assert.equal(answer.type, "event.acknowledged");
  const patience = DEADLINE_MS + dependents * 2_000;
  const events = await eventually(patience, "the retraction is logged", async () => {
    const stored = eventsOf(await readRecords(sender.bus, DOMAIN));
    return stored.some(({ envelope: { id } }) => id === retraction.id) ? stored : undefined;
  });
  const records = await readRecords(sender.bus, DOMAIN);
  assertGreen(records, { domain: DOMAIN });
  const marks = events.filter(({ envelope: { type } }) => type === "state.invalidated");
  const marked = marks.map(
    ({ envelope: { payload } }) => (payload as { event_id: string }).event_id,
  );
  assert.deepEqual(marked.toSorted(), drawn.toSorted());
  const begun = controlsOf(records, "begun");
  assert.equal(begun.length, 1);
  const end = events.find(({ envelope: { id } }) => id === retraction.id)?.seq ?? 0;
  assert.ok(
    marks.every(({ seq }) => seq < end),
    "whoever sees the retraction finds every mark",
  );
  const lives = new Set([...marks.map(({ epoch }) => epoch)]);
  assert.equal(lives.size, dependents, "no process made more than one mark");
  assert.ok(fleet.killed >= dependents, `${fleet.killed} kills`);
  assert.deepEqual(fleet.failures, []);
  t.diagnostic(`${server.version}: ${dependents} marks, ${fleet.killed} kills`);
});
