/** Failures that users of similar systems reported, by the names of the reports; here those of the bus and of the bytes. */
import assert from "node:assert/strict";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { intakeStream, logStream } from "@harmovela/bus";
import type { Decider, Envelope } from "@harmovela/envelope";
import { startNatsServer } from "@harmovela/testkit";
import { Gate, Sluice } from "./altered.ts";
import { type CounterState, createCounterDecider } from "./counter-decider.ts";
import {
  ask,
  envelope,
  errorOf,
  eventsOf,
  eventually,
  openCounter,
  openSender,
  readLog,
  type Sender,
} from "./harness.ts";

const encoder = new TextEncoder();
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const ofAgent = { source: "agent:a" };

const cursorOf = (verdict: Envelope): unknown => (verdict.payload as { cursor?: unknown }).cursor;
const isDuplicate = (verdict: Envelope): boolean =>
  (verdict.payload as { duplicate?: boolean }).duplicate === true;

/** How the server would have every consumer of a stream acknowledge. */
async function ackPolicies({ bus }: Sender, stream: string): Promise<string[]> {
  const answer = await bus.nats.request(`$JS.API.CONSUMER.LIST.${stream}`, "");
  const { consumers } = answer.json<{ consumers: { config: { ack_policy: string } }[] | null }>();
  return (consumers ?? []).map(({ config }) => config.ack_policy);
}

describe("M1 a server that dies", () => {
  test("by kill -9 loses nothing that was acknowledged", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    await using counter = await openCounter(server.url);
    await counter.host.untilLeading();
    const cursors = new Set<unknown>();
    for (let count = 0; count < 40; count += 1) {
      cursors.add(cursorOf(await sendUntilAnswered(sender, envelope("task.progress"))));
      if (count % 20 !== 10) continue;
      await server.restart();
      await eventually(() => (sender.bus.isConnected ? true : undefined));
    }
    assert.equal(cursors.size, 40);
    assert.equal(eventsOf(await readLog(sender.bus)).length, 40);
    assert.equal((await ask(sender, "count", ofAgent)).result, 40);
  });

  test("with what it had acknowledged stops the service that knows more, and nothing is done again", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    await using counter = await openCounter(server.url);
    await counter.host.untilLeading();
    for (let count = 0; count < 10; count += 1) await sender.send(envelope("task.progress"));
    const synced = mkdtempSync(join(tmpdir(), "harmovela-synced-"));
    try {
      cpSync(server.storeDir, synced, { recursive: true });
      for (let count = 0; count < 10; count += 1) await sender.send(envelope("task.progress"));
      await server.kill();
      rmSync(server.storeDir, { recursive: true });
      cpSync(synced, server.storeDir, { recursive: true });
      await server.restart();
      await assert.rejects(counter.host.done, /HV_(?:IN|LOG)_TASKS/);
      const { role, isReady, failure } = counter.host.status();
      assert.deepEqual({ role, isReady }, { role: "stopped", isReady: false });
      assert.match(failure ?? "", /HV_(?:IN|LOG)_TASKS/);
      // The epoch and ten events, as it was synced.
      assert.equal((await sender.bus.streamState(logStream("tasks")))?.lastSeq, 11);
    } finally {
      rmSync(synced, { recursive: true, force: true });
    }
  });
});

/** The same bytes again while no verdict comes: one that is given while the server dies may be lost. */
async function sendUntilAnswered(sender: Sender, sent: Envelope): Promise<Envelope> {
  for (;;) {
    const late = new Promise<undefined>((resolve) => setTimeout(resolve, 3_000, undefined).unref());
    const verdict = await Promise.race([sender.send(sent), late]);
    if (verdict !== undefined) return verdict;
  }
}

test("M3 1,500 messages that nobody works off hold up no other reader, and are judged in the end", async () => {
  await using server = await startNatsServer();
  await using sender = await openSender(server.url);
  const sluice = new Sluice(intakeStream("tasks"));
  await using counter = await openCounter(server.url, { around: sluice.around });
  await counter.host.untilLeading();
  const total = 1_500;
  await Promise.all(Array.from({ length: total }, () => sender.post(envelope("task.progress"))));
  await eventually(() => (sluice.arrived() === total ? true : undefined));
  let read = 0;
  const other = sender.bus.openReader(intakeStream("tasks"), { after: 0, onReady: () => {} });
  await eventually(() => {
    read += other.take(total).length;
    return read === total ? true : undefined;
  });
  // No consumer can fall silent for want of acknowledgements: none is waited for.
  assert.deepEqual(await ackPolicies(sender, intakeStream("tasks")), ["none", "none"]);
  await other.close();
  sluice.open();
  await eventually(() => (counter.host.status().intake === total ? true : undefined));
  assert.equal((await ask(sender, "count", ofAgent)).result, total);
});

test("M5 ten that cannot be judged now do not keep the next one waiting, and can be sent again", async () => {
  await using server = await startNatsServer();
  await using sender = await openSender(server.url);
  const base = createCounterDecider();
  let isBroken = true;
  const decider: Decider<CounterState> = {
    ...base,
    decide: (state, input, context) => {
      if (isBroken && input.envelope.source === "agent:bad") throw new Error("not now");
      return base.decide(state, input, context);
    },
  };
  await using counter = await openCounter(server.url, { decider });
  await counter.host.untilLeading();
  const ten = Array.from({ length: 10 }, () => envelope("task.progress", { source: "agent:bad" }));
  const refused = await Promise.all(ten.map((one) => sender.send(one)));
  for (const verdict of refused) assert.equal(errorOf(verdict).retryable, true);
  assert.equal((await sender.send(envelope("task.progress"))).type, "event.acknowledged");
  assert.deepEqual(await ackPolicies(sender, intakeStream("tasks")), ["none"]);
  isBroken = false;
  for (const one of ten) assert.equal((await sender.send(one)).type, "event.acknowledged");
});

test("M7 the same message id again and again: the server lets some through, the state changes once", async () => {
  await using server = await startNatsServer();
  await using sender = await openSender(server.url);
  await using counter = await openCounter(server.url);
  await counter.host.untilLeading();
  const sent = envelope("task.progress");
  const stored = new Set<number>();
  // The server's window is 100 ms, is not refreshed, and so lets pass what comes after it.
  for (const ms of [0, 60, 60, 60, 60, 60, 60, 300]) {
    await pause(ms);
    stored.add(await sender.post(sent, { "Nats-Msg-Id": sent.id }));
  }
  assert.ok(stored.size >= 2, "the server took it once only: nothing was tried");
  await eventually(() => (counter.host.status().intake === Math.max(...stored) ? true : undefined));
  assert.equal((await ask(sender, "count", ofAgent)).result, 1);
  assert.equal(eventsOf(await readLog(sender.bus)).length, 1);
  assert.equal(counter.host.status().counters.duplicates, stored.size - 1);
});

test("M9 sent again within the window while the service lost the first: the stored one is judged, once", async () => {
  await using server = await startNatsServer();
  await using sender = await openSender(server.url);
  const sent = envelope("task.progress");
  const gate = new Gate();
  let stored: number[];
  {
    await using counter = await openCounter(server.url, { around: gate.around });
    await counter.host.untilLeading();
    gate.isHolding = true;
    const id = { "Nats-Msg-Id": sent.id };
    stored = await Promise.all([sender.post(sent, id), sender.post(sent, id)]);
    assert.equal(stored[0], stored[1], "the server took both");
    await eventually(() => (gate.held === 1 ? true : undefined));
  }
  assert.equal(eventsOf(await readLog(sender.bus)).length, 0);
  await using counter = await openCounter(server.url);
  await counter.host.untilLeading();
  await eventually(() => (counter.host.status().intake === stored[0] ? true : undefined));
  await eventually(() => (counter.host.status().isSettled ? true : undefined));
  assert.equal(eventsOf(await readLog(sender.bus)).length, 1);
  assert.equal(isDuplicate(await sender.send(sent)), true);
});

describe("bytes that read differently when they are written anew", () => {
  test("N3 two keys of one name: refused, before and after a replay, and in no log", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    const sent = envelope("task.progress", { task_id: "first" });
    const text = JSON.stringify(sent);
    const twice = encoder.encode(`${text.slice(0, -1)},"task_id":"second"}`);
    const escaped = encoder.encode(`${text.slice(0, -1)},"t\\u0061sk_id":"second"}`);
    for (let life = 0; life < 2; life += 1) {
      await using counter = await openCounter(server.url);
      await counter.host.untilLeading();
      for (const raw of [twice, escaped]) {
        assert.equal(errorOf(await sender.send(sent, { raw })).code, "invalid_envelope");
      }
      assert.equal((await ask(sender, "count", ofAgent)).result, 0);
    }
    assert.ok(!JSON.stringify(await readLog(sender.bus)).includes("second"));
  });

  test("N3 what was accepted is the same envelope after a replay, however it is written", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    const sent = envelope("task.progress", { task_id: "__proto__" });
    const odd = '{"__proto__":{"isAdmin":true},"n":[1e2,-0,1.50,1e21],"s":"\\u00e9\\ud83d\\ude80"}';
    const raw = encoder.encode(JSON.stringify(sent).replace('"payload":{}', `"payload":${odd}`));
    const anew = encoder.encode(JSON.stringify(JSON.parse(new TextDecoder().decode(raw))));
    assert.notDeepEqual(raw, anew);
    let first: unknown;
    for (const bytes of [raw, anew, raw]) {
      await using counter = await openCounter(server.url);
      await counter.host.untilLeading();
      const verdict = await sender.send(sent, { raw: bytes });
      assert.equal(verdict.type, "event.acknowledged");
      assert.equal(isDuplicate(verdict), first !== undefined);
      first ??= cursorOf(verdict);
      assert.equal(cursorOf(verdict), first);
    }
    assert.equal("isAdmin" in {}, false);
  });

  test("N5 20,000 nested arrays are refused, and nothing is stored that cannot be written again", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    const nested = (depth: number, sent: Envelope): Uint8Array =>
      encoder.encode(
        JSON.stringify(sent).replace(
          '"payload":{}',
          `"payload":{"deep":${"[".repeat(depth)}${"]".repeat(depth)}}`,
        ),
      );
    {
      await using counter = await openCounter(server.url);
      await counter.host.untilLeading();
      const deep = envelope("task.progress");
      const verdict = await sender.send(deep, { raw: nested(20_000, deep) });
      assert.equal(errorOf(verdict).code, "invalid_envelope");
      // The envelope and its payload are two of the 64 levels.
      const deepest = envelope("task.progress");
      const tooDeep = envelope("task.progress");
      assert.equal(
        (await sender.send(deepest, { raw: nested(62, deepest) })).type,
        "event.acknowledged",
      );
      assert.equal(
        errorOf(await sender.send(tooDeep, { raw: nested(63, tooDeep) })).code,
        "invalid_envelope",
      );
    }
    for (const entry of await readLog(sender.bus)) {
      assert.deepEqual(JSON.parse(JSON.stringify(entry)), structuredClone(entry));
    }
    await using again = await openCounter(server.url);
    await again.host.untilLeading();
    assert.equal((await ask(sender, "count", ofAgent)).result, 1);
    assert.equal((await sender.bus.streamState(logStream("tasks")))?.firstSeq, 1);
  });
});
