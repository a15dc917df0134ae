/** P6: what many laborious envelopes cost at once is no pause in which a leader loses its lease. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { HostStatus } from "@harmovela/host";
import { startNatsServer } from "@harmovela/testkit";
import { laborious } from "./hostile/bodies.ts";
import { CoordinatorProcess } from "./hostile/coordinator.ts";
import { HonestAgent } from "./hostile/honest.ts";
import { Ledger } from "./hostile/ledger.ts";
import { RawClient } from "./hostile/raw-client.ts";

const DEADLINE_MS = 120_000;

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
  await client.send(bodies.map((body) => ledger.asked(subject, true, body)));
  const burst = await watch(
    coordinator,
    ({ counters }) => (counters.rejected ?? 0) >= bodies.length,
  );
  await honest.stop();
  const share = burst.longestMs / (burst.ms / bodies.length);
  t.diagnostic(
    `${server.version}: ${bodies.length} in ${burst.ms.toFixed(0)} ms, silent for ${share.toFixed(1)} of them at most; slowest honest verdict ${honest.slowestMs.toFixed(0)} ms`,
  );
  // A lease is renewed, and everybody else is heard, between one envelope and the next.
  assert.ok(share < bodies.length / 4, `silent for as long as ${share.toFixed(1)} envelopes take`);
});

/** Asks for its status until something is so: how long that took, and its longest silence. */
async function watch(
  coordinator: CoordinatorProcess,
  isSo: (status: HostStatus) => boolean,
): Promise<{ ms: number; longestMs: number }> {
  const started = performance.now();
  let longestMs = 0;
  for (;;) {
    const asked = performance.now();
    const status = await coordinator.until("it answers", () => true, DEADLINE_MS);
    const now = performance.now();
    longestMs = Math.max(longestMs, now - asked);
    if (isSo(status)) return { ms: now - started, longestMs };
    if (now - started > DEADLINE_MS) throw new Error("the burst is not judged in time");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
