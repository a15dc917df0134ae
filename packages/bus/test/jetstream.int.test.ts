/** What only the JetStream adapter can show: consumers that vanish, a server that hangs, sizes, foreign configurations. */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  connectBus,
  type JetStreamBus,
  logStreamSpec,
  logSubject,
  MESSAGE_BYTES_MAX,
} from "@harmovela/bus";
import { startNatsServer } from "@harmovela/testkit";
import { within } from "../../../test/contract/support.ts";
import { parseDelivery } from "../src/jetstream/stored-message.ts";
import { wireHeaders } from "../src/jetstream/wire-headers.ts";

const DEADLINE_MS = 30_000;
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

/** Looks again and again until it is so; rejects after the deadline. */
function seen(what: string, isSo: () => boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    const deadline = performance.now() + DEADLINE_MS;
    const look = (): void => {
      if (isSo()) resolve();
      else if (performance.now() > deadline) reject(new Error(`not seen: ${what}`));
      else setTimeout(look, 5);
    };
    look();
  });
}

/** Counts what the connection publishes from now on under subjects that begin so. */
function countPublished(bus: JetStreamBus, start: string): () => number {
  let count = 0;
  const publish = bus.nats.publish.bind(bus.nats);
  bus.nats.publish = (subject, ...rest) => {
    if (subject.startsWith(start)) count += 1;
    publish(subject, ...rest);
  };
  return () => count;
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
  await seen("a full read-ahead", () => full.reader.buffered === 4);
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

test("a reader gives up a server that hangs, and goes on without gap and without repeat when it is back", async () => {
  await using server = await startNatsServer();
  const changes: string[] = [];
  // No answer to a ping is missed in that time: what the reader does, it does because of missed heartbeats.
  const patient = { servers: server.url, pingIntervalMs: 60_000 };
  await using bus = await connectBus({
    ...patient,
    name: "test",
    onChange: (change) => changes.push(change),
  });
  await using writer = await connectBus({ ...patient, name: "writer" });
  await writer.provision(spec);
  const { reader, until } = reading(bus, { maxBuffered: 50 });
  const store = () => writer.store(subject, {}, one, 60_000);
  await store();
  await until(1);
  const { pid } = server;
  assert.ok(pid);
  const givenUp = countPublished(bus, "$JS.API.CONSUMER.DELETE.");
  const stored = Array.from({ length: 300 }, store);
  await Promise.race(stored);
  process.kill(pid, "SIGSTOP");
  try {
    stored.push(...Array.from({ length: 100 }, store));
    const all = until(401);
    // Its own consumer, and then one that it asked for in vain.
    await seen("two consumers given up", () => givenUp() >= 2);
    process.kill(pid, "SIGCONT");
    await Promise.all(stored);
    assert.deepEqual(
      await all,
      Array.from({ length: 401 }, (_, index) => index + 1),
    );
  } finally {
    process.kill(pid, "SIGCONT");
  }
  assert.deepEqual(changes, [], "the connection stayed");
  await reader.close();
});

test("a reader asks for few large messages at a time, also when only small ones came before", async () => {
  await using server = await startNatsServer();
  await using bus = await connectBus({ servers: server.url, name: "test" });
  await bus.provision(spec);
  for (let n = 0; n < 300; n++) await bus.store(subject, {}, one);
  const reader = bus.openReader(spec.name, { after: 0, onReady: () => {} });
  const taken: number[] = [];
  const take = (): number => taken.push(...reader.take(1_000).map(({ seq }) => seq));
  await seen("the small ones", () => take() === 300);
  const large = new Uint8Array(600_000);
  await Promise.all(Array.from({ length: 20 }, () => bus.store(subject, {}, large)));
  await seen("a large one", () => reader.buffered > 0);
  await new Promise((resolve) => setTimeout(resolve, 500));
  assert.ok(reader.buffered <= 4, `${reader.buffered} large messages wait to be taken`);
  await seen("all of them", () => take() === 320);
  assert.deepEqual(
    taken,
    Array.from({ length: 320 }, (_, n) => 1 + n),
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

test("a foreign header that the client cannot read hides nothing from a read", async () => {
  await using server = await startNatsServer();
  await using bus = await connectBus({ servers: server.url, name: "test" });
  await bus.provision(spec);
  // A name with a space: the server stores it, and any client may send it.
  const block = "NATS/1.0\r\na b: x\r\nHv-Cause: in:7\r\n\r\n";
  bus.nats.publish(subject, one, { headers: wireHeaders(new TextEncoder().encode(block)) });
  const reader = bus.openReader(spec.name, { after: 0, onReady: () => {} });
  await seen("the message", () => reader.buffered === 1);
  assert.equal(reader.take(1)[0]?.header("Hv-Cause"), "in:7");
  assert.equal((await bus.read(spec.name, 1))?.header("Hv-Cause"), "in:7");
  await reader.close();
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

test("a list ends while blobs come and go", async () => {
  await using server = await startNatsServer();
  await using writing = await connectBus({ servers: server.url, name: "writer" });
  await using listing = await connectBus({ servers: server.url, name: "reader" });
  const written = writing.openBlobs({ replicas: 1 });
  const blobs = listing.openBlobs({ replicas: 1 });
  await written.put("stays", one);
  let isOver = false;
  const writes = (async () => {
    for (let count = 0; count < 400; count += 1) {
      await written.put("comes and goes", one);
      await written.remove("comes and goes");
    }
    isOver = true;
  })();
  while (!isOver) {
    const names = (await within("a list", blobs.list())).map(({ name }) => name);
    assert.equal(names.at(-1), "stays");
  }
  await writes;
});

test("a read of a blob ends though its content goes away under it", async () => {
  await using server = await startNatsServer();
  await using bus = await connectBus({ servers: server.url, name: "a" });
  const blobs = bus.openBlobs({ replicas: 1 });
  const large = new Uint8Array(1_000_000).fill(7);
  await blobs.put("x", large);
  assert.equal(Buffer.compare((await blobs.get("x")) ?? one, large), 0);
  const purge = { filter: "$O.HV_SNAPSHOTS.C.>" };
  await bus.nats.request("$JS.API.STREAM.PURGE.OBJ_HV_SNAPSHOTS", JSON.stringify(purge));
  await assert.rejects(within("the read ends", blobs.get("x")), { code: "internal_error" });
  for (let round = 0; round < 3; round++) {
    await blobs.put("y", large);
    const [read] = await within(
      "read and removed at once",
      Promise.all([blobs.get("y"), blobs.remove("y")]),
    );
    if (read !== undefined) assert.equal(Buffer.compare(read, large), 0);
  }
});

test("what a writer left of a blob when it died is removed once it is old, and nothing else", async () => {
  await using server = await startNatsServer();
  await using bus = await connectBus({ servers: server.url, name: "blobs" });
  const blobs = bus.openBlobs({ bucket: "HV_PARTS", replicas: 1 });
  await blobs.put("whole", new Uint8Array(200_000));
  for (let part = 0; part < 3; part += 1) await bus.store("$O.HV_PARTS.C.dead", {}, one);
  assert.equal(await blobs.removeIncomplete(60_000), 0);
  assert.equal(await blobs.removeIncomplete(0), 1);
  assert.equal(await blobs.removeIncomplete(0), 0);
  assert.equal((await blobs.get("whole"))?.length, 200_000);
  await blobs.remove("whole");
  // Neither contents nor marks of what was there: a bucket that is used for years does not grow.
  assert.equal((await bus.streamState("OBJ_HV_PARTS"))?.messages, 0);
});
