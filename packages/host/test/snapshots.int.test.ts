/** Snapshots and trimming (architecture, section 6), on a real server. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Blobs, type Bus, logStream } from "@harmovela/bus";
import type { JsonObject } from "@harmovela/failure";
import { startNatsServer } from "@harmovela/testkit";
import { altered, Gate } from "./altered.ts";
import { type CounterState, createCounterDecider, describeCounter } from "./counter-decider.ts";
import {
  ask,
  type Counter,
  envelope,
  eventually,
  type HostedOptions,
  openCounter,
  openObserver,
  openSender,
  type Sender,
} from "./harness.ts";

const LOG = logStream("tasks");
const EVERY = 20;

const reads: HostedOptions<CounterState>["reads"] = { state: (state) => describeCounter(state) };
const options = { snapshotEntries: EVERY, reads };

const blobsOf = ({ bus }: Sender): Blobs => bus.openBlobs({ replicas: 1 });

async function names(sender: Sender): Promise<string[]> {
  return (await blobsOf(sender).list()).map(({ name }) => name);
}

async function stateOf(sender: Sender): Promise<JsonObject> {
  const { result } = await ask(sender, "state");
  return result as JsonObject;
}

/** Traffic of every kind, until so many snapshots were stored. */
async function untilSnapshots(sender: Sender, counter: Counter, count: number): Promise<void> {
  for (let n = 0; (counter.host.status().counters.snapshots ?? 0) < count; n += 1) {
    assert.ok(n < 2_000, "no snapshot was taken");
    const task = `t${n}`;
    await sender.send(envelope("task.progress", { task_id: task }));
    await sender.send(
      envelope("task.submitted", { task_id: task, payload: { timeout_ms: 3_600_000 + n } }),
    );
    await sender.send(envelope("task.completed", { task_id: task }));
  }
  await eventually(() => (counter.host.status().isSettled ? true : undefined));
}

async function stop(counter: Counter): Promise<void> {
  await counter[Symbol.asyncDispose]();
}

describe("snapshots", () => {
  test("a start goes on from the newest one, and its state is that of a full fold", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    const first = await openCounter(server.url, options);
    await first.host.untilLeading();
    await untilSnapshots(sender, first, 3);
    const known = await stateOf(sender);
    await stop(first);
    assert.equal((await names(sender)).length, 2, "older ones are removed");
    {
      // Without them the whole log is folded.
      const kept = await blobsOf(sender).list();
      const saved = await Promise.all(kept.map(({ name }) => blobsOf(sender).get(name)));
      for (const { name } of kept) await blobsOf(sender).remove(name);
      await using full = await openCounter(server.url, { ...options, snapshotEntries: 1e9 });
      await full.host.untilLeading();
      assert.deepEqual(await stateOf(sender), known);
      await Promise.all(
        kept.map(({ name, notes }, at) =>
          blobsOf(sender).put(name, saved[at] ?? new Uint8Array(0), { ...notes }),
        ),
      );
    }
    const position = Number((await names(sender)).at(0)?.split(".")[1]);
    await sender.bus.trim(LOG, position);
    await using again = await openCounter(server.url, options);
    await again.host.untilLeading();
    assert.deepEqual(await stateOf(sender), known);
    await sender.send(envelope("task.progress"));
  });

  test("a clean stop leaves one of all that is stored; a kill needs none", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    const counter = await openCounter(server.url);
    await counter.host.untilLeading();
    for (let n = 0; n < 5; n += 1) await sender.send(envelope("task.progress"));
    assert.deepEqual(await names(sender), []);
    await stop(counter);
    const { lastSeq } = (await sender.bus.streamState(LOG)) ?? { lastSeq: 0 };
    assert.deepEqual(await names(sender), [`tasks.${String(lastSeq).padStart(16, "0")}`]);
  });

  test("an unusable one is named and passed over; what is older does", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    const first = await openCounter(server.url, options);
    await first.host.untilLeading();
    await untilSnapshots(sender, first, 2);
    const known = await stateOf(sender);
    await stop(first);
    const newest = (await blobsOf(sender).list()).at(-1);
    assert.ok(newest);
    await blobsOf(sender).put(newest.name, Buffer.from("garbage"), { ...newest.notes });
    await using again = await openCounter(server.url, options);
    await again.host.untilLeading();
    assert.deepEqual(await stateOf(sender), known);
    const { alarms } = again.host.status();
    assert.match(alarms[0]?.alarm ?? "", new RegExp(`unusable snapshot ${newest.name}`));
  });

  test("one of another version is not used; a log that starts above the usable ones is refused", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    const first = await openCounter(server.url, options);
    await first.host.untilLeading();
    await untilSnapshots(sender, first, 2);
    const known = await stateOf(sender);
    await stop(first);
    const decider = { ...createCounterDecider(), snapshots: { version: 2, classes: {} } };
    {
      await using newer = await openCounter(server.url, { ...options, decider });
      await newer.host.untilLeading();
      assert.deepEqual(await stateOf(sender), known, "by a full fold");
      assert.match(newer.host.status().alarms[0]?.alarm ?? "", /of version 1\.1, not 1\.2/);
    }
    for (const { name, notes } of await blobsOf(sender).list()) {
      if (notes.title?.includes('"version":2')) await blobsOf(sender).remove(name);
    }
    await sender.bus.trim(LOG, 10);
    await using refused = await openCounter(server.url, { ...options, decider });
    await assert.rejects(refused.host.untilLeading(), /HV_LOG_TASKS begins with 10, and no usable/);
  });

  test("one that is not stored as it was written does not count", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    let lies = 2;
    const around = (bus: Bus): Bus =>
      altered(bus, {
        openBlobs: (which) => {
          const blobs = bus.openBlobs(which);
          return altered(blobs, {
            put: (name, data, notes) => {
              const lie = name.startsWith("tasks.") && lies-- > 0;
              return blobs.put(name, lie ? data.slice(0, -1) : data, notes);
            },
          });
        },
      });
    const hurried = { ...options, around };
    for (const count of [1, 2]) {
      await using counter = await openCounter(server.url, hurried);
      await counter.host.untilLeading();
      for (let n = 0; n < EVERY; n += 1) await sender.send(envelope("task.progress"));
      await eventually(() =>
        counter.host.status().alarms.some(({ alarm }) => /not stored as it was written/.test(alarm))
          ? true
          : undefined,
      );
      assert.equal(counter.host.status().counters.snapshots, 0, `attempt ${count}`);
      lies = count === 1 ? 2 : 0;
    }
  });

  test("nothing that was never stored is in one", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    const gate = new Gate();
    const first = await openCounter(server.url, { ...options, around: gate.around });
    await first.host.untilLeading();
    gate.isHolding = true;
    for (let n = 0; n < 3 * EVERY; n += 1) await sender.post(envelope("task.progress"));
    await eventually(() => (gate.held > 2 * EVERY ? true : undefined));
    assert.equal(first.host.status().counters.snapshots, 0);
    assert.deepEqual(await names(sender), []);
    gate.lose();
    await using other = await openCounter(server.url, options);
    await first.host.close();
    await other.host.untilLeading();
    await eventually(() => (other.host.status().isSettled ? true : undefined));
    assert.deepEqual((await stateOf(sender)).counts, { "acme/agent:a": 3 * EVERY });
    await stop(first);
  });
});

describe("trimming", () => {
  const short = { ...options, retentionMs: 0 };

  test("what is old and below the second newest snapshot goes, and the service goes on", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    {
      await using counter = await openCounter(server.url, short);
      await counter.host.untilLeading();
      await untilSnapshots(sender, counter, 1);
      assert.equal((await sender.bus.streamState(LOG))?.firstSeq, 1, "one snapshot is none");
      await untilSnapshots(sender, counter, 3);
      await eventually(async () =>
        ((await sender.bus.streamState(LOG))?.firstSeq ?? 0) > EVERY ? true : undefined,
      );
    }
    const [second] = await names(sender);
    const { firstSeq } = (await sender.bus.streamState(LOG)) ?? { firstSeq: 0 };
    assert.ok(firstSeq <= Number(second?.split(".")[1]), `${firstSeq} ${second}`);
    await using again = await openCounter(server.url, short);
    await again.host.untilLeading();
    await sender.send(envelope("task.progress"));
  });

  test("what is not old enough stays", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    await using counter = await openCounter(server.url, { ...options, retentionMs: 3_600_000 });
    await counter.host.untilLeading();
    await untilSnapshots(sender, counter, 4);
    assert.equal((await sender.bus.streamState(LOG))?.firstSeq, 1);
  });

  test("an observer that has not seen it, or may not know it any more, keeps it", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    await using counter = await openCounter(server.url, short);
    await counter.host.untilLeading();
    {
      await using silent = await openObserver(server.url);
      await silent.host.untilLeading();
      await untilSnapshots(sender, counter, 4);
    }
    assert.equal((await sender.bus.streamState(LOG))?.firstSeq, 1, "it has no two snapshots");
    const first = await openObserver(server.url, { snapshotEntries: 1 });
    await first.host.untilLeading();
    for (let n = 0; n < 4; n += 1) {
      await sender.send(envelope("belief.asserted", { payload: belief(n) }));
      await eventually(() =>
        (first.host.status().counters.snapshots ?? 0) > n ? true : undefined,
      );
    }
    const seen = first.host.status().seen.tasks ?? 0;
    await stop(first);
    const before = counter.host.status().counters.snapshots ?? 0;
    await untilSnapshots(sender, counter, before + 3);
    const trimmed = await eventually(async () => {
      const state = await sender.bus.streamState(LOG);
      return state !== undefined && state.firstSeq > 1 ? state.firstSeq : undefined;
    });
    assert.ok(trimmed <= seen, `${trimmed} is above what the observer has seen, ${seen}`);
    await using again = await openObserver(server.url);
    await again.host.untilLeading();
    await sender.send(envelope("belief.asserted", { payload: belief(9) }));
    assert.ok((again.host.status().seen.tasks ?? 0) > seen);
  });

  test("an observer that misses what was trimmed is refused; one that is new begins where the log does", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    await using counter = await openCounter(server.url, options);
    await counter.host.untilLeading();
    {
      await using old = await openObserver(server.url);
      await old.host.untilLeading();
      await sender.send(envelope("task.progress"));
      await sender.send(envelope("belief.asserted", { payload: belief(1) }));
    }
    await untilSnapshots(sender, counter, 1);
    await sender.bus.trim(LOG, EVERY);
    await using behind = await openObserver(server.url);
    await assert.rejects(
      behind.host.done,
      /cannot fold HV_LOG_TASKS:20: the log goes from \d+ to 20/,
    );
    await using fresh = await openObserver(server.url, { domain: "provenance" });
    await fresh.host.untilLeading();
    await eventually(() => (fresh.host.status().seen.tasks ? true : undefined));
  });
});

function belief(n: number): JsonObject {
  return { subject: `s${n}`, value: n, confidence: 0.5 };
}
