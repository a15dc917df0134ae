/** A manager that is stopped at the end of a grace: what was saved in time counts, whoever finds it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as pass } from "node:timers/promises";
import type { JetStreamBus } from "@harmovela/bus";
import { startNatsServer } from "@harmovela/testkit";
import { untilBothSettled } from "./both-logs.ts";
import { eventually } from "./deadline.ts";
import { Fleet, type ServiceProcess } from "./fleet.ts";
import { chaosSeed, repeatCommand, seededRandom } from "./seeded.ts";
import { envelope, Sender } from "./sender.ts";
import { eventsOf, lastEpoch } from "./stored-log.ts";

const FILE = "test/chaos/interruption-pause.chaos.test.ts";
/** 200 for the long run. */
const RUNS = Number(process.env.HARMOVELA_CHAOS_ROUNDS ?? 5);
const TASKS = 4;
const BOSS = "agent:boss";
const WORKER = "agent:worker";
const LEASE_MS = 600;
const GRACE_MS = 1_200;
/** The manager stops so long before the end of the grace at most, and what is saved is saved meanwhile. */
const BEFORE_MS = 500;
const TAKE_OVER_MS = 30_000;

/** The manager that leads, and under which epoch. */
async function leaderOf(bus: JetStreamBus, fleet: Fleet) {
  return await eventually(TAKE_OVER_MS, "a manager leads", async () => {
    const known = await lastEpoch(bus, "interruptions");
    const leader = fleet.members.find(({ instance }) => instance === known?.instance);
    return known && leader && { ...known, leader };
  });
}

test(`a manager stopped at the end of a grace, ${RUNS} runs: nothing that was saved times out`, async (t) => {
  const seed = chaosSeed();
  t.diagnostic(`repeat with ${repeatCommand(seed, FILE)}`);
  const chance = seededRandom(seed);
  await using server = await startNatsServer();
  const { url } = server;
  await using sender = await Sender.open(url, "acme");
  await using coordinators = await Fleet.open({ url, leaseTtlMs: LEASE_MS });
  await using managers = await Fleet.open({
    url,
    leaseTtlMs: LEASE_MS,
    domain: "interruptions",
  });
  await coordinators.start().until("leading");
  managers.keep(2);
  const say = async (source: string, type: string, id: string, more = {}): Promise<void> => {
    const answer = await sender.send(envelope(source, type, id, more));
    assert.equal(answer.type, "event.acknowledged", `${type} ${id} ${JSON.stringify(answer)}`);
  };
  /** Runs in which the end of a grace fell into the pause, and was judged by the successor. */
  let struck = 0;
  for (let run = 0; run < RUNS; run += 1) {
    const ids = Array.from({ length: TASKS }, (_, index) => `run-${run}-${index}`);
    const { leader, epoch } = await leaderOf(sender.bus, managers);
    await eventually(TAKE_OVER_MS, "another one stands by", () =>
      managers.members.some((member) => member !== leader && member.isWarm) ? true : undefined,
    );
    await Promise.all(
      ids.map(async (id) => {
        await say(BOSS, "task.submitted", id, { target: WORKER });
        await say(WORKER, "task.started", id);
      }),
    );
    const requested = ids.map((id) =>
      envelope(BOSS, "interruption.requested", id, {
        interruption_policy: "save_and_stop",
        payload: { grace_period_ms: GRACE_MS },
      }),
    );
    const dues = await Promise.all(
      requested.map(async (one) => (await sender.post(one)) + GRACE_MS),
    );
    await Promise.all(ids.map((id) => say(WORKER, "interruption.acknowledged", id)));
    const stopAt = Math.min(...dues) - 50 - chance() * (BEFORE_MS - 50);
    await pass(Math.max(0, stopAt - Date.now()));
    leader.signal("SIGSTOP");
    const saved = ids.map((id) =>
      envelope(WORKER, "interruption.saved", id, {
        checkpoint_id: `ck-${id}`,
        checkpoint_at: "2026-11-30T10:00:00Z",
      }),
    );
    const stored = await Promise.all(saved.map((one) => sender.post(one)));
    const inTime = ids.filter((_, index) => (stored[index] ?? 0) < (dues[index] ?? 0));
    const next = await successor(sender.bus, managers, leader, epoch);
    leader.signal("SIGCONT");
    for (const [index, id] of ids.entries()) {
      const answer = await sender.send(saved[index] ?? envelope(WORKER, "", id));
      if (!inTime.includes(id)) continue;
      assert.equal(answer.type, "event.acknowledged", `${id} ${JSON.stringify(answer)}`);
      await say(BOSS, "interruption.resumed", id, { checkpoint_id: `ck-${id}` });
      await say(WORKER, "task.completed", id);
    }
    if (next > epoch && inTime.length > 0) struck += 1;
  }
  const { stops, tasks } = await untilBothSettled(sender.bus, 30_000);
  const done = eventsOf(tasks).filter(({ envelope: { type } }) => type === "task.completed");
  const epochs = eventsOf(stops).map(({ epoch }) => epoch);
  assert.ok(struck > 0, "no grace ended while the manager was stopped");
  assert.deepEqual([...coordinators.failures, ...managers.failures], []);
  t.diagnostic(
    `${server.version}: in ${struck} of ${RUNS} runs another manager judged what was saved; ` +
      `${done.length} of ${RUNS * TASKS} tasks saved in time, each went on; ${new Set(epochs).size} epochs`,
  );
});

/** Waits until another process leads; the epoch of that. */
async function successor(
  bus: JetStreamBus,
  fleet: Fleet,
  stopped: ServiceProcess,
  epoch: number,
): Promise<number> {
  return await eventually(TAKE_OVER_MS, "another manager leads", async () => {
    const known = await lastEpoch(bus, "interruptions");
    const isOther = known !== undefined && known.epoch > epoch;
    const isThere = fleet.members.some((member) => member !== stopped);
    return isOther && isThere ? known.epoch : undefined;
  });
}
