/** Envelopes and entries made to stop a service: each gets its verdict or is skipped, and the next one is judged. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { describe, test } from "node:test";
import { HEADER, type Headers, logStream } from "@harmovela/bus";
import type { Decider, Envelope } from "@harmovela/envelope";
import { HarmovelaError } from "@harmovela/failure";
import { type NatsServer, startNatsServer } from "@harmovela/testkit";
import { type CounterState, createCounterDecider } from "./counter-decider.ts";
import {
  envelope,
  errorOf,
  eventsOf,
  eventually,
  openCounter,
  openObserver,
  openSender,
  readLog,
  type Sender,
  TENANT,
} from "./harness.ts";

const encoder = new TextEncoder();

/** An envelope small enough to arrive, whose numbers take five times the room when they are written anew. */
function growing(sent: Envelope): Uint8Array {
  const numbers = `[${Array(28_000).fill("1e20").join(",")}]`;
  return encoder.encode(
    JSON.stringify({ ...sent, payload: { result: "@" } }).replace('"@"', numbers),
  );
}

/** A service that starts on the same streams. */
async function assertJudges(server: NatsServer, sender: Sender): Promise<void> {
  await using again = await openCounter(server.url);
  await again.host.untilLeading();
  const verdict = await sender.send(envelope("task.progress"));
  assert.equal(verdict.type, "event.acknowledged");
  assert.equal(again.host.status().failure, undefined);
}

const fillingIn: Decider<CounterState> = {
  ...createCounterDecider(),
  decide: (_state, { envelope }) => ({ accept: { ...envelope, correlation_id: "filled in" } }),
};

describe("an envelope that grows when it is stored", () => {
  const cases: [string, Envelope, Decider<CounterState>][] = [
    ["stamped anew", envelope("task.progress", { delivery: {} }), createCounterDecider()],
    ["as the end of a plan", envelope("task.completed"), createCounterDecider()],
    ["with fields filled in", envelope("task.progress"), fillingIn],
  ];
  for (const [what, sent, decider] of cases) {
    test(`${what}: it is refused for good and the next one is judged`, async () => {
      await using server = await startNatsServer();
      await using sender = await openSender(server.url);
      {
        await using counter = await openCounter(server.url, { decider });
        await counter.host.untilLeading();
        const raw = growing(sent);
        const first = await sender.send(sent, { raw });
        assert.equal(errorOf(first).code, "invalid_envelope");
        assert.equal(errorOf(first).retryable, false);
        assert.equal((await sender.send(sent, { raw })).id, first.id);
        assert.equal(counter.host.status().role, "leader");
      }
      await assertJudges(server, sender);
    });
  }
});

describe("a traceparent that is none", () => {
  test("of 64 KB, or of any other form, is not carried on", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    {
      await using counter = await openCounter(server.url);
      await counter.host.untilLeading();
      await sender.post(envelope("task.progress"), { [HEADER.traceparent]: "x".repeat(65_000) });
      await sender.post(envelope("task.failed"), { [HEADER.traceparent]: "x".repeat(65_000) });
      await sender.post(envelope("task.progress"), { [HEADER.traceparent]: "00-é-1-01" });
      assert.equal((await sender.send(envelope("task.progress"))).type, "event.acknowledged");
      for (let seq = 1; seq <= 4; seq += 1) {
        const stored = await sender.bus.read(logStream("tasks"), seq);
        assert.equal(stored?.header(HEADER.traceparent), "");
      }
    }
    await assertJudges(server, sender);
  });

  test("with a lone carriage return, as only a hand-made client can send it", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    {
      await using counter = await openCounter(server.url);
      await counter.host.untilLeading();
      const body = JSON.stringify(envelope("task.progress"));
      const headers = "NATS/1.0\r\ntraceparent: a\rb\r\n\r\n";
      const socket = connect(server.port, "127.0.0.1");
      await once(socket, "data");
      const subject = `hv.${TENANT}.in.tasks.agent:a.task.progress`;
      const publish = `HPUB ${subject} ${headers.length} ${headers.length + body.length}`;
      socket.write(
        `CONNECT {"verbose":false,"headers":true}\r\n${publish}\r\n${headers}${body}\r\n`,
      );
      await eventually(() => (counter.host.status().intake === 1 ? true : undefined));
      socket.destroy();
    }
    await assertJudges(server, sender);
  });
});

describe("names in headers", () => {
  test("any id an agent may use can name a plan, and every fold reads it the same", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    const ids = [
      "évt 日本 🚀",
      " spaces at both ends ",
      "\u00a0no-break\u00a0",
      "\ufeffmark",
      "a\u2028b",
    ];
    const accepted: string[] = [];
    {
      await using counter = await openCounter(server.url);
      await counter.host.untilLeading();
      for (const id of ids) {
        const verdict = await sender.send(envelope("task.completed", { id, task_id: "t" }));
        if (verdict.type === "event.acknowledged") accepted.push(id);
      }
      assert.ok(accepted.includes("évt 日本 🚀"));
      await eventually(() => (counter.host.status().isSettled ? true : undefined));
      assert.equal(counter.host.status().counters.recoveries, 0);
    }
    const log = await readLog(sender.bus);
    assert.equal(
      eventsOf(log).filter((line) => line === "task.completed t").length,
      accepted.length,
    );
    for (const id of accepted) {
      const owed = log.filter(({ cause }) => "owed" in cause && cause.owed === id);
      assert.equal(owed.length, 4, `entries owed by ${JSON.stringify(id)}`);
    }
    await using again = await openCounter(server.url);
    await again.host.untilLeading();
    await eventually(() => (again.host.status().isSettled ? true : undefined));
    assert.equal(again.host.status().foreign, 0);
    assert.equal(eventsOf(await readLog(sender.bus)).length, eventsOf(log).length);
  });
});

describe("an entry that nobody with the right to lead wrote", () => {
  const foreign: [string, Headers, string][] = [
    ["names a far position of an observed log", { [HEADER.seen]: "tasks:999999999" }, "{}"],
    [
      "claims a leadership and names a far position",
      {
        [HEADER.seen]: "tasks:999999999",
        [HEADER.epoch]: "999",
        [HEADER.at]: "1",
        [HEADER.cause]: "in:1",
        [HEADER.prev]: "0",
      },
      "{}",
    ],
    [
      "has a body that is no JSON",
      { [HEADER.epoch]: "999", [HEADER.at]: "1", [HEADER.cause]: "in:1", [HEADER.prev]: "0" },
      "{nope",
    ],
  ];
  for (const [what, headers, body] of foreign) {
    test(`${what}: it is skipped and counted`, async () => {
      await using server = await startNatsServer();
      await using sender = await openSender(server.url);
      await using tasks = await openCounter(server.url);
      await tasks.host.untilLeading();
      {
        await using observer = await openObserver(server.url);
        await observer.host.untilLeading();
      }
      for (const domain of ["beliefs", "tasks"]) {
        const subject = `hv.${TENANT}.log.${domain}.agent:a.-.task.progress`;
        await sender.bus.store(subject, headers, encoder.encode(body));
      }
      await using observer = await openObserver(server.url);
      await observer.host.untilLeading();
      assert.equal(observer.host.status().foreign, 1);
      assert.equal((await sender.send(envelope("task.progress"))).type, "event.acknowledged");
      assert.equal(tasks.host.status().foreign, 1);
      const fact = envelope("memory.fact.added", { payload: { fact_id: "f", value: 1 } });
      assert.equal((await sender.send(fact)).type, "event.acknowledged");
    });
  }
});

describe("a stored entry that cannot be folded", () => {
  for (const error of [new Error("boom"), new HarmovelaError("timeout", "looks like the bus")]) {
    test(`stops the service, naming it (${error.name})`, async () => {
      await using server = await startNatsServer();
      await using sender = await openSender(server.url);
      {
        await using counter = await openCounter(server.url);
        await counter.host.untilLeading();
        for (let count = 0; count < 3; count += 1) await sender.send(envelope("task.progress"));
      }
      // A snapshot holds what the entry meant when it was written: without it the entry is folded again.
      const blobs = sender.bus.openBlobs({ replicas: 1 });
      for (const { name } of await blobs.list()) await blobs.remove(name);
      const base = createCounterDecider();
      const decider: Decider<CounterState> = {
        ...base,
        evolve: (state, entry) => {
          if (entry.seq === 3) throw error;
          base.evolve(state, entry);
        },
      };
      await using counter = await openCounter(server.url, { decider });
      await assert.rejects(counter.host.untilLeading(), /cannot fold HV_LOG_TASKS:3/);
      await assert.rejects(counter.host.done, { name: "FoldError", seq: 3 });
      assert.equal(counter.host.status().isReady, false);
      assert.equal(counter.host.status().position, 2);
    });
  }
});
