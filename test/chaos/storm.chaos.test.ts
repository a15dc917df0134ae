/** P2 and P3 of the architecture: services and server killed, leaders paused, under load, by a seeded schedule. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as pass } from "node:timers/promises";
import type { JetStreamBus } from "@harmovela/bus";
import { type NatsServer, startNatsServer } from "@harmovela/testkit";
import { type Coordinator, Fleet } from "./coordinators.ts";
import { eventually } from "./deadline.ts";
import { startRecorder } from "./recording.ts";
import { chaosSeed, repeatCommand, seededRandom } from "./seeded.ts";
import { Sender } from "./sender.ts";
import {
  assertAsAnswered,
  assertGreen,
  assertSeenIsStored,
  countRefused,
  lastLeader,
  readRecords,
  untilSettled,
} from "./stored-log.ts";

const STORM_MS = 30_000;
const LEASE_MS = 600;
/** So long a displaced leader goes on in good faith, and the log alone tells it apart. */
const BLIND_MS = 500;
const SETTLED_MS = 30_000;

interface Weather {
  server: NatsServer;
  fleet: Fleet;
  bus: JetStreamBus;
  chance: () => number;
}

async function leader({ fleet, bus }: Weather): Promise<Coordinator | undefined> {
  const instance = await lastLeader(bus);
  return fleet.members.find((member) => member.instance === instance);
}

/** Further pauses at most, about a second each. */
const DISPLACED_MORE_MAX = 60;

const ACTIONS: Record<string, (weather: Weather) => Promise<void>> = {
  async killLeader(weather) {
    await (await leader(weather))?.kill();
  },
  async killStandby(weather) {
    const leading = await leader(weather);
    await weather.fleet.members.find((member) => member !== leading)?.kill();
  },
  /** Longer than the lease: it wakes up displaced, with appends on its mind. */
  async pauseLeader(weather) {
    const paused = await leader(weather);
    paused?.signal("SIGSTOP");
    await pass(LEASE_MS * (1.5 + 2 * weather.chance()));
    paused?.signal("SIGCONT");
  },
  async pauseAndKillServer(weather) {
    const paused = await leader(weather);
    paused?.signal("SIGSTOP");
    await weather.server.kill();
    await weather.server.restart();
    await pass(LEASE_MS * 2 * weather.chance());
    paused?.signal("SIGCONT");
  },
  async killServer({ server }) {
    await server.kill();
    await server.restart();
  },
  async killAll({ fleet }) {
    await Promise.all(fleet.members.map((member) => member.kill()));
  },
};

test("processes and the server are killed and paused under load", async (t) => {
  const seed = chaosSeed();
  t.diagnostic(repeatCommand(seed, "test/chaos/storm.chaos.test.ts"));
  await using server = await startNatsServer();
  await using sender = await Sender.open(server.url, "observer");
  await using fleet = await Fleet.open({
    url: server.url,
    leaseTtlMs: LEASE_MS,
    blindMs: BLIND_MS,
  });
  fleet.keep(2);
  await eventually(20_000, "the streams are there", async () =>
    (await readRecords(sender.bus)).length > 0 ? true : undefined,
  );
  await using recorder = await startRecorder({
    url: server.url,
    tenants: ["acme", "beta"],
    agents: 6,
    seed,
    mix: "all",
  });
  const weather: Weather = { server, fleet, bus: sender.bus, chance: seededRandom(seed) };
  const done: Record<string, number> = {};
  const names = Object.keys(ACTIONS);
  const until = performance.now() + STORM_MS;
  for (let turn = 0; performance.now() < until; turn += 1) {
    // Each at least once, then by chance.
    const pick = turn < names.length ? turn : Math.floor(weather.chance() * names.length);
    const name = names[pick] ?? "killLeader";
    const before = recorder.verdicts.length;
    await ACTIONS[name]?.(weather);
    done[name] = (done[name] ?? 0) + 1;
    await eventually(20_000, `work goes on after ${name} (seed ${seed})`, () =>
      recorder.verdicts.length > before + 20 ? true : undefined,
    );
    await pass(400 * weather.chance());
  }
  // Whether a displaced leader still had something to append is luck: go on until one had.
  for (let more = 0; more < DISPLACED_MORE_MAX; more += 1) {
    const tried = [...recorder.tried];
    // What was tried until now is stored by then, or never will be.
    await pass(1_000);
    if (countRefused(await readRecords(sender.bus), tried) > 0) break;
    await ACTIONS.pauseLeader?.(weather);
    await pass(400 * weather.chance());
  }
  const { sent, resent } = await recorder.stop();
  const records = await untilSettled(sender.bus, SETTLED_MS, 0);
  const report = assertGreen(records);
  assert.equal(recorder.verdicts.length, sent);
  assertAsAnswered(records, recorder.verdicts);
  const seen = assertSeenIsStored(records, recorder.seen);
  assert.deepEqual(fleet.failures, []);
  assert.equal(report.liveTasks, 0);
  assert.ok(report.plansBegun > 0 && seen > 0);
  const refused = countRefused(records, recorder.tried);
  assert.ok(refused > 0, "no displaced leader has tried to append");
  const accepted = recorder.verdicts.filter(({ verdict }) => verdict === "event.acknowledged");
  t.diagnostic(
    `${server.version}: ${Object.entries(done)
      .map(([name, count]) => `${name} ${count}`)
      .join(", ")}; ${fleet.killed} processes killed, ${report.control.epoch} epochs`,
  );
  t.diagnostic(
    `${sent} sent (${resent} again), ${accepted.length} accepted, ${report.entries} entries, ` +
      `${report.plansBegun} cascades, ${report.tasks} tasks, seen ${seen} of ${report.events} events, ` +
      `${refused} appends of displaced leaders were refused`,
  );
});
