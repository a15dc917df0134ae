/** The bucket of leases, on its own: revisions, what another asked for, what is no longer there. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { connectBus, LEASE_BUCKET, logStreamSpec } from "@harmovela/bus";
import { startNatsServer } from "@harmovela/testkit";
import { LeaseBucket } from "../src/jetstream/lease-bucket.ts";
import { mintOperator } from "./mint-creds.ts";

const asked = { ttlMs: 30_000, replicas: 1, timeoutMs: 5_000 };

test("a key is written, and given up, only at its revision", async () => {
  await using server = await startNatsServer();
  await using bus = await connectBus({ servers: server.url, name: "test" });
  const bucket = await LeaseBucket.open(bus.nats, asked);
  assert.equal(await bucket.last("tasks"), undefined);
  const taken = await bucket.put("tasks", "a", 0);
  await assert.rejects(bucket.put("tasks", "b", 0), { code: "append_conflict" });
  await assert.rejects(bucket.put("tasks", "b", taken + 1), { code: "append_conflict" });
  await assert.rejects(bucket.giveUp("tasks", taken + 1), { code: "append_conflict" });
  await assert.rejects(bucket.giveUp("tasks", 0), { code: "invalid_argument" });
  const renewed = await bucket.put("tasks", "a", taken);
  assert.deepEqual(await bucket.last("tasks"), { revision: renewed, value: "a" });
  await bucket.giveUp("tasks", renewed);
  const left = await bucket.last("tasks");
  assert.equal(left?.value, "");
  await assert.rejects(bucket.put("tasks", "b", 0), { code: "append_conflict" });
  assert.ok((await bucket.put("tasks", "b", left.revision)) > left.revision);
});

test("what is no key is refused before it is sent", async () => {
  await using server = await startNatsServer();
  await using bus = await connectBus({ servers: server.url, name: "test" });
  const bucket = await LeaseBucket.open(bus.nats, asked);
  for (const key of ["", "a..b", ".a", "a.", "a b", "*", "a.>"]) {
    await assert.rejects(bucket.put(key, "a", 0), { code: "invalid_argument" }, key);
    await assert.rejects(bucket.giveUp(key, 1), { code: "invalid_argument" }, key);
    await assert.rejects(bucket.last(key), { code: "invalid_argument" }, key);
  }
});

test("of those who open it at once with different times, one time holds for all", async () => {
  await using server = await startNatsServer();
  await using bus = await connectBus({ servers: server.url, name: "test" });
  const times = [30_000, 31_000, 30_000, 31_000];
  const opened = await Promise.allSettled(
    times.map((ttlMs) => LeaseBucket.open(bus.nats, { ...asked, ttlMs })),
  );
  const ok = times.filter((_, index) => opened[index]?.status === "fulfilled");
  assert.equal(ok.length, 2);
  assert.equal(new Set(ok).size, 1);
  for (const result of opened) {
    if (result.status === "rejected") assert.equal(result.reason.code, "stream_mismatch");
  }
});

test("a bucket that is gone, or was never allowed, is a typed error", async () => {
  await using server = await startNatsServer();
  await using bus = await connectBus({ servers: server.url, name: "test" });
  const bucket = await LeaseBucket.open(bus.nats, asked);
  await bus.nats.request(`$JS.API.STREAM.DELETE.KV_${LEASE_BUCKET}`);
  await assert.rejects(bucket.put("tasks", "a", 0), { code: "no_service" });
  await assert.rejects(bucket.last("tasks"), { code: "no_service" });

  // An account whose operator gave it no JetStream.
  const operator = mintOperator();
  await using bare = await startNatsServer({ config: operator.config });
  const creds = operator.credsOf("agent");
  await using poor = await connectBus({
    servers: bare.url,
    name: "test",
    auth: { creds: () => creds },
  });
  for (const attempt of [
    () => LeaseBucket.open(poor.nats, asked),
    () => poor.provision(logStreamSpec("tasks")),
  ]) {
    await assert.rejects(attempt, (error: { code: string; details: { api_code: number } }) => {
      assert.deepEqual([error.code, error.details.api_code], ["append_refused", 10039]);
      return true;
    });
  }
});

test("a name that no stream can have is an argument error", async () => {
  await using server = await startNatsServer();
  await using bus = await connectBus({ servers: server.url, name: "test" });
  for (const name of ["a.b", "*", "a b"]) {
    await assert.rejects(bus.streamState(name), { code: "invalid_argument" }, name);
  }
  assert.equal(await bus.streamState("NONE"), undefined);
});
