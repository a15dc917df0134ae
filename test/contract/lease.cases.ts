import assert from "node:assert/strict";
import { test } from "node:test";
import { type BusUnderTest, leasing } from "./support.ts";

const TTL_MS = 1_200;

export function leaseCases(open: () => Promise<BusUnderTest>): void {
  test("one holds the lease; given up, the next has it", async () => {
    await using server = await open();
    const [a, b] = [await server.connect("a"), await server.connect("b")];
    const one = leasing(a, { key: "tasks", holder: "a", ttlMs: TTL_MS });
    await one.heard.until("taken", (is) => is.length === 1);
    assert.equal(one.lease.isHeld, true);
    const two = leasing(b, { key: "tasks", holder: "b", ttlMs: TTL_MS });
    const elsewhere = leasing(b, { key: "beliefs", holder: "b", ttlMs: TTL_MS });
    await elsewhere.heard.until("another key is another lease", (is) => is.length === 1);
    assert.equal(two.lease.isHeld, false);
    await one.lease.close();
    assert.equal(one.lease.isHeld, false);
    await two.heard.until("taken over", (is) => is.length === 1);
    assert.deepEqual(one.heard.value, ["acquired"], "whoever closes it is not told");
    assert.deepEqual(two.heard.value, ["acquired"]);
    await two.lease.close();
    await elsewhere.lease.close();
  });

  test("a lease is renewed while its holder lives, and free when it does not", async () => {
    await using server = await open();
    const [a, b] = [await server.connect("a"), await server.connect("b")];
    const one = leasing(a, { key: "tasks", holder: "a", ttlMs: TTL_MS });
    await one.heard.until("taken", (is) => is.length === 1);
    const two = leasing(b, { key: "tasks", holder: "b", ttlMs: TTL_MS });
    // Three other leases, taken one after the other by waiting out a holder that has gone, outlast the time to live.
    for (const n of [1, 2]) {
      const gone = await server.connect(`gone ${n}`);
      const left = leasing(gone, { key: `other${n}`, holder: "gone", ttlMs: TTL_MS });
      await left.heard.until("taken", (is) => is.length === 1);
      await gone.close();
      const next = leasing(b, { key: `other${n}`, holder: "b", ttlMs: TTL_MS });
      await next.heard.until("free after its time", (is) => is.length === 1);
      await next.lease.close();
      await left.lease.close();
    }
    assert.deepEqual([one.lease.isHeld, two.lease.isHeld], [true, false]);
    assert.deepEqual(one.heard.value, ["acquired"]);
    await a.close();
    await two.heard.until("taken over", (is) => is.length === 1);
    await one.heard.until("told", (is) => is.includes("lost"));
    assert.equal(one.lease.isHeld, false);
    await one.lease.close();
    await two.lease.close();
  });

  test("a displaced holder is told", async () => {
    await using server = await open();
    const a = await server.connect("a");
    const one = leasing(a, { key: "tasks", holder: "a", ttlMs: TTL_MS });
    await one.heard.until("taken", (is) => is.length === 1);
    await server.displace("tasks");
    await one.heard.until("told", (is) => is.includes("lost"));
    await one.heard.until("tried for again", (is) => is.length === 3);
    assert.deepEqual(one.heard.value, ["acquired", "lost", "acquired"]);
    await one.lease.close();
  });

  test("a lease survives a restart of the server, or is lost and taken again", async () => {
    await using server = await open();
    const a = await server.connect("a");
    const one = leasing(a, { key: "tasks", holder: "a", ttlMs: TTL_MS });
    await one.heard.until("taken", (is) => is.length === 1);
    await server.restart();
    await one.heard.until("held", () => one.lease.isHeld);
    assert.equal(one.heard.value.at(-1), "acquired");
    await one.lease.close();
  });

  test("leases that last another time are refused, naming both", async () => {
    await using server = await open();
    const a = await server.connect("a");
    const one = leasing(a, { key: "tasks", holder: "a", ttlMs: TTL_MS });
    await one.heard.until("taken", (is) => is.length === 1);
    const two = leasing(a, { key: "beliefs", holder: "a", ttlMs: 5_000 });
    await two.heard.until("refused", (is) => is.length === 1);
    assert.match(two.heard.value[0] ?? "", /^stream_mismatch: .*1200 ms.*5000 ms/);
    await one.lease.close();
    await two.lease.close();
  });
}
