/** Two services that observe each other and ask each other (architecture, sections 2 and 6), on a real server. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Bus, decodeEntry, intakeStream, logStream } from "@harmovela/bus";
import type { Decider, Envelope } from "@harmovela/envelope";
import { HarmovelaError, type JsonObject } from "@harmovela/failure";
import { startNatsServer } from "@harmovela/testkit";
import { altered } from "./altered.ts";
import {
  type Counter,
  envelope,
  eventually,
  type HostedOptions,
  openHosted,
  openSender,
  readLog,
  type Sender,
} from "./harness.ts";
import {
  createPeerDecider,
  describePeer,
  INTERRUPTIONS,
  type Peer,
  type PeerState,
  TASKS,
} from "./peer-decider.ts";

interface Opened extends AsyncDisposable {
  peer: Peer;
  counter: Counter;
  /** Of the newest fold. */
  state(): PeerState;
}

/** One of the two, with its state in sight. */
async function open(
  url: string,
  peer: Peer,
  more: Partial<HostedOptions<PeerState>> = {},
): Promise<Opened> {
  const inner = createPeerDecider(peer);
  let state = inner.initial();
  const keep = (fresh: PeerState): PeerState => {
    state = fresh;
    return fresh;
  };
  const decider: Decider<PeerState> = {
    ...inner,
    initial: () => keep(inner.initial()),
    snapshots: { version: 1, classes: {}, adopt: keep },
  };
  const { domain, other, service } = peer;
  const hosted = { decider, service, domain, observes: [other] };
  const counter = await openHosted<PeerState>(url, { ...hosted, ...more });
  const close = () => counter[Symbol.asyncDispose]();
  return { peer, counter, state: () => state, [Symbol.asyncDispose]: close };
}

async function lead(
  url: string,
  peer: Peer,
  more: Partial<HostedOptions<PeerState>> = {},
): Promise<Opened> {
  const opened = await open(url, peer, more);
  await opened.counter.host.untilLeading();
  return opened;
}

/** An event of an agent for one of them. */
function said(peer: Peer, payload: JsonObject = {}): Envelope {
  return envelope(peer.sent, { task_id: "t", payload });
}

function asking(peer: Peer, more: JsonObject = {}): Envelope {
  return said(peer, { ask: true, ...more });
}

async function outcomesOf(opened: Opened, ids: readonly string[]): Promise<(string | undefined)[]> {
  return eventually(() => {
    const { owed, outcomes } = opened.state();
    if (owed.size > 0 || !ids.every((id) => outcomes.has(id))) return undefined;
    return ids.map((id) => outcomes.get(id));
  });
}

/** How often each request stands in the intake of the one that was asked. */
async function requestsIn({ bus }: Sender, { domain }: Peer): Promise<number[]> {
  const stream = intakeStream(domain);
  const state = await bus.streamState(stream);
  const counts = new Map<string, number>();
  for (let seq = 1; seq <= (state?.lastSeq ?? 0); seq += 1) {
    const stored = await bus.read(stream, seq);
    assert.ok(stored);
    const { id, source } = JSON.parse(Buffer.from(stored.data).toString()) as Envelope;
    if (source.startsWith("service:")) counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  return [...counts.values()];
}

/** The state that the whole of both logs gives, folded from their beginning in a process of its own. */
async function foldedAnew(url: string, sender: Sender, peer: Peer): Promise<JsonObject> {
  const blobs = sender.bus.openBlobs({ replicas: 1 });
  for (const { name } of await blobs.list()) {
    if (name.startsWith(`${peer.domain}.`)) await blobs.remove(name);
  }
  await using fresh = await open(url, peer);
  const stored = await sender.bus.streamState(logStream(peer.domain));
  await eventually(() =>
    fresh.counter.host.status().position >= (stored?.lastSeq ?? 0) ? true : undefined,
  );
  return describePeer(fresh.state());
}

async function untilEven(sender: Sender, all: readonly Opened[]): Promise<void> {
  await eventually(async () => {
    for (const { peer, counter } of all) {
      const stored = await sender.bus.streamState(logStream(peer.domain));
      if (counter.host.status().position !== stored?.lastSeq) return undefined;
    }
    return true;
  });
}

describe("two services that observe each other", () => {
  test("each starts and works though the other has never run", async () => {
    for (const [first, second] of [
      [TASKS, INTERRUPTIONS],
      [INTERRUPTIONS, TASKS],
    ] as const) {
      await using server = await startNatsServer();
      await using sender = await openSender(server.url);
      await using alone = await lead(server.url, first);
      assert.equal((await sender.send(said(first))).type, "event.acknowledged");
      await using later = await lead(server.url, second);
      const question = asking(second);
      assert.equal((await sender.send(question)).type, "event.acknowledged");
      assert.deepEqual(await outcomesOf(later, [question.id]), ["accepted 1"]);
      assert.equal((await sender.send(said(first))).type, "event.acknowledged");
      assert.equal(alone.counter.host.status().failure, undefined);
    }
  });

  test("requests both ways come to their outcome: taken, refused for good, asked again when that helps", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    await using tasks = await lead(server.url, TASKS);
    await using interruptions = await lead(server.url, INTERRUPTIONS);
    for (const opened of [tasks, interruptions]) {
      const { peer } = opened;
      const questions = [
        asking(peer),
        asking(peer, { refusals: 2 }),
        asking(peer, { futile: true }),
        asking(peer, { refusals: 1 }),
      ];
      await Promise.all(questions.map((question) => sender.send(question)));
      const wanted = ["accepted 1", "accepted 3", "refused 1", "accepted 2"];
      const ids = questions.map(({ id }) => id);
      assert.deepEqual(await outcomesOf(opened, ids), wanted);
    }
    for (const peer of [TASKS, INTERRUPTIONS]) {
      assert.deepEqual(await requestsIn(sender, peer), [1, 1, 1, 1, 1, 1, 1], peer.domain);
    }
  });

  test("while the other one is down each request waits in its intake once, and all come to an outcome", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    await (await lead(server.url, INTERRUPTIONS))[Symbol.asyncDispose]();
    await using tasks = await lead(server.url, TASKS);
    const questions = Array.from({ length: 30 }, (_, n) => asking(TASKS, { refusals: n % 2 }));
    await Promise.all(questions.map((question) => sender.send(question)));
    await eventually(() =>
      tasks.counter.host.status().counters.requests === 30 ? true : undefined,
    );
    // It goes on judging; what it owes meanwhile is not asked again.
    for (let n = 0; n < 20; n += 1) await sender.send(said(TASKS));
    assert.deepEqual(await requestsIn(sender, INTERRUPTIONS), Array(30).fill(1));
    await using interruptions = await lead(server.url, INTERRUPTIONS);
    const outcomes = await outcomesOf(
      tasks,
      questions.map(({ id }) => id),
    );
    assert.equal(outcomes.filter((outcome) => outcome === "accepted 1").length, 15);
    assert.equal(outcomes.filter((outcome) => outcome === "accepted 2").length, 15);
    assert.deepEqual(await requestsIn(sender, INTERRUPTIONS), Array(45).fill(1));
    const taken = (await readLog(sender.bus, "interruptions")).flatMap((entry) =>
      entry.kind === "event" && entry.envelope.type === TASKS.type ? [entry.envelope.id] : [],
    );
    assert.equal(taken.length, 30);
    assert.equal(new Set(taken).size, 30);
    assert.equal(interruptions.counter.host.status().failure, undefined);
  });

  test("a replica that takes over asks for what is still owed, and nothing is taken twice", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    await (await lead(server.url, INTERRUPTIONS))[Symbol.asyncDispose]();
    await using former = await lead(server.url, TASKS);
    await using standby = await open(server.url, TASKS);
    const questions = Array.from({ length: 10 }, () => asking(TASKS));
    await Promise.all(questions.map((question) => sender.send(question)));
    await eventually(() =>
      former.counter.host.status().counters.requests === 10 ? true : undefined,
    );
    await former[Symbol.asyncDispose]();
    await standby.counter.host.untilLeading();
    await using interruptions = await lead(server.url, INTERRUPTIONS);
    const ids = questions.map(({ id }) => id);
    assert.deepEqual(await outcomesOf(standby, ids), Array(10).fill("accepted 1"));
    const taken = (await readLog(sender.bus, "interruptions")).filter(
      (entry) => entry.kind === "event" && entry.envelope.type === TASKS.type,
    );
    assert.equal(taken.length, 10);
    assert.equal(interruptions.counter.host.status().failure, undefined);
  });
});

describe("folds of two logs", () => {
  test("a leader that has read on and loses its lease folds like everybody else afterwards", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    let giveUp = async (): Promise<void> => {};
    const givingUp = (bus: Bus): Bus =>
      altered(bus, {
        openLease: (options) => {
          const lease = bus.openLease(options);
          giveUp = async () => {
            await lease.close();
            options.onLost();
          };
          return lease;
        },
      });
    /** Cannot see the other log's end, so it refuses everything: in entries that name what it had seen before. */
    const blind = (bus: Bus): Bus =>
      altered(bus, {
        streamState: (stream) =>
          stream === logStream("interruptions")
            ? Promise.reject(new HarmovelaError("internal_error", "x", { category: "dependency" }))
            : bus.streamState(stream),
      });
    await using interruptions = await lead(server.url, INTERRUPTIONS);
    await using former = await lead(server.url, TASKS, { around: givingUp });
    await sender.send(said(TASKS));
    for (let n = 0; n < 3; n += 1) await sender.send(said(INTERRUPTIONS));
    const stored = await sender.bus.streamState(logStream("interruptions"));
    const { host } = former.counter;
    await eventually(() =>
      host.status().seen.interruptions === stored?.lastSeq ? true : undefined,
    );
    await giveUp();
    {
      await using other = await lead(server.url, TASKS, { around: blind });
      const refused = await sender.send(said(TASKS));
      assert.equal(refused.type, "event.rejected");
      await untilEven(sender, [former, other, interruptions]);
    }
    await using last = await lead(server.url, TASKS);
    await sender.send(said(TASKS));
    await untilEven(sender, [former, last]);
    assert.equal(former.state().order, last.state().order);
    assert.equal((await foldedAnew(server.url, sender, TASKS)).order, last.state().order);
  });

  test("a snapshot of what was read and not named yet is one that every fold can go on from", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    await using interruptions = await lead(server.url, INTERRUPTIONS);
    {
      await using tasks = await lead(server.url, TASKS, { snapshotEntries: 10 });
      await sender.send(said(TASKS));
      for (let n = 0; n < 25; n += 1) await sender.send(said(INTERRUPTIONS));
      await eventually(() =>
        (tasks.counter.host.status().counters.snapshots ?? 0) > 1 ? true : undefined,
      );
    }
    const blobs = (await sender.bus.openBlobs({ replicas: 1 }).list()).filter(({ name }) =>
      name.startsWith("tasks."),
    );
    for (const { notes } of blobs) {
      const { position, seen } = JSON.parse(String(notes.title)) as {
        position: number;
        seen: JsonObject;
      };
      const stored = await sender.bus.read(logStream("tasks"), position);
      assert.deepEqual(stored && decodeEntry(stored)?.seen, seen);
    }
    await using restored = await lead(server.url, TASKS);
    await sender.send(said(TASKS));
    await untilEven(sender, [restored, interruptions]);
    const { order } = restored.state();
    await sender.send(said(INTERRUPTIONS));
    assert.equal((await foldedAnew(server.url, sender, TASKS)).order, order);
  });

  test("both logs are trimmed, also when only one of them is written to", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    const short = { snapshotEntries: 20, retentionMs: 1 };
    for (const busy of [TASKS, INTERRUPTIONS]) {
      await using tasks = await lead(server.url, TASKS, short);
      await using interruptions = await lead(server.url, INTERRUPTIONS, short);
      const before = (await sender.bus.streamState(logStream(busy.domain)))?.firstSeq ?? 0;
      await eventually(async () => {
        await sender.send(asking(busy));
        const state = await sender.bus.streamState(logStream(busy.domain));
        return (state?.firstSeq ?? 0) > before + 20 ? true : undefined;
      });
      for (const { counter } of [tasks, interruptions]) {
        await eventually(() => (counter.host.status().isSettled ? true : undefined));
        assert.equal(counter.host.status().failure, undefined);
      }
    }
    await using tasks = await lead(server.url, TASKS, short);
    await using interruptions = await lead(server.url, INTERRUPTIONS, short);
    const questions = [asking(TASKS), asking(INTERRUPTIONS)];
    for (const question of questions) await sender.send(question);
    assert.deepEqual(await outcomesOf(tasks, [questions[0]?.id ?? ""]), ["accepted 1"]);
    assert.deepEqual(await outcomesOf(interruptions, [questions[1]?.id ?? ""]), ["accepted 1"]);
  });

  test("at rest neither writes because the other one does", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    const eager = { snapshotEntries: 2 };
    await using tasks = await lead(server.url, TASKS, eager);
    await using interruptions = await lead(server.url, INTERRUPTIONS, eager);
    for (let n = 0; n < 10; n += 1) await sender.send(asking(TASKS));
    const ends = async (): Promise<string> => {
      const states = [TASKS, INTERRUPTIONS].map(({ domain }) =>
        sender.bus.streamState(logStream(domain)),
      );
      return (await Promise.all(states)).map((state) => state?.lastSeq).join();
    };
    let [last, same] = [await ends(), 0];
    await eventually(async () => {
      const now = await ends();
      same = now === last ? same + 1 : 0;
      last = now;
      return same >= 20 ? true : undefined;
    });
    assert.equal(tasks.counter.host.status().failure, undefined);
    assert.equal(interruptions.counter.host.status().failure, undefined);
  });
});
