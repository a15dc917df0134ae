/** Replays by a read on three copies: the log's leader steps down in the middle of them, and they are whole. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { connectBus, type JetStreamBus } from "@harmovela/bus";
import { type Agent, connect, type Observation } from "@harmovela/client";
import { createCoordinator } from "@harmovela/delegation-coordinator";
import { HarmovelaError, type JsonObject } from "@harmovela/failure";
import { openService } from "@harmovela/host";
import { startNatsCluster } from "@harmovela/testkit";
import pino from "pino";
import { eventually, within } from "./deadline.ts";
import { readRecords } from "./stored-log.ts";

const DEADLINE_MS = 60_000;
const LOG = "HV_LOG_TASKS";
const TASKS = 60;
/** So that many pages are needed, and the leader changes between two of them. */
const PAGE_ENTRIES = 10;

interface Page {
  entries: { seq: number; subject: string }[];
  next: string;
  end: string;
}

/** Who leads the log; undefined while nobody does. */
async function leaderOf(bus: JetStreamBus): Promise<string | undefined> {
  try {
    const answer = await bus.nats.request(`$JS.API.STREAM.INFO.${LOG}`, "", { timeout: 1_000 });
    return answer.json<{ cluster?: { leader?: string } }>().cluster?.leader || undefined;
  } catch {
    // The servers are agreeing on one.
    return undefined;
  }
}

/** Another copy leads when it has resolved. */
async function stepDown(bus: JetStreamBus): Promise<void> {
  const before = await eventually(DEADLINE_MS, "somebody leads the log", () => leaderOf(bus));
  await eventually(DEADLINE_MS, "another copy leads the log", async () => {
    const now = await leaderOf(bus);
    if (now !== undefined && now !== before) return now;
    // Asked again when the copies have chosen the same one once more.
    if (now === before) bus.nats.publish(`$JS.API.STREAM.LEADER.STEPDOWN.${LOG}`, "");
    return undefined;
  });
}

async function work(agent: Agent, description: string): Promise<void> {
  const handle = await agent.submit({ target: agent.name, description });
  await handle.accept();
  await handle.start();
  await handle.complete();
}

/** One page; who cannot be answered while the copies agree asks again. */
async function page(agent: Agent, from: string): Promise<Page> {
  return eventually(DEADLINE_MS, `the page after ${from}`, async () => {
    try {
      const { result } = await agent.read("tasks", "replay", { from, max: PAGE_ENTRIES });
      return result as JsonObject as unknown as Page;
    } catch (error) {
      if (error instanceof HarmovelaError && error.retry !== "never") return undefined;
      throw error;
    }
  });
}

async function take(observation: Observation, count: number): Promise<string[]> {
  const cursors: string[] = [];
  while (cursors.length < count) {
    const { value } = await within(DEADLINE_MS, `entry ${cursors.length}`, observation.next());
    cursors.push(value?.cursor ?? "");
  }
  return cursors;
}

test("three copies: a replay goes on over a leader that steps down, misses nothing and tells nothing twice", async () => {
  await using cluster = await startNatsCluster();
  await using operator = await connectBus({ servers: cluster.urls, name: "operator" });
  const service = await openService(createCoordinator(), {
    servers: cluster.urls,
    version: "0.0.0",
    logger: pino({ level: "silent" }),
    replicas: 3,
  });
  const options = { servers: cluster.urls, access: "services" } as const;
  await using worker = await connect({ ...options, agent: "agent:worker" });
  await using reader = await connect({ ...options, agent: "agent:reader" });
  try {
    await service.host.untilLeading();
    await Promise.all(Array.from({ length: TASKS }, (_, at) => work(worker, `before ${at}`)));
    const observed = reader.subscribe({ domains: ["tasks"], from: "start", maxBuffered: 16 });
    const heard = await take(observed, TASKS);

    const read: number[] = [];
    let from = "start";
    let changed: Promise<unknown> | undefined;
    for (let pages = 1; ; pages += 1) {
      const { entries, next, end } = await page(reader, from);
      read.push(...entries.map(({ seq }) => seq));
      from = next;
      if (pages === 5)
        changed = Promise.all([
          stepDown(operator),
          ...Array.from({ length: TASKS / 6 }, (_, at) => work(worker, `meanwhile ${at}`)),
        ]);
      if (next !== end || changed === undefined) continue;
      await within(DEADLINE_MS, "another leader, and what was said meanwhile", changed);
      const last = await page(reader, from);
      if (last.entries.length === 0 && last.next === last.end) break;
      read.push(...last.entries.map(({ seq }) => seq));
      from = last.next;
    }

    const stored = (await readRecords(operator, "tasks"))
      .filter(({ subject }) => subject.startsWith("hv.default.log."))
      .map(({ seq }) => seq);
    assert.equal(stored.length, 4 * (TASKS + TASKS / 6));
    assert.deepEqual(read, stored);
    heard.push(...(await take(observed, stored.length - heard.length)));
    assert.deepEqual(
      heard,
      stored.map((seq) => `${LOG}:${seq}`),
    );
    await observed.close();
  } finally {
    await service.close();
  }
});
