/** Stop and go on while whoever has a part in it is killed at every step: nothing is lost, done twice or forgotten. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as pass } from "node:timers/promises";
import { HEADER } from "@harmovela/bus";
import type { StoredRecord } from "@harmovela/check";
import type { Envelope } from "@harmovela/envelope";
import { type NatsServer, startNatsServer } from "@harmovela/testkit";
import { type BothLogs, untilBothSettled } from "./both-logs.ts";
import { Fleet } from "./fleet.ts";
import type { KillOrder } from "./kill-order.ts";
import { chaosSeed, repeatCommand, seededRandom } from "./seeded.ts";
import { type Answer, envelope, Sender } from "./sender.ts";
import { controlsOf, eventsOf } from "./stored-log.ts";
import { TaskTail } from "./task-tail.ts";
import type { WorkerKill } from "./worker-process.ts";
import { Workers } from "./workers.ts";

const FILE = "test/chaos/interruption.chaos.test.ts";
/** Rounds of a few tasks each; 200 for the long run. */
const ROUNDS = Number(process.env.HARMOVELA_CHAOS_ROUNDS ?? 10);
const TENANT = "acme";
const BOSS = "agent:boss";
const WORKER = "agent:worker";
const TASKS = 4;
/** Interruptions of each task that the planner asks for. */
const TURNS = 2;
const ROUNDS_AT_ONCE = 3;
/** Short ones pass while nobody leads, long ones do not. */
const GRACES_MS = [100, 8_000, 8_000, 8_000];
/** Nobody takes it up any more; on a machine that does much else a life of a service takes seconds. */
const STUCK_MS = 90_000;
const SETTLE_MS = 60_000;

type ServiceKill = Pick<KillOrder, "point" | "type">;

const at = (type: string): ServiceKill[] =>
  (["before", "published", "acked", "released"] as const).map((point) => ({ point, type }));

/** Every step of save and resume, and of what the manager asks for. */
const MANAGER_KILLS: readonly ServiceKill[] = [
  ...at("interruption.requested"),
  ...at("interruption.acknowledged"),
  ...at("interruption.saved"),
  ...at("interruption.resumed"),
  { point: "verdict" },
  { point: "request" },
  { point: "requested" },
];

const COORDINATOR_KILLS: readonly ServiceKill[] = [
  ...at("task.progress"),
  ...at("task.failed"),
  { point: "verdict" },
];

const WORKER_KILLS: readonly Omit<WorkerKill, "n">[] = [
  "interruption.acknowledged",
  "checkpoint",
  "interruption.saved",
  "task.progress",
].flatMap((type) => (["before", "stored"] as const).map((point) => ({ at: type, point })));

/** A worker that dies takes several jobs with it: it lives longer than a service. */
const WORKER_OCCASIONS = 12;

/** What makes the test kill the server: the next such event that it sees. */
const SERVER_KILLS = ["interruption.saved", "interruption.resumed", "interruption.requested"];

/** Each kind in turn, at one of its first occasions. */
function orders<Kill extends object>(
  kills: readonly Kill[],
  chance: () => number,
  occasions = 4,
): () => Kill & { n: number; tenant: string } {
  let next = Math.floor(chance() * kills.length);
  return () => {
    next += 1;
    const kill = kills[next % kills.length] ?? kills[0];
    assert.ok(kill);
    return { ...kill, n: 1 + Math.floor(chance() * occasions), tenant: TENANT };
  };
}

/** The agent that gives work away, stops it and lets it go on. */
class Planner {
  readonly #sender: Sender;
  readonly #tail: TaskTail;
  readonly #chance: () => number;
  readonly answers: { sent: Envelope; answer: Answer }[] = [];
  /** Tasks that nobody went on with: it gave them up. */
  readonly abandoned: string[] = [];

  constructor(sender: Sender, tail: TaskTail, chance: () => number) {
    this.#sender = sender;
    this.#tail = tail;
    this.#chance = chance;
  }

  /** Tasks below a root of their own; resolves when all have ended. */
  async round(number: number): Promise<void> {
    const root = `round-${number}`;
    await this.#say(envelope(BOSS, "task.submitted", root));
    await this.#say(envelope(BOSS, "task.started", root));
    const ids = Array.from({ length: TASKS }, (_, index) => `${root}-${index}`);
    await Promise.all(ids.map((id) => this.#see(root, id)));
    await this.#say(envelope(BOSS, "task.completed", root));
  }

  async #see(root: string, id: string): Promise<void> {
    const parties = { delegated_by: BOSS, delegated_to: WORKER, parent_task_id: root };
    await this.#say(envelope(BOSS, "delegation.requested", id, { target: WORKER, ...parties }));
    const news = this.#tail.of(id);
    for (let turn = 0; news.ended === undefined; ) {
      const { count } = news;
      if (news.saved !== undefined) {
        await pass(this.#chance() * 200);
        const checkpoint_id = news.saved;
        await this.#say(envelope(BOSS, "interruption.resumed", id, { checkpoint_id }));
      } else if (news.isStarted && turn < TURNS) {
        turn += 1;
        await pass(this.#chance() * 400);
        await this.#interrupt(id);
      }
      if (news.count > count || (await this.#tail.change(id, STUCK_MS))) continue;
      this.abandoned.push(id);
      await this.#say(envelope(BOSS, "task.cancelled", id));
    }
  }

  async #interrupt(id: string): Promise<void> {
    const policies = ["save_and_stop", "drain_then_stop"] as const;
    const interruption_policy = policies[Math.floor(this.#chance() * 2)] ?? "save_and_stop";
    const grace_period_ms = GRACES_MS[Math.floor(this.#chance() * GRACES_MS.length)] ?? 0;
    const payload = { grace_period_ms };
    const more = { interruption_policy, payload };
    await this.#say(envelope(BOSS, "interruption.requested", id, more));
  }

  async #say(sent: Envelope): Promise<void> {
    this.answers.push({ sent, answer: await this.#sender.send(sent, 120_000) });
  }
}

/** Kills the server at an event that it sees, now and then. */
class ServerKiller {
  readonly #server: NatsServer;
  readonly #order: () => { type: string; n: number };
  #next: { type: string; n: number } | undefined;
  #under: Promise<void> = Promise.resolve();
  killed = 0;

  constructor(server: NatsServer, order: () => { type: string; n: number }) {
    this.#server = server;
    this.#order = order;
  }

  arm(): void {
    this.#next ??= this.#order();
  }

  see({ type }: Envelope): void {
    if (this.#next?.type !== type || --this.#next.n > 0) return;
    this.#next = undefined;
    this.killed += 1;
    this.#under = this.#under.then(async () => {
      await this.#server.kill();
      await this.#server.restart();
    });
  }

  /** It will not be killed any more, and runs. */
  async rest(): Promise<void> {
    this.#next = undefined;
    await this.#under;
  }
}

test(`stop and go on, ${ROUNDS} rounds of ${TASKS} tasks, kill -9 at every step`, async (t) => {
  const seed = chaosSeed();
  t.diagnostic(`repeat with ${repeatCommand(seed, FILE)}`);
  const chance = seededRandom(seed);
  const startedAt = performance.now();
  await using server = await startNatsServer();
  const { url } = server;
  await using sender = await Sender.open(url, TENANT);
  const services = { url, leaseTtlMs: 600, isLeaseFreed: true };
  const settings = { orphanedTasks: "interrupt", saveGraceMs: 3_000 };
  await using coordinators = await Fleet.open({ ...services, settings });
  await using managers = await Fleet.open({ ...services, domain: "interruptions", settings });
  const first = [coordinators.start(), managers.start()];
  for (const each of first) await each.until("leading");
  const serverKill = orders(
    SERVER_KILLS.map((type) => ({ type })),
    chance,
  );
  const killer = new ServerKiller(server, serverKill);
  await using tail = new TaskTail(sender.bus, (event) => killer.see(event));
  const planner = new Planner(sender, tail, chance);
  const heartbeatMs = 600;
  const config = { url, tenant: TENANT, agent: WORKER, heartbeatMs, steps: 8, stepMs: 50 };
  const workers = await Workers.open(config);
  {
    await using _running = workers;
    managers.keep(2, orders(MANAGER_KILLS, chance));
    coordinators.keep(2, orders(COORDINATOR_KILLS, chance));
    workers.keep(2, orders(WORKER_KILLS, chance, WORKER_OCCASIONS));
    for (const each of first) await each.kill();
    let next = 0;
    const lane = async (): Promise<void> => {
      while (next < ROUNDS) {
        next += 1;
        if (next % 3 === 0) killer.arm();
        await planner.round(next);
      }
    };
    await Promise.all(Array.from({ length: ROUNDS_AT_ONCE }, lane));
    await killer.rest();
  }
  assert.deepEqual(workers.failures, []);
  const { acked } = workers;
  const logs = await untilBothSettled(sender.bus, SETTLE_MS);
  assertAnswered(logs, planner, acked);
  const counts = countStops(logs);
  const down = dueWhileDown(logs.stops);
  assert.ok(counts.resumed > 0 && counts.expired > 0, JSON.stringify(counts));
  assert.deepEqual(planner.abandoned, [], "nobody went on with them");
  assert.ok(down > 0, "no due time fell into a down time");
  assert.deepEqual([...coordinators.failures, ...managers.failures], []);
  t.diagnostic(
    `${server.version}: killed ${managers.killed} managers, ${coordinators.killed} coordinators, ` +
      `${workers.executed.length} workers, ${killer.killed} servers, at ` +
      `${pointsOf(managers.executed, coordinators.executed, workers.executed)} of ` +
      `${MANAGER_KILLS.length + COORDINATOR_KILLS.length + WORKER_KILLS.length} points; ` +
      `${JSON.stringify(counts)}, ` +
      `${down} due times fell into a down time, ` +
      `${acked.size + planner.answers.length} verdicts, ` +
      `${((performance.now() - startedAt) / 1000).toFixed(1)} s`,
  );
});

/** At how many different points somebody was killed. */
function pointsOf(
  managers: readonly KillOrder[],
  coordinators: readonly KillOrder[],
  workers: readonly WorkerKill[],
): number {
  const name = ({ point, type = "" }: KillOrder): string => `${point} ${type}`;
  return (
    new Set(managers.map(name)).size +
    new Set(coordinators.map(name)).size +
    new Set(workers.map(({ at: type, point }) => `${point} ${type}`)).size
  );
}

/** What was acknowledged is in its log once; what was refused is not. */
function assertAnswered(
  { tasks, stops }: BothLogs,
  { answers }: Planner,
  acked: ReadonlyMap<string, string>,
): void {
  const times = new Map<string, number>();
  for (const { envelope: logged } of [...eventsOf(tasks), ...eventsOf(stops)]) {
    times.set(logged.id, (times.get(logged.id) ?? 0) + 1);
  }
  for (const { sent, answer } of answers) {
    const wanted = answer.type === "event.acknowledged" ? 1 : 0;
    assert.equal(times.get(sent.id) ?? 0, wanted, `${sent.type} of ${sent.task_id}`);
  }
  for (const [id, cursor] of acked) assert.equal(times.get(id), 1, `${id} at ${cursor}`);
}

function countStops({ stops, tasks }: BothLogs) {
  const count = (records: StoredRecord[], isIt: (event: Envelope) => boolean): number =>
    eventsOf(records).filter(({ envelope: event }) => isIt(event)).length;
  const ofType = (type: string) => (event: Envelope) => event.type === type;
  return {
    requested: count(stops, ofType("interruption.requested")),
    saved: count(stops, ofType("interruption.saved")),
    resumed: count(stops, ofType("interruption.resumed")),
    expired: count(stops, isExpiry),
    completed: count(tasks, ofType("task.completed")),
    failed: count(tasks, ofType("task.failed")),
    refusedWork: count(
      tasks,
      ({ type, payload }) =>
        type === "event.rejected" && JSON.stringify(payload).includes('"interruption"'),
    ),
  };
}

const isExpiry = ({ payload }: Envelope): boolean =>
  (payload as { expired?: unknown }).expired === true;

/** Graces that ended while nobody led: whoever wrote their end began to lead after it. */
function dueWhileDown(stops: StoredRecord[]): number {
  const begun = new Map(controlsOf(stops, "epoch").map(({ seq }) => [seq, timeOf(stops, seq)]));
  return eventsOf(stops).filter(({ envelope: event, epoch, seq }) => {
    const due = Number(stops.find((record) => record.seq === seq)?.headers[HEADER.at]);
    return isExpiry(event) && (begun.get(epoch) ?? 0) > due;
  }).length;
}

function timeOf(records: StoredRecord[], seq: number): number {
  return records.find((record) => record.seq === seq)?.time ?? 0;
}
