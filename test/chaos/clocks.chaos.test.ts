/** Wall clocks that are wrong: nobody judges by them (architecture, section 5). */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as pass } from "node:timers/promises";
import type { StoredRecord } from "@harmovela/check";
import { startNatsServer } from "@harmovela/testkit";
import { eventually } from "./deadline.ts";
import { Fleet, type ServiceProcess } from "./fleet.ts";
import { startRecorder } from "./recording.ts";
import { chaosSeed } from "./seeded.ts";
import { envelope, Sender } from "./sender.ts";
import {
  assertAsAnswered,
  assertGreen,
  assertTokensRecorded,
  controlsOf,
  eventsOf,
  lastEpoch,
  readRecords,
} from "./stored-log.ts";
import { describeTakeOvers, type Loss, takeOvers } from "./take-over.ts";

const TENANT = "timed";
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** As a service has it that nobody configures. */
const LEASE_MS = 3_000;
const FAILOVERS = 4;
const DEADLINE_MS = 40_000;
/** From the moment somebody leads and the time has come. */
const LATE_MS_MAX = 10_000;
/** Some fall due before the leader is killed, some while nobody leads, some under the next one. */
const DURATIONS_MS = [200, 900, 2_000, 3_000, 4_500, 7_000];

interface Timer {
  task: string;
  /** By the broker's time of receipt. */
  due: number;
  ends: "task.timed_out" | "task.cancelled";
}

/** Tasks that time out and tasks whose cancel request runs out of grace, of every duration. */
async function plantTimers(sender: Sender, name: string): Promise<Timer[]> {
  const timers: Timer[] = [];
  for (const ms of DURATIONS_MS) {
    const late = `${name}-timeout-${ms}`;
    const payload = { timeout_ms: ms };
    const receivedAt = await sender.post(
      envelope("agent:planner", "task.submitted", late, { payload }),
    );
    await sender.post(envelope("agent:worker", "task.started", late));
    timers.push({ task: late, due: receivedAt + ms, ends: "task.timed_out" });
    const asked = `${name}-grace-${ms}`;
    await sender.post(envelope("agent:planner", "task.submitted", asked));
    await sender.post(envelope("agent:worker", "task.started", asked));
    const askedAt = await sender.post(
      envelope("agent:planner", "task.cancel.requested", asked, {
        target: "agent:worker",
        payload: { grace_period_ms: ms },
      }),
    );
    timers.push({ task: asked, due: askedAt + ms, ends: "task.cancelled" });
  }
  return timers;
}

const isEnd = (type: string): boolean =>
  /^task\.(completed|failed|cancelled|timed_out)$/.test(type);

function untilFired(sender: Sender, timers: Timer[]): Promise<StoredRecord[]> {
  return eventually(DEADLINE_MS, "every timer has fired", async () => {
    const records = await readRecords(sender.bus);
    const ended = eventsOf(records).filter(
      ({ tenant, envelope: { type } }) => tenant === TENANT && isEnd(type),
    );
    return ended.length >= timers.length ? records : undefined;
  });
}

/** Each once, never before its time, and as soon as somebody led whose time it was; the worst delay. */
function assertOnTime(records: StoredRecord[], timers: Timer[]): number {
  const events = eventsOf(records).filter(({ tenant }) => tenant === TENANT);
  const begins = new Map(records.map(({ seq, time }) => [seq, time]));
  let worst = 0;
  for (const { task, due, ends } of timers) {
    const own = events.filter(({ envelope: { task_id, type } }) => task_id === task && isEnd(type));
    assert.deepEqual(
      own.map(({ envelope: { type } }) => type),
      [ends],
      task,
    );
    for (const { time, epoch, envelope: written } of own) {
      const createdAt = Date.parse(written.created_at);
      assert.ok(time >= due, `${task} ended ${due - time} ms too early`);
      assert.ok(createdAt >= due, `${task} says that it ended ${due - createdAt} ms too early`);
      assert.ok(createdAt <= time, `${task} says that it ended ${createdAt - time} ms from now`);
      const late = time - Math.max(due, begins.get(epoch) ?? 0);
      assert.ok(late <= LATE_MS_MAX, `${task} ended ${late} ms late`);
      worst = Math.max(worst, late);
    }
  }
  return worst;
}

/** The process has the clock that it was given. */
async function assertShifted(member: ServiceProcess, shiftMs: number, place = 0): Promise<void> {
  const shown = await eventually(
    DEADLINE_MS,
    `${member.instance} shows its clock`,
    () => member.wallClock[place],
  );
  assert.ok(Math.abs(shown - Date.now() - shiftMs) < MINUTE_MS, `${member.instance}: ${shown}`);
}

/** The one that leads, once the other one has read the whole log. */
async function leaderOf(fleet: Fleet, sender: Sender): Promise<ServiceProcess> {
  return eventually(DEADLINE_MS, "one leads, one is warm", async () => {
    const known = await lastEpoch(sender.bus);
    const leader = fleet.members.find(({ instance }) => instance === known?.instance);
    const isPair = fleet.members.length === 2 && fleet.members.every(({ isWarm }) => isWarm);
    return isPair ? leader : undefined;
  });
}

test("replicas an hour apart: no timer early, none later than the take-over, both ways", async (t) => {
  await using server = await startNatsServer();
  await using sender = await Sender.open(server.url, TENANT);
  await using fleet = await Fleet.open({ url: server.url, leaseTtlMs: LEASE_MS });
  for (const shiftMs of [-30 * MINUTE_MS, 30 * MINUTE_MS]) fleet.start(undefined, [shiftMs]);
  await leaderOf(fleet, sender);
  await using recorder = await startRecorder({
    url: server.url,
    tenants: ["acme"],
    agents: 3,
    seed: chaosSeed(),
    mix: "all",
    restMs: 150,
  });
  const timers: Timer[] = [];
  const losses: Loss[] = [];
  const shifts: number[] = [];
  for (let turn = 1; turn <= FAILOVERS; turn += 1) {
    const leader = await leaderOf(fleet, sender);
    for (const member of fleet.members) await assertShifted(member, member.clockShiftMs);
    timers.push(...(await plantTimers(sender, `turn-${turn}`)));
    await pass(300);
    const { epoch = 0 } = (await lastEpoch(sender.bus)) ?? {};
    losses.push({ epoch, at: Date.now(), isKilled: true, isPlain: true, during: `turn ${turn}` });
    await leader.kill();
    const next = await eventually(DEADLINE_MS, "the other one leads", async () => {
      const known = await lastEpoch(sender.bus);
      return known?.epoch === epoch
        ? undefined
        : fleet.members.find(({ instance }) => instance === known?.instance);
    });
    assert.equal(next.clockShiftMs, -leader.clockShiftMs);
    shifts.push(next.clockShiftMs);
    fleet.start(undefined, [leader.clockShiftMs]);
  }
  const { sent } = await recorder.stop();
  const records = await untilFired(sender, timers);
  const report = assertGreen(records);
  assert.equal(recorder.verdicts.length, sent);
  assertAsAnswered(records, recorder.verdicts);
  assertTokensRecorded(records, recorder.tokens);
  const worst = assertOnTime(records, timers);
  assert.deepEqual(new Set(shifts), new Set([-30 * MINUTE_MS, 30 * MINUTE_MS]));
  assert.equal(controlsOf(records, "epoch").length, FAILOVERS + 1);
  assert.deepEqual(fleet.failures, []);
  // A token is issued by one replica and looked at by another: their clocks play no part (spec 7).
  const handoffs = recorder.verdicts.filter(
    ({ type, verdict }) =>
      type === "delegation.handoff.completed" && verdict === "event.acknowledged",
  );
  assert.ok(handoffs.length > 0, "no task was handed over");
  const times = takeOvers(records, losses);
  assert.equal(times.length, FAILOVERS);
  t.diagnostic(
    `${server.version}, lease ${LEASE_MS} ms: ${describeTakeOvers("by a warm standby", times)}; ` +
      `${timers.length} timers, the latest ${worst} ms after its time or the take-over; ` +
      `${report.entries} entries, ${handoffs.length} handoffs`,
  );
});

test("the leader's wall clock steps an hour forward, then back by two: no timer moves", async (t) => {
  await using server = await startNatsServer();
  await using sender = await Sender.open(server.url, TENANT);
  await using fleet = await Fleet.open({ url: server.url, leaseTtlMs: LEASE_MS });
  const steps = [0, HOUR_MS, -HOUR_MS];
  const leader = fleet.start(undefined, steps);
  await leader.until("leading");
  const timers: Timer[] = [];
  for (const [place, shiftMs] of steps.entries()) {
    if (place > 0) leader.signal("SIGUSR2");
    await assertShifted(leader, shiftMs, place);
    timers.push(...(await plantTimers(sender, `step-${place}`)));
    await pass(500);
  }
  const records = await untilFired(sender, timers);
  assertGreen(records);
  const worst = assertOnTime(records, timers);
  assert.equal(controlsOf(records, "epoch").length, 1, "the lease was lost");
  assert.deepEqual(fleet.failures, []);
  t.diagnostic(`${server.version}: ${timers.length} timers, the latest ${worst} ms after its time`);
});
