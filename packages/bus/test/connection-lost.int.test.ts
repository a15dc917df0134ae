/** What is asked around the loss of a connection: nobody waits for an answer that cannot come. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { connectBus, intakeStreamSpec, type JetStreamBus } from "@harmovela/bus";
import { type NatsServer, startNatsServer } from "@harmovela/testkit";

const STREAM = "HV_IN_TASKS";
/** Much longer than any test may take: whoever waits for the end of it has not noticed. */
const NEVER_MS = 600_000;

/** A connection and what tells of its next changes. */
async function connectWatched(server: NatsServer) {
  const changes = new Map<string, () => void>();
  const bus: JetStreamBus = await connectBus({
    servers: server.url,
    name: "test",
    onChange: (change) => changes.get(change)?.(),
  });
  const next = (change: string) =>
    new Promise<void>((resolve) => {
      changes.set(change, resolve);
    });
  return { bus, next };
}

function halt(server: NatsServer): void {
  process.kill(server.pid ?? 0, "SIGSTOP");
}

test("a question under way fails when the connection is lost", async () => {
  await using server = await startNatsServer();
  const { bus, next } = await connectWatched(server);
  await bus.provision(intakeStreamSpec("tasks"));
  const lost = next("disconnected");
  halt(server);
  const asked = [
    bus.streamState(STREAM),
    bus.read(STREAM, 1),
    bus.provision(intakeStreamSpec("tasks")),
    bus.store("hv.acme.in.tasks.a.task.created", {}, new Uint8Array([1]), NEVER_MS),
    bus.request("$JS.API.INFO", {}, new Uint8Array(), NEVER_MS),
  ];
  const outcomes = Promise.allSettled(asked);
  await server.kill();
  await lost;
  for (const outcome of await outcomes) {
    assert.equal(outcome.status, "rejected");
    assert.equal((outcome.reason as { code: string }).code, "connection_error");
  }
  await bus.close();
});

test("a question that is asked while there is no connection is answered when it is back", async () => {
  await using server = await startNatsServer();
  const { bus, next } = await connectWatched(server);
  await bus.provision(intakeStreamSpec("tasks"));
  const lost = next("disconnected");
  await server.kill();
  await lost;
  const outcomes = Promise.all([
    bus.store("hv.acme.in.tasks.a.task.created", {}, new Uint8Array([1]), NEVER_MS),
    bus.request("$JS.API.INFO", {}, new Uint8Array(), NEVER_MS),
  ]);
  await server.restart();
  const [stored, info] = await outcomes;
  assert.equal(stored.seq, 1);
  assert.ok(info.data.length > 0);
  assert.equal((await bus.streamState(STREAM))?.lastSeq, 1);
  await bus.close();
});

test("a question that is asked while there is no connection waits for it no longer than for an answer", async () => {
  await using server = await startNatsServer();
  const { bus, next } = await connectWatched(server);
  const lost = next("disconnected");
  await server.kill();
  await lost;
  const asked = bus.request("$JS.API.INFO", {}, new Uint8Array(), 200);
  await assert.rejects(asked, { code: "connection_error" });
  const waiting = bus.request("$JS.API.INFO", {}, new Uint8Array(), NEVER_MS);
  await bus.close();
  await assert.rejects(waiting, { code: "closed" });
});
