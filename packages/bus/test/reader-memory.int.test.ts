/** What was taken from a reader is held by it no longer, though others still wait: messages may be large. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { startNatsServer } from "@harmovela/testkit";
import { connectBus, intakeStreamSpec, type Reader } from "../src/index.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;
const MESSAGES = 10;

const takeWeakly = (reader: Reader, max: number): WeakRef<object>[] =>
  reader.take(max).map((message) => new WeakRef(message));

test("a reader holds what waits and nothing that was taken", async () => {
  await using server = await startNatsServer();
  const bus = await connectBus({ servers: server.url, name: "test" });
  const spec = intakeStreamSpec("tasks");
  await bus.provision(spec);
  for (let count = 0; count < MESSAGES; count += 1) {
    await bus.store("hv.acme.in.tasks.agent:a.task.progress", {}, Buffer.from("{}"));
  }
  const reader = bus.openReader(spec.name, { after: 0, onReady: () => {} });
  const until = performance.now() + 30_000;
  while (reader.buffered < MESSAGES && performance.now() < until) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.equal(reader.buffered, MESSAGES);
  const taken = takeWeakly(reader, 6);
  await new Promise((resolve) => setImmediate(resolve));
  collect();
  const held = taken.filter((ref) => ref.deref() !== undefined);
  await reader.close();
  await bus.close();
  assert.equal(held.length, 0);
});
