/** P2 and P3 of the architecture on real processes: kill -9, pause and resume, a killed server. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { decodeEntry, HEADER, type JetStreamBus, logStream } from "@harmovela/bus";
import type { Envelope } from "@harmovela/envelope";
import { startNatsServer } from "@harmovela/testkit";
import {
  envelope,
  eventually,
  openCounter,
  openSender,
  readLog,
  type Sender,
  TENANT,
} from "./harness.ts";
import { startCounterProcess } from "./processes.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** What a plain subscriber of `hv.>` saw under `ev`, by position. */
function watch(bus: JetStreamBus): Map<number, string[]> {
  const seen = new Map<number, string[]>();
  bus.subscribe("hv.>", ({ subject, data }) => {
    if (subject.split(".")[2] !== "ev") return;
    const { id, delivery } = JSON.parse(decoder.decode(data)) as Envelope;
    const seq = Number(delivery?.cursor?.split(":")[1]);
    seen.set(seq, [...(seen.get(seq) ?? []), id]);
  });
  return seen;
}

/** Sends until it is acknowledged, the same bytes each time. */
async function sendUntilAcknowledged(sender: Sender, sent: Envelope): Promise<Envelope> {
  const raw = encoder.encode(JSON.stringify(sent));
  for (let attempt = 0; attempt < 40; attempt += 1) {
    const verdict = await Promise.race([
      sender.send(sent, { raw }).catch(() => undefined),
      new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), 500)),
    ]);
    if (verdict !== undefined) return verdict;
  }
  throw new Error(`${sent.id} was never answered`);
}

/** Keeps sending from several agents; `stop` resolves with the ids that were acknowledged. */
function load(sender: Sender, agents: number): { stop(): Promise<string[]> } {
  let isStopped = false;
  const acknowledged: string[] = [];
  const runs = Array.from({ length: agents }, async (_, agent) => {
    while (!isStopped) {
      const sent = envelope("task.progress", { source: `agent:${agent}` });
      const verdict = await sendUntilAcknowledged(sender, sent);
      assert.equal(verdict.type, "event.acknowledged");
      acknowledged.push(sent.id);
    }
  });
  return {
    stop: async () => {
      isStopped = true;
      await Promise.all(runs);
      return acknowledged;
    },
  };
}

async function assertEveryAcknowledgedOnce(
  bus: JetStreamBus,
  acknowledged: string[],
  seen: Map<number, string[]>,
): Promise<void> {
  const log = await readLog(bus);
  const ids = log.flatMap((entry) => (entry.kind === "event" ? [entry.envelope.id] : []));
  assert.equal(new Set(ids).size, ids.length, "an id is in the log twice");
  const inLog = new Set(ids);
  assert.deepEqual(
    acknowledged.filter((id) => !inLog.has(id)),
    [],
    "acknowledged and not in the log",
  );
  const stored = new Map(
    log.flatMap((entry) => (entry.kind === "event" ? [[entry.seq, entry.envelope.id]] : [])),
  );
  for (const [seq, seenIds] of seen) {
    for (const id of seenIds) assert.equal(id, stored.get(seq), `position ${seq} as seen`);
  }
  const sequences = log.flatMap((entry) =>
    entry.kind === "event" ? [entry.envelope.delivery?.sequence] : [],
  );
  assert.deepEqual(
    sequences,
    sequences.map((_, index) => index + 1),
  );
}

describe("failover", () => {
  test("kill -9 of the leader under load: a warm standby goes on, nothing lost, nothing twice", async () => {
    await using server = await startNatsServer();
    await using first = startCounterProcess(server.url, "first");
    await first.until("leading");
    await using second = startCounterProcess(server.url, "second");
    await second.until("started");
    await using sender = await openSender(server.url);
    const seen = watch(sender.bus);
    const running = load(sender, 8);
    await eventually(async () => (seen.size > 200 ? true : undefined));
    first.signal("SIGKILL");
    const killedAt = performance.now();
    const before = seen.size;
    await eventually(async () => (seen.size > before + 200 ? true : undefined));
    assert.ok(performance.now() - killedAt < 10_000);
    const acknowledged = await running.stop();
    assert.ok(acknowledged.length > 300);
    await assertEveryAcknowledgedOnce(sender.bus, acknowledged, seen);
    assert.equal((await readLog(sender.bus)).filter(({ kind }) => kind === "epoch").length, 2);
  });

  test("a paused leader that wakes up is refused: one log, nothing visible that is not stored", async () => {
    await using server = await startNatsServer();
    await using first = startCounterProcess(server.url, "first");
    await first.until("leading");
    await using second = startCounterProcess(server.url, "second");
    await second.until("started");
    await using sender = await openSender(server.url);
    const seen = watch(sender.bus);
    const running = load(sender, 8);
    for (const [paused, other] of [
      [first, second],
      [second, first],
      [first, second],
    ] as const) {
      await eventually(async () => (seen.size > 100 ? true : undefined));
      paused.signal("SIGSTOP");
      await other.until("leading");
      const before = seen.size;
      await eventually(async () => (seen.size > before + 100 ? true : undefined));
      paused.signal("SIGCONT");
      const resumed = seen.size;
      await eventually(async () => (seen.size > resumed + 100 ? true : undefined));
    }
    const acknowledged = await running.stop();
    await assertEveryAcknowledgedOnce(sender.bus, acknowledged, seen);
  });

  test("kill -9 of the server under load: the leader finds out what is stored and goes on", async () => {
    await using server = await startNatsServer();
    await using counter = await openCounter(server.url);
    await counter.host.untilLeading();
    await using sender = await openSender(server.url);
    const seen = watch(sender.bus);
    const running = load(sender, 8);
    for (let round = 0; round < 3; round += 1) {
      const before = seen.size;
      await eventually(async () => (seen.size > before + 100 ? true : undefined));
      await server.kill();
      await server.restart();
    }
    const before = seen.size;
    await eventually(async () => (seen.size > before + 100 ? true : undefined));
    const acknowledged = await running.stop();
    await assertEveryAcknowledgedOnce(sender.bus, acknowledged, seen);
  });

  test("a foreign entry in the log is skipped and counted; the leader goes on", async () => {
    await using server = await startNatsServer();
    await using counter = await openCounter(server.url);
    await counter.host.untilLeading();
    await using sender = await openSender(server.url);
    await sendUntilAcknowledged(sender, envelope("task.progress"));
    const forged = encoder.encode(JSON.stringify(envelope("task.completed")));
    const subject = `hv.${TENANT}.log.tasks.agent:a.-.task.completed`;
    await sender.bus.store(subject, {}, forged);
    await sender.bus.store(subject, { [HEADER.epoch]: "1", [HEADER.at]: "1" }, forged);
    // What a displaced leader still had under way, or one of ours whose predecessor was lost.
    const late = {
      [HEADER.epoch]: "1",
      [HEADER.at]: "1",
      [HEADER.cause]: "in:9",
      [HEADER.prev]: "1",
    };
    await sender.bus.store(subject, late, forged);
    const verdict = await sendUntilAcknowledged(sender, envelope("task.progress"));
    assert.equal(verdict.type, "event.acknowledged");
    assert.equal(counter.host.status().foreign, 3);
    const plan = envelope("task.completed", { task_id: "t" });
    await sendUntilAcknowledged(sender, plan);
    await eventually(async () => (counter.host.status().isSettled ? true : undefined));
    assert.ok(
      (await readLog(sender.bus)).some(
        (entry) => entry.kind === "event" && entry.envelope.id === plan.id,
      ),
    );
  });

  test("messages that the intake lost are named by an entry and an alarm", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    {
      await using counter = await openCounter(server.url);
      await counter.host.untilLeading();
      await sendUntilAcknowledged(sender, envelope("task.progress"));
    }
    for (let count = 0; count < 3; count += 1) await sender.post(envelope("task.progress"));
    await sender.bus.nats.request("$JS.API.STREAM.PURGE.HV_IN_TASKS", JSON.stringify({ keep: 1 }));
    await using counter = await openCounter(server.url);
    await counter.host.untilLeading();
    await sendUntilAcknowledged(sender, envelope("task.progress"));
    const gap = (await readLog(sender.bus)).find(({ kind }) => kind === "intake_gap");
    assert.deepEqual(gap?.kind === "intake_gap" ? gap.body : undefined, { from: 2, to: 3 });
    assert.equal(counter.host.status().counters.intake_gaps, 1);
  });

  test("so are those after which nothing more came", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    {
      await using counter = await openCounter(server.url);
      await counter.host.untilLeading();
      await sendUntilAcknowledged(sender, envelope("task.progress"));
    }
    for (let count = 0; count < 3; count += 1) await sender.post(envelope("task.progress"));
    await sender.bus.nats.request("$JS.API.STREAM.PURGE.HV_IN_TASKS", "");
    await using counter = await openCounter(server.url);
    await counter.host.untilLeading();
    const gap = await eventually(async () =>
      (await readLog(sender.bus)).find(({ kind }) => kind === "intake_gap"),
    );
    assert.deepEqual(gap.kind === "intake_gap" ? gap.body : undefined, { from: 2, to: 4 });
    await sendUntilAcknowledged(sender, envelope("task.progress"));
    assert.equal(counter.host.status().counters.intake_gaps, 1);
  });

  for (const name of ["HV_LOG_TASKS", "HV_IN_TASKS"]) {
    test(`a recreated ${name} stops the service, naming it`, async () => {
      await using server = await startNatsServer();
      await using sender = await openSender(server.url);
      {
        await using counter = await openCounter(server.url);
        await counter.host.untilLeading();
        await sendUntilAcknowledged(sender, envelope("task.progress"));
      }
      const stored = await sender.bus.read(logStream("tasks"), 1);
      assert.ok(stored !== undefined && decodeEntry(stored)?.kind === "epoch");
      await sender.bus.nats.request(`$JS.API.STREAM.DELETE.${name}`, "");
      if (name === "HV_LOG_TASKS") {
        // A log that was restored from elsewhere: its entries say that they belong to another stream.
        const { logStreamSpec } = await import("@harmovela/bus");
        await sender.bus.provision(logStreamSpec("tasks"));
        const headers = Object.fromEntries(
          [HEADER.cause, HEADER.at, HEADER.epoch, HEADER.prev].map((key) => [
            key,
            stored.header(key),
          ]),
        );
        await sender.bus.store(stored.subject, headers, stored.data);
      }
      await using counter = await openCounter(server.url);
      await assert.rejects(counter.host.untilLeading(), new RegExp(`${name} was recreated`));
      assert.equal(counter.host.status().isReady, false);
      assert.equal(counter.host.status().role, "stopped");
    });
  }
});
