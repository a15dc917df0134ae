/** What only the JetStream adapter can show: consumers that vanish, credentials, sizes, foreign configurations. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type ConnectBusOptions,
  connectBus,
  type JetStreamBus,
  logStreamSpec,
  logSubject,
  MESSAGE_BYTES_MAX,
} from "@harmovela/bus";
import { freePort, startNatsServer } from "@harmovela/testkit";
import { parseDelivery } from "../src/jetstream/stored-message.ts";

const DEADLINE_MS = 15_000;
const spec = logStreamSpec("tasks");
const subject = logSubject({ tenant: "acme", domain: "tasks", source: "a", type: "task.created" });
const one = new Uint8Array([1]);

/** Resolves with the sequences taken once `isEnough`; rejects after the deadline. */
function reading(bus: JetStreamBus, options: { maxBuffered?: number } = {}) {
  const taken: number[] = [];
  let look = (): void => {};
  const reader = bus.openReader(spec.name, { after: 0, ...options, onReady: () => look() });
  const until = (last: number): Promise<number[]> =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`${last} did not arrive`)), DEADLINE_MS);
      look = () => {
        setImmediate(() => {
          taken.push(...reader.take(1_000).map((message) => message.seq));
          if (taken.at(-1) !== last) return;
          clearTimeout(timer);
          resolve(taken);
        });
      };
      look();
    });
  return { reader, until };
}

async function deleteConsumers(bus: JetStreamBus): Promise<number> {
  const list = await bus.nats.request(`$JS.API.CONSUMER.NAMES.${spec.name}`);
  const { consumers } = list.json<{ consumers: string[] | null }>();
  for (const name of consumers ?? []) {
    await bus.nats.request(`$JS.API.CONSUMER.DELETE.${spec.name}.${name}`);
  }
  return consumers?.length ?? 0;
}

test("a reader goes on after its consumer was deleted, waiting or not", async () => {
  await using server = await startNatsServer();
  await using bus = await connectBus({ servers: server.url, name: "test" });
  await bus.provision(spec);
  for (let n = 0; n < 8; n++) await bus.store(subject, {}, one);
  // One that waits for more, and one whose read-ahead is full and that asks for nothing.
  const waiting = reading(bus);
  await waiting.until(8);
  const full = reading(bus, { maxBuffered: 4 });
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("no read-ahead")), DEADLINE_MS);
    const look = (): void => {
      if (full.reader.buffered < 4) setImmediate(look);
      else {
        clearTimeout(timer);
        resolve();
      }
    };
    look();
  });
  assert.equal(await deleteConsumers(bus), 2);
  const started = performance.now();
  await bus.store(subject, {}, one);
  assert.deepEqual(await waiting.until(9), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
  assert.deepEqual(await full.until(9), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
  assert.ok(performance.now() - started < 10_000, "not after the client's default of 44 s");
  await waiting.reader.close();
  await full.reader.close();
});

test("a reader on a connection that is dropped again and again loses nothing and repeats nothing", async () => {
  await using server = await startNatsServer();
  let reconnected = (): void => {};
  await using bus = await connectBus({
    servers: server.url,
    name: "test",
    onChange: (change) => {
      if (change === "connected") reconnected();
    },
  });
  await using writer = await connectBus({ servers: server.url, name: "writer" });
  await writer.provision(spec);
  const total = 6_000;
  const drops = 8;
  const { reader, until } = reading(bus, { maxBuffered: 50 });
  const all = until(total);
  for (let drop = 0; drop < drops; drop++) {
    const back = new Promise<void>((resolve) => {
      reconnected = resolve;
    });
    const stored = [];
    // The link breaks in the midst of a burst, with deliveries under way.
    for (let n = 0; n < total / drops; n++) {
      stored.push(writer.store(subject, {}, one));
      if (n === 100) await bus.nats.reconnect();
    }
    await Promise.all([back, ...stored]);
  }
  const taken = await all;
  assert.deepEqual(
    taken,
    Array.from({ length: total }, (_, index) => index + 1),
  );
  await reader.close();
});

test("a closed reader leaves no consumer behind", async () => {
  await using server = await startNatsServer();
  await using bus = await connectBus({ servers: server.url, name: "test" });
  await bus.provision(spec);
  await bus.store(subject, {}, one);
  const { reader, until } = reading(bus);
  await until(1);
  await reader.close();
  await bus.flush();
  assert.equal(await deleteConsumers(bus), 0);
});

test("the largest message fits, a larger one is refused, and the connection stays", async () => {
  await using server = await startNatsServer();
  await using bus = await connectBus({ servers: server.url, name: "test" });
  await bus.provision(spec);
  await bus.store(subject, {}, new Uint8Array(MESSAGE_BYTES_MAX));
  await assert.rejects(bus.store(subject, {}, new Uint8Array(MESSAGE_BYTES_MAX + 1)), {
    code: "append_refused",
  });
  await assert.rejects(bus.store(subject, {}, new Uint8Array(2 * 1024 * 1024)), {
    code: "invalid_argument",
  });
  const failures: unknown[] = [];
  const acked = new Promise<number>((resolve) => {
    const appender = bus.openAppender({
      stream: spec.name,
      last: 1,
      onAcked: resolve,
      onFailure: (failure) => failures.push(failure),
    });
    assert.throws(() => appender.append(subject, {}, new Uint8Array(2 * 1024 * 1024)), {
      code: "invalid_argument",
    });
    assert.throws(() => appender.append("a b", {}, one), { code: "invalid_argument" });
    assert.equal(appender.last, 1);
    appender.append(subject, {}, one);
  });
  assert.equal(await acked, 2);
  assert.deepEqual(failures, []);
});

test("a stream that somebody made otherwise is refused, naming what could rewrite it", async () => {
  await using server = await startNatsServer();
  await using bus = await connectBus({ servers: server.url, name: "test" });
  await bus.nats.request(
    `$JS.API.STREAM.CREATE.${spec.name}`,
    JSON.stringify({
      name: spec.name,
      subjects: spec.subjects,
      retention: "limits",
      storage: "memory",
      num_replicas: 1,
      allow_rollup_hdrs: true,
      max_msgs_per_subject: 1,
    }),
  );
  await assert.rejects(bus.provision(spec), (error: { code: string; message: string }) => {
    assert.equal(error.code, "stream_mismatch");
    for (const field of ["storage", "allow_rollup_hdrs", "max_msgs_per_subject", "republish"]) {
      assert.ok(error.message.includes(field), field);
    }
    assert.ok(!error.message.includes("subjects is"), "what agrees is not named");
    return true;
  });
});

test("a connection says why there is none", async () => {
  const port = await freePort();
  const nowhere = { servers: `nats://127.0.0.1:${port}`, name: "test", connectTimeoutMs: 2_000 };
  await assert.rejects(connectBus(nowhere), { code: "connection_error" });

  await using server = await startNatsServer({
    config: `authorization { users: [
      { user: "u", password: "p" },
      { user: "limited", password: "p", permissions: { publish: { allow: ["free.>", "_INBOX.>"] } } }
    ] }`,
  });
  const options: ConnectBusOptions = { servers: server.url, name: "test" };
  await assert.rejects(connectBus(options), { code: "unauthorized" });
  await assert.rejects(connectBus({ ...options, auth: { user: "u", password: () => "wrong" } }), {
    code: "unauthorized",
  });
  await using bus = await connectBus({ ...options, auth: { user: "u", password: () => "p" } });
  assert.equal(bus.serverVersion, server.version);
  await using limited = await connectBus({
    ...options,
    auth: { user: "limited", password: () => "p" },
  });
  await assert.rejects(limited.request("closed.a", {}, one, 5_000), { code: "unauthorized" });
  await assert.rejects(limited.request("free.a", {}, one, 5_000), { code: "no_service" });
});

test("a token is accepted", async () => {
  await using server = await startNatsServer({ config: `authorization { token: "secret" }` });
  await using bus = await connectBus({
    servers: server.url,
    name: "test",
    auth: { token: () => "secret" },
  });
  await bus.flush();
  assert.equal(bus.isConnected, true);
});

test("waiting for the first connection ends when the server comes", async () => {
  const port = await freePort();
  const connecting = connectBus({
    servers: `nats://127.0.0.1:${port}`,
    name: "test",
    waitOnFirstConnect: true,
  });
  await using server = await startNatsServer({ port });
  await using bus = await connecting;
  assert.equal(bus.isConnected, true);
  assert.equal(bus.serverVersion, server.version);
});

test("replies go under the prefix that was asked for", async () => {
  await using server = await startNatsServer();
  await using bus = await connectBus({
    servers: server.url,
    name: "test",
    inboxPrefix: "_INBOX.acme.agent:a.",
  });
  assert.match(bus.newInbox(), /^_INBOX\.acme\.agent:a\.[^.]+$/);
  let reply = "";
  bus.subscribe("ask", (message) => {
    reply = message.reply;
    bus.publish(message.reply, {}, one);
  });
  await bus.request("ask", {}, one, 5_000);
  assert.match(reply, /^_INBOX\.acme\.agent:a\./);
});

test("both forms of a delivery's reply subject are read", () => {
  const info = { streamSeq: 42, consumerSeq: 7, time: 1_700_000_000_123 };
  const tail = "1.42.7.1700000000123456789.0";
  assert.deepEqual(parseDelivery(`$JS.ACK.S.C.${tail}`), info);
  assert.deepEqual(parseDelivery(`$JS.ACK._.ACCHASH.S.C.${tail}`), info);
  assert.deepEqual(parseDelivery(`$JS.ACK.hub.ACCHASH.S.C.${tail}.random`), info);
  for (const bad of ["", "_INBOX.x", "$JS.ACK.S.C", "$JS.ACK.S.C.1.x.7.1700000000123456789.0"]) {
    assert.equal(parseDelivery(bad), undefined, bad);
  }
});
