/** A decider whose state is that of the logs it observes is told how far they are folded and where they begin. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Bus, logStream } from "@harmovela/bus";
import type { Decider, Domain, DomainEntry } from "@harmovela/envelope";
import { startNatsServer } from "@harmovela/testkit";
import { altered } from "./altered.ts";
import {
  type Counter,
  envelope,
  eventually,
  type HostedOptions,
  openCounter,
  openHosted,
  openSender,
  readLog,
} from "./harness.ts";

interface WatchState {
  first: Partial<Record<Domain, number>>;
  seen: number;
}

function createWatcher(): Decider<WatchState> {
  return {
    initial: () => ({ first: {}, seen: 0 }),
    snapshots: { version: 1, classes: {} },
    decide: (_state, { envelope: sent }) => ({ accept: sent }),
    evolve: (state, entry: DomainEntry) => {
      if (entry.kind === "observed") state.first = { ...state.first, ...entry.first };
    },
    observe: (state) => {
      state.seen += 1;
    },
    owed: () => undefined,
    firstKnown: ({ first }) => first,
  };
}

function openWatcher(url: string, more: Partial<HostedOptions<WatchState>> = {}): Promise<Counter> {
  return openHosted<WatchState>(url, {
    decider: createWatcher(),
    service: "service:watcher",
    domain: "provenance",
    observes: ["tasks"],
    observedEveryMs: 20,
    ...more,
  });
}

const TASKS = logStream("tasks");

describe("what is observed", () => {
  test("is told of when a log has lost its beginning, once each time", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    await using tasks = await openCounter(server.url);
    await tasks.host.untilLeading();
    await using watcher = await openWatcher(server.url);
    await watcher.host.untilLeading();
    for (let n = 0; n < 6; n += 1) await sender.send(envelope("task.progress"));
    const told = async () =>
      (await readLog(sender.bus, "provenance")).flatMap((entry) =>
        entry.kind === "observed" && entry.first.tasks !== undefined ? [entry.first.tasks] : [],
      );
    for (const first of [3, 5]) {
      await eventually(() => ((watcher.host.status().seen.tasks ?? 0) >= first ? true : undefined));
      await sender.bus.trim(TASKS, first);
      await eventually(async () => ((await told()).includes(first) ? true : undefined));
    }
    assert.deepEqual(await told(), [3, 5]);
    assert.deepEqual(watcher.host.status().alarms, []);
    const [first] = (await readLog(sender.bus, "tasks")).filter(({ kind }) => kind === "event");
    for (const { kind, at } of await readLog(sender.bus, "provenance")) {
      assert.ok(kind === "epoch" || at >= (first?.at ?? 0), `${kind} is dated ${at}`);
    }
  });

  test("is told of after many entries, so that a standby follows and a start is short", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    await using tasks = await openCounter(server.url);
    await tasks.host.untilLeading();
    await using leader = await openWatcher(server.url);
    await leader.host.untilLeading();
    await using standby = await openWatcher(server.url);
    for (let n = 0; n < 1_100; n += 1) await sender.post(envelope("task.progress"));
    const seen = await eventually(() => {
      const { seen: positions, role } = standby.host.status();
      return role === "standby" && (positions.tasks ?? 0) >= 1_000 ? positions.tasks : undefined;
    });
    assert.ok(seen >= 1_000);
  });

  test("that lacks entries in its middle is an alarm, and nothing is told of it", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    await using tasks = await openCounter(server.url);
    await tasks.host.untilLeading();
    let missing = 0;
    const around = (bus: Bus): Bus =>
      altered(bus, {
        streamState: async (name) => {
          const state = await bus.streamState(name);
          if (state === undefined || name !== TASKS) return state;
          return { ...state, messages: state.messages - missing };
        },
      });
    await using watcher = await openWatcher(server.url, { around });
    await watcher.host.untilLeading();
    for (let n = 0; n < 4; n += 1) await sender.send(envelope("task.progress"));
    assert.deepEqual(watcher.host.status().alarms, []);
    missing = 2;
    const alarm = await eventually(() => watcher.host.status().alarms[0]);
    assert.match(alarm.alarm, /the log of tasks lacks 2 entries .* no retention removes these/);
    const log = await readLog(sender.bus, "provenance");
    assert.ok(!log.some((entry) => entry.kind === "observed" && entry.first.tasks !== undefined));
  });
});

test("who does not ask for it is told nothing", async () => {
  await using server = await startNatsServer();
  await using sender = await openSender(server.url);
  await using tasks = await openCounter(server.url, { observedEveryMs: 1 });
  await tasks.host.untilLeading();
  await sender.send(envelope("task.progress"));
  assert.ok(!(await readLog(sender.bus, "tasks")).some(({ kind }) => kind === "observed"));
});
