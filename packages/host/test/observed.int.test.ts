/** Two domains: one observes the other's log and asks it for something (architecture, section 2, requests). */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { intakeStream, intakeSubject, logStream, rpcSubject } from "@harmovela/bus";
import { domainOf, type Envelope } from "@harmovela/envelope";
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

/** So many that the ones sent later arrive while these are being judged. */
const BACKLOG = 5_000;

/** Puts envelopes into their intake without asking for verdicts. */
async function storeAll({ bus }: Sender, envelopes: readonly Envelope[]): Promise<void> {
  for (const sent of envelopes) {
    const { type, source } = sent;
    const subject = intakeSubject({ tenant: TENANT, domain: domainOf(type), source, type });
    bus.publish(subject, {}, new TextEncoder().encode(JSON.stringify(sent)));
  }
  const stream = intakeStream("beliefs");
  await eventually(async () =>
    ((await bus.streamState(stream))?.lastSeq ?? 0) >= envelopes.length ? true : undefined,
  );
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

  test("so it is where the intake is never empty, and one look covers all that had arrived by then", async () => {
    await using server = await startNatsServer();
    await using tasks = await openCounter(server.url);
    await tasks.host.untilLeading();
    await using sender = await openSender(server.url);
    const fact = (name: string) =>
      envelope("memory.fact.added", { payload: { fact_id: name, value: 1 } });
    {
      // Creates the streams.
      await using observer = await openObserver(server.url);
      await observer.host.untilLeading();
    }
    await storeAll(
      sender,
      Array.from({ length: BACKLOG }, (_, index) => fact(`waiting-${index}`)),
    );
    await using observer = await openObserver(server.url);
    await eventually(() => Promise.resolve(observer.host.status().intake > 0 ? true : undefined));
    const judged: { cursor: number; verdict: Promise<Envelope> }[] = [];
    while (observer.host.status().intake < BACKLOG || judged.length === 0) {
      const cursor = positionIn(await sender.send(envelope("task.progress")));
      judged.push({ cursor, verdict: sender.send(fact(`late-${judged.length}`)) });
    }
    for (const { cursor, verdict } of judged) {
      const stored = await sender.bus.read(logStream("beliefs"), positionIn(await verdict));
      const seen = Number(stored?.header("Hv-Seen").split(":")[1]);
      assert.ok(seen >= cursor, `judged having seen ${seen} of ${cursor}`);
    }
  });
});
