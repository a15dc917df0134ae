/** P6: what many laborious envelopes cost at once is no pause in which a leader loses its lease. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { startNatsServer } from "@harmovela/testkit";
import { laborious } from "./hostile/bodies.ts";
import { CoordinatorProcess } from "./hostile/coordinator.ts";
import { HonestAgent } from "./hostile/honest.ts";
import { Ledger } from "./hostile/ledger.ts";
import { RawClient } from "./hostile/raw-client.ts";

test("a burst of laborious envelopes blocks nobody", async (t) => {
  await using server = await startNatsServer();
  const keys = mkdtempSync(join(tmpdir(), "harmovela-p6-"));
  t.after(() => rmSync(keys, { recursive: true, force: true }));
  await using coordinator = await CoordinatorProcess.start(server.url, {
    heapMb: 256,
    tokenKeyFile: join(keys, "keys.json"),
  });
  await using honest = await HonestAgent.start(server.url);
  using client = new RawClient(server.port);
  const ledger = new Ledger();
  const bodies = Array.from({ length: 20 }, () => laborious("task.completed").slice(0, 3)).flat();
  const subject = "hv.acme.in.tasks.agent:a.task.completed";
  const before = await coordinator.until("it leads", ({ role }) => role === "leader", 60_000);
  await client.send(bodies.map((body) => ledger.asked(subject, true, body)));
  const wanted = bodies.length;
  const after = await coordinator.until(
    "all is judged",
    ({ counters }) => (counters.rejected ?? 0) >= wanted,
    120_000,
  );
  await honest.stop();
  t.diagnostic(`${server.version}: slowest honest verdict ${honest.slowestMs.toFixed(0)} ms`);
  assert.equal(after.epoch, before.epoch, "the leader has not lost its lease");
  assert.equal(after.counters.leaderships, 1);
});
