/**
 * P2 and P3 of the architecture: services and server killed, leaders paused, under load, by a seeded
 * schedule. The default run is short; `npm run storm` is one of 200 actions (about five minutes).
 */
import assert from "node:assert/strict";
import { env } from "node:process";
import { test } from "node:test";
import { setTimeout as pass } from "node:timers/promises";
import { startNatsServer } from "@harmovela/testkit";
import { eventually } from "./deadline.ts";
import { Fleet } from "./fleet.ts";
import { type Recorder, startRecorder } from "./recording.ts";
import { chaosSeed, repeatCommand, seededRandom } from "./seeded.ts";
import { Sender } from "./sender.ts";
import {
  assertAsAnswered,
  assertGreen,
  assertSeenIsStored,
  assertTokensRecorded,
  countDisplaced,
  lastEpoch,
  readRecords,
  untilSettled,
} from "./stored-log.ts";
import { describeTakeOvers, takeOvers } from "./take-over.ts";
import { ACTIONS, type Weather } from "./weather.ts";

const ACTIONS_COUNT = Number(env.HARMOVELA_CHAOS_ACTIONS ?? 18);
const LEASE_MS = Number(env.HARMOVELA_CHAOS_LEASE_MS ?? 600);
/** So long a displaced leader goes on in good faith, and the log alone tells it apart. */
const BLIND_MS = 500;
const SETTLED_MS = 60_000;
/** Further pauses at most, about a second each. */
const DISPLACED_MORE_MAX = 60;
/** Work that must be done between two actions. */
const VERDICTS_BETWEEN = 20;

/** Each action at least once, then by chance. */
async function storm(weather: Weather, recorder: Recorder): Promise<void> {
  const names = Object.keys(ACTIONS);
  for (let turn = 0; turn < ACTIONS_COUNT; turn += 1) {
    const pick = turn < names.length ? turn : Math.floor(weather.chance() * names.length);
    const name = names[pick] ?? "killLeader";
    const before = recorder.verdicts.length;
    weather.history.push(name);
    await ACTIONS[name]?.(weather);
    await eventually(30_000, `work goes on after ${name}, action ${turn + 1}`, () =>
      recorder.verdicts.length > before + VERDICTS_BETWEEN ? true : undefined,
    );
    await pass(300 * weather.chance());
  }
}

/** "killAll 2, killLeader 3". */
function countNames(names: string[]): string {
  return [...new Set(names)]
    .sort()
    .map((name) => `${name} ${names.filter((each) => each === name).length}`)
    .join(", ");
}

/** Whether a displaced leader still had something to append is luck: goes on until one had. */
async function untilOneIsDisplaced(weather: Weather, recorder: Recorder): Promise<void> {
  for (let more = 0; more < DISPLACED_MORE_MAX; more += 1) {
    const tried = [...recorder.tried];
    // What was tried until now is stored by then, or never will be.
    await pass(1_000);
    if (countDisplaced(await readRecords(weather.bus), tried) > 0) return;
    await ACTIONS.pauseLeader?.(weather);
    await pass(400 * weather.chance());
  }
}

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
  await eventually(30_000, "one leads and both have read the log", async () => {
    const isLed = (await lastEpoch(sender.bus)) !== undefined;
    return isLed && fleet.members.every(({ isWarm }) => isWarm) ? true : undefined;
  });
  await using recorder = await startRecorder({
    url: server.url,
    tenants: ["acme", "beta"],
    agents: 6,
    seed,
    mix: "all",
    restMs: 100,
  });
  const weather: Weather = {
    server,
    fleet,
    bus: sender.bus,
    leaseMs: LEASE_MS,
    chance: seededRandom(seed),
    losses: [],
    history: [],
  };
  const startedAt = performance.now();
  await storm(weather, recorder);
  const done = countNames(weather.history);
  const seconds = Math.round((performance.now() - startedAt) / 1_000);
  await untilOneIsDisplaced(weather, recorder);
  const { sent, resent } = await recorder.stop();
  const records = await untilSettled(sender.bus, SETTLED_MS, 0);
  const report = assertGreen(records);
  assert.equal(recorder.verdicts.length, sent);
  assertAsAnswered(records, recorder.verdicts);
  assertTokensRecorded(records, recorder.tokens);
  const seen = assertSeenIsStored(records, recorder.seen);
  assert.deepEqual(fleet.failures, []);
  assert.equal(report.liveTasks, 0);
  assert.ok(report.plansBegun > 0 && seen > 0 && recorder.tokens.length > 0);
  const handoffs = recorder.verdicts.filter(
    ({ type, verdict }) =>
      type === "delegation.handoff.completed" && verdict === "event.acknowledged",
  );
  assert.ok(handoffs.length > 0, "no task was handed over");
  const displaced = countDisplaced(records, recorder.tried);
  assert.ok(displaced > 0, "no displaced leader has tried to append");
  const accepted = recorder.verdicts.filter(({ verdict }) => verdict === "event.acknowledged");
  const times = takeOvers(records, weather.losses);
  t.diagnostic(
    `${server.version}: ${ACTIONS_COUNT} actions in ${seconds} s: ${done}; ${fleet.killed} processes killed, ${report.control.epoch} epochs`,
  );
  t.diagnostic(
    `${sent} sent (${resent} again), ${accepted.length} accepted, ${report.entries} entries, ` +
      `${report.plansBegun} cascades, ${report.tasks} tasks, ${handoffs.length} handoffs, ` +
      `${recorder.tokens.length} tokens, seen ${seen} of ${report.events} events`,
  );
  t.diagnostic(`${displaced} appends of displaced leaders were refused`);
  const plain = times.filter(({ isPlain }) => isPlain);
  const others = times.filter(({ isPlain }) => !isPlain);
  t.diagnostic(`lease ${LEASE_MS} ms: ${describeTakeOvers("by a warm standby", plain)}`);
  t.diagnostic(describeTakeOvers("with nobody warm or the server killed too", others));
  assert.ok(plain.length > 0, "no warm standby has taken over");
});
