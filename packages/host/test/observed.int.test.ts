/** Two domains: one observes the other's log and asks it for something (architecture, section 2, requests). */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { logStream, rpcSubject } from "@harmovela/bus";
import type { Envelope } from "@harmovela/envelope";
import { startNatsServer } from "@harmovela/testkit";
import {
  envelope,
  eventually,
  openCounter,
  openObserver,
  openSender,
  readLog,
  type Sender,
  TENANT,
} from "./harness.ts";

async function observerState(sender: Sender): Promise<{ owed: string[]; outcomes: object }> {
  const answer = await sender.bus.request(
    rpcSubject({ tenant: TENANT, source: "agent:a", domain: "beliefs", verb: "state" }),
    {},
    new Uint8Array(),
    5_000,
  );
  return JSON.parse(new TextDecoder().decode(answer.data)).result;
}

/** Where the acknowledgement says that it is. */
function positionIn({ payload }: Envelope): number {
  return Number((payload as { cursor: string }).cursor.split(":")[1]);
}

describe("an observing service", () => {
  test("asks once for what it owes, over restarts of both, and knows the outcome", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    {
      await using tasks = await openCounter(server.url);
      await tasks.host.untilLeading();
      await using observer = await openObserver(server.url);
      await observer.host.untilLeading();
      await sender.send(envelope("task.completed", { task_id: "t1" }));
      await eventually(async () => {
        const { owed, outcomes } = await observerState(sender);
        return owed.length === 0 && Object.keys(outcomes).length === 3 ? true : undefined;
      });
    }
    {
      // Only the observed one runs: what it logs now is owed by nobody yet.
      await using tasks = await openCounter(server.url);
      await tasks.host.untilLeading();
      await sender.send(envelope("task.completed", { task_id: "t2" }));
      await eventually(async () => (tasks.host.status().isSettled ? true : undefined));
    }
    {
      // The observer asks while nobody judges; its requests wait in the intake.
      await using observer = await openObserver(server.url);
      await observer.host.untilLeading();
      await eventually(async () =>
        (observer.host.status().counters.requests ?? 0) >= 3 ? true : undefined,
      );
    }
    await using tasks = await openCounter(server.url);
    await tasks.host.untilLeading();
    await using observer = await openObserver(server.url);
    await observer.host.untilLeading();
    await eventually(async () => {
      const { owed, outcomes } = await observerState(sender);
      return owed.length === 0 && Object.keys(outcomes).length === 6 ? true : undefined;
    });
    const asked = (await readLog(sender.bus)).flatMap((entry) =>
      entry.kind === "event" && entry.envelope.type === "task.blocked" ? [entry.envelope.id] : [],
    );
    assert.equal(asked.length, 6);
    assert.equal(new Set(asked).size, 6);
  });

  test("what was acknowledged elsewhere before is folded before an envelope is judged", async () => {
    await using server = await startNatsServer();
    await using tasks = await openCounter(server.url);
    await tasks.host.untilLeading();
    await using observer = await openObserver(server.url);
    await observer.host.untilLeading();
    await using sender = await openSender(server.url);
    for (let round = 0; round < 50; round += 1) {
      const verdict = await sender.send(envelope("task.progress"));
      const cursor = positionIn(verdict);
      const judged = await sender.send(
        envelope("memory.fact.added", { payload: { fact_id: `f${round}`, value: 1 } }),
      );
      const stored = await sender.bus.read(logStream("beliefs"), positionIn(judged));
      const seen = Number(stored?.header("Hv-Seen").split(":")[1]);
      assert.ok(seen >= cursor, `judged having seen ${seen} of ${cursor}`);
    }
  });

  test("so it is in a burst, of which many arrive before one look at the observed log", async () => {
    await using server = await startNatsServer();
    await using tasks = await openCounter(server.url);
    await tasks.host.untilLeading();
    await using observer = await openObserver(server.url);
    await observer.host.untilLeading();
    await using sender = await openSender(server.url);
    const judged: { cursor: number; verdict: Promise<Envelope> }[] = [];
    for (let round = 0; round < 40; round += 1) {
      const acknowledged = await sender.send(envelope("task.progress"));
      const cursor = positionIn(acknowledged);
      for (let count = 0; count < 25; count += 1) {
        const payload = { fact_id: `f${round}-${count}`, value: 1 };
        judged.push({ cursor, verdict: sender.send(envelope("memory.fact.added", { payload })) });
      }
    }
    for (const { cursor, verdict } of judged) {
      const stored = await sender.bus.read(logStream("beliefs"), positionIn(await verdict));
      const seen = Number(stored?.header("Hv-Seen").split(":")[1]);
      assert.ok(seen >= cursor, `judged having seen ${seen} of ${cursor}`);
    }
  });
});
