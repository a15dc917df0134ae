/** P2 and P3 on three copies: the server that leads the log is killed again and again, under load. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as pass } from "node:timers/promises";
import type { JetStreamBus } from "@harmovela/bus";
import { startNatsCluster } from "@harmovela/testkit";
import { eventually } from "./deadline.ts";
import { Fleet } from "./fleet.ts";
import { startRecorder } from "./recording.ts";
import { chaosSeed, repeatCommand, seededRandom } from "./seeded.ts";
import { Sender } from "./sender.ts";
import {
  assertAsAnswered,
  assertGreen,
  assertSeenIsStored,
  assertTokensRecorded,
  lastEpoch,
  ownOf,
  untilSettled,
} from "./stored-log.ts";

const KILLS = Number(process.env.HARMOVELA_CHAOS_ACTIONS ?? 3);
const LEASE_MS = 1_500;
const DEADLINE_MS = 60_000;
const VERDICTS_BETWEEN = 20;
/** Of every third kill the service's own leader dies too. */
const BOTH_EVERY = 3;

interface Copies {
  leader?: string;
  replicas?: { current: boolean; offline?: boolean }[];
}

/** Where the copies of a stream are; undefined while nobody answers. */
async function copiesOf(bus: JetStreamBus, stream: string): Promise<Copies | undefined> {
  try {
    const answer = await bus.nats.request(`$JS.API.STREAM.INFO.${stream}`, "", { timeout: 1_000 });
    return answer.json<{ cluster?: Copies }>().cluster;
  } catch {
    // The servers are agreeing on a leader.
    return undefined;
  }
}

function leaderOf(bus: JetStreamBus, stream: string): Promise<string> {
  return eventually(
    DEADLINE_MS,
    `${stream} has a leader`,
    async () => (await copiesOf(bus, stream))?.leader || undefined,
  );
}

/** Otherwise the next kill would take the second of three, and nothing could be acknowledged. */
async function untilAllCurrent(bus: JetStreamBus): Promise<void> {
  for (const stream of ["HV_LOG_TASKS", "HV_IN_TASKS", "KV_HV_LEASES"]) {
    await eventually(DEADLINE_MS, `every copy of ${stream} is current`, async () => {
      const copies = await copiesOf(bus, stream);
      const others = copies?.replicas ?? [];
      const isWhole =
        others.length === 2 && others.every(({ current, offline }) => current && !offline);
      return copies?.leader && isWhole ? true : undefined;
    });
  }
}

test("three copies: the log's leading server is killed under load", async (t) => {
  const seed = chaosSeed();
  const chance = seededRandom(seed);
  t.diagnostic(repeatCommand(seed, "test/chaos/replicated.chaos.test.ts"));
  await using cluster = await startNatsCluster();
  await using sender = await Sender.open(cluster.urls, "observer");
  await using fleet = await Fleet.open({ url: cluster.urls, leaseTtlMs: LEASE_MS, replicas: 3 });
  fleet.keep(2);
  await eventually(DEADLINE_MS, "somebody leads", () => lastEpoch(sender.bus));
  await using recorder = await startRecorder({
    url: cluster.urls,
    tenants: ["acme", "beta"],
    agents: 4,
    seed,
    mix: "all",
    restMs: 100,
  });
  const startedAt = performance.now();
  const killed: Record<string, number> = {};
  const silences: number[] = [];
  for (let turn = 1; turn <= KILLS; turn += 1) {
    await untilAllCurrent(sender.bus);
    const stream = turn % 2 === 0 ? "HV_IN_TASKS" : "HV_LOG_TASKS";
    const name = await leaderOf(sender.bus, stream);
    const server = cluster.servers.get(name);
    assert.ok(server, `no server is called ${name}`);
    const known = await lastEpoch(sender.bus);
    const before = recorder.verdicts.length;
    const at = performance.now();
    await server.kill();
    killed[name] = (killed[name] ?? 0) + 1;
    if (turn % BOTH_EVERY === 0) {
      await fleet.members.find(({ instance }) => instance === known?.instance)?.kill();
    }
    await eventually(DEADLINE_MS, `work goes on with two servers, kill ${turn}`, () =>
      recorder.verdicts.length > before + VERDICTS_BETWEEN ? true : undefined,
    );
    silences.push(Math.round(performance.now() - at));
    assert.notEqual(await leaderOf(sender.bus, stream), name, "another copy leads now");
    await pass(300 * chance());
    await server.restart();
  }
  const seconds = Math.round((performance.now() - startedAt) / 1_000);
  const { sent, resent } = await recorder.stop();
  const records = await untilSettled(sender.bus, DEADLINE_MS, 0);
  const report = assertGreen(records, { isForeignAllowed: true });
  const own = ownOf(records);
  assert.equal(own.length, records.length - report.foreign);
  assert.equal(recorder.verdicts.length, sent);
  assertAsAnswered(own, recorder.verdicts);
  assertTokensRecorded(own, recorder.tokens);
  const seen = assertSeenIsStored(records, recorder.seen);
  assert.ok(seen > 0 && report.plansBegun > 0 && recorder.tokens.length > 0);
  assert.deepEqual(fleet.failures, []);
  assert.equal((await copiesOf(sender.bus, "HV_LOG_TASKS"))?.replicas?.length, 2);
  t.diagnostic(
    `${cluster.version}: ${KILLS} kills of a leading server in ${seconds} s ` +
      `(${Object.entries(killed).join(" ")}), ${fleet.killed} coordinators killed, ` +
      `${report.control.epoch} epochs; ${VERDICTS_BETWEEN} verdicts after ${silences.join(", ")} ms`,
  );
  t.diagnostic(
    `${sent} sent (${resent} again), ${report.entries} entries (${report.foreign} foreign), ` +
      `${report.tasks} tasks, ${recorder.tokens.length} tokens, seen ${seen} of ${report.events} events`,
  );
});
