/** The audit stream on a real server: what is in it, that nobody takes it out, and that a kill -9 neither doubles nor loses. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { AUDIT_STREAM } from "@harmovela/bus";
import { type NatsServer, startNatsServer } from "@harmovela/testkit";
import { assertRecorded, isRecorded, readAudit } from "./audit-log.ts";
import {
  AUDIT,
  ask,
  envelope,
  eventually,
  openCounter,
  openSender,
  readLog,
  type Sender,
} from "./harness.ts";
import { startCounterProcess } from "./processes.ts";

describe("the audit of a service", () => {
  let server: NatsServer;
  let acme: Sender;
  let beta: Sender;
  before(async () => {
    server = await startNatsServer();
    acme = await openSender(server.url);
    beta = await openSender(server.url, "beta");
  });
  after(async () => {
    await acme.bus.close();
    await beta.bus.close();
    await server[Symbol.asyncDispose]();
  });

  const recorded = () => eventually(async () => ((await isRecorded(acme.bus)) ? true : undefined));

  test("what was judged before it was turned on is in it, with what comes then", async () => {
    {
      await using counter = await openCounter(server.url);
      await counter.host.untilLeading();
      for (const who of [acme, beta]) await who.send(envelope("task.progress"));
    }
    await using counter = await openCounter(server.url, { audit: AUDIT });
    await counter.host.untilLeading();
    const named = { target: "agent:b", actor_id: "agent:boss", task_id: "t" };
    await acme.send(envelope("task.failed", { ...named, payload: { secret: "s3cret" } }));
    await beta.send(envelope("task.completed"));
    await recorded();
    const audit = await readAudit(acme.bus);
    assertRecorded(audit, await readLog(acme.bus));
    assert.doesNotMatch(JSON.stringify(audit), /s3cret/);
    const refused = audit.find(({ verdict }) => verdict === "refused");
    assert.equal(refused?.type, "task.failed");
    assert.deepEqual(
      [refused?.tenant, refused?.source, refused?.target, refused?.actor, refused?.task_id],
      ["acme", "agent:a", "agent:b", "agent:boss", "t"],
    );
    assert.match(refused?.code ?? "", /^[a-z_]+$/);
    assert.ok(audit.some(({ tenant, verdict }) => tenant === "beta" && verdict === "derived"));
    assert.deepEqual(counter.host.status().alarms, []);
  });

  test("questions are in it within moments: who asked what, and how it was answered", async () => {
    await using counter = await openCounter(server.url, { audit: AUDIT });
    await counter.host.untilLeading();
    await ask(acme, "count", { source: "agent:a", task_id: "asked" });
    await ask(acme, "nonsense");
    await ask(acme, "count", { cursor: "x" });
    const asked = await eventually(async () => {
      const found = (await readAudit(acme.bus)).filter(({ kind }) => kind === "asked");
      return found.length >= 3 ? found : undefined;
    });
    assert.deepEqual(
      asked.map(({ tenant, source, verb, verdict, code, task_id }) => [
        ...[tenant, source, verb, verdict, code, task_id],
      ]),
      [
        ["acme", "agent:a", "count", "accepted", undefined, "asked"],
        ["acme", "agent:a", "nonsense", "refused", "invalid_query", undefined],
        ["acme", "agent:a", "count", "refused", "invalid_query", undefined],
      ],
    );
  });

  test("nobody purges it or deletes from it", async () => {
    const { nats } = acme.bus;
    for (const [verb, body] of [
      ["PURGE", {}],
      ["MSG.DELETE", { seq: 1 }],
    ] as const) {
      const answer = await nats.request(
        `$JS.API.STREAM.${verb}.${AUDIT_STREAM}`,
        JSON.stringify(body),
      );
      assert.ok(answer.json<{ error?: object }>().error !== undefined, verb);
    }
    const { firstSeq } = (await acme.bus.streamState(AUDIT_STREAM)) ?? {};
    assert.equal(firstSeq, 1);
  });

  test("kill -9 of the leader, again and again, under load", async () => {
    let isStopped = false;
    const loads = [acme, beta].map(async (sender, n) => {
      while (!isStopped) {
        const sent = envelope(n === 0 ? "task.progress" : "task.completed");
        await Promise.race([sender.send(sent).catch(() => undefined), pauseOf(300)]);
      }
    });
    for (let round = 0; round < 3; round += 1) {
      await using process = startCounterProcess(server.url, `audit-${round}`, 1_500, "audit");
      await process.until("leading");
      const { lastSeq = 0 } = (await acme.bus.streamState("HV_LOG_TASKS")) ?? {};
      // One that has hardly begun, and ones whose record is under way.
      await eventually(async () => {
        const now = (await acme.bus.streamState("HV_LOG_TASKS"))?.lastSeq ?? 0;
        return now >= lastSeq + round * 40 ? true : undefined;
      });
      process.signal("SIGKILL");
    }
    isStopped = true;
    await Promise.all(loads);
    await using counter = await openCounter(server.url, { audit: AUDIT });
    await counter.host.untilLeading();
    await acme.send(envelope("task.progress"));
    await recorded();
    assertRecorded(await readAudit(acme.bus), await readLog(acme.bus));
  });
});

function pauseOf(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
