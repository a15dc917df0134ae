/** Who answers what, to whom: reads of a standby, cursors, traces, and replies with authentication on. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type CoreMessage, HEADER, logStream } from "@harmovela/bus";
import type { Envelope } from "@harmovela/envelope";
import type { ErrorPayload } from "@harmovela/failure";
import { startNatsServer } from "@harmovela/testkit";
import { READS_PER_SOURCE_MAX } from "../src/reads/reads-under-way.ts";
import { hurriedClock } from "./altered.ts";
import {
  ask,
  envelope,
  eventually,
  openCounter,
  openSender,
  rpc,
  slowCount,
  TENANT,
} from "./harness.ts";

const asked = { source: "agent:a" };
const cursorOf = (verdict: Envelope): string => (verdict.payload as { cursor: string }).cursor;

describe("reads", () => {
  test("a standby answers too, and not before it has what the reader has seen", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    await using leader = await openCounter(server.url);
    await leader.host.untilLeading();
    await using standby = await openCounter(server.url);
    await eventually(() => (standby.host.status().isReady ? true : undefined));
    const answeredBy = (): number => standby.host.status().counters.reads ?? 0;
    let sent = 0;
    await eventually(async () => {
      const verdict = await sender.send(envelope("task.progress"));
      sent += 1;
      const { result } = await ask(sender, "count", { ...asked, cursor: cursorOf(verdict) });
      assert.equal(result, sent);
      return answeredBy() >= 5 ? true : undefined;
    });
    assert.equal(standby.host.status().role, "standby");
  });

  test("a cursor that is not reached in time ends in a retryable error, another one in a final", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    await using counter = await openCounter(server.url, { clock: hurriedClock });
    await counter.host.untilLeading();
    const late = await ask(sender, "count", { ...asked, cursor: "HV_LOG_TASKS:1000" });
    assert.equal(late.result, undefined);
    assert.equal(late.error?.code, "internal_error");
    assert.equal(late.error?.retryable, true);
    for (const cursor of ["HV_LOG_BELIEFS:1", "HV_LOG_TASKS:", "HV_LOG_TASKS:-1", 7, null]) {
      const { error } = await ask(sender, "count", { ...asked, cursor });
      assert.equal(error?.code, "invalid_query");
      assert.equal(error?.retryable, false);
    }
  });
});

test("questions of one source do not keep those of another waiting", async () => {
  await using server = await startNatsServer();
  await using sender = await openSender(server.url);
  const { waiting, reads } = slowCount();
  await using counter = await openCounter(server.url, { reads });
  await counter.host.untilLeading();
  const inbox = sender.bus.newInbox();
  const answers: { result?: number; error?: ErrorPayload }[] = [];
  sender.bus.subscribe(inbox, ({ data }) =>
    answers.push(JSON.parse(new TextDecoder().decode(data)) as (typeof answers)[0]),
  );
  const asks = (count: number, subject: string): void => {
    for (let asked = 0; asked < count; asked += 1) {
      sender.bus.nats.publish(subject, "{}", { reply: inbox });
    }
  };
  asks(READS_PER_SOURCE_MAX + 10, rpc("slow"));
  await eventually(() => (answers.length === 10 ? true : undefined));
  for (const { error } of answers) {
    assert.equal(error?.code, "internal_error");
    assert.equal(error?.retryable, true);
    assert.equal(error?.details?.reason, "rate_limited");
  }
  const another = rpc("slow").replace("agent:a", "agent:b");
  asks(1, another);
  await eventually(() => (waiting.length > READS_PER_SOURCE_MAX ? true : undefined));
  for (const go of waiting.splice(0)) go();
  await eventually(() => (answers.length === READS_PER_SOURCE_MAX + 11 ? true : undefined));
  asks(1, rpc("slow"));
  const go = await eventually(() => waiting.pop());
  go();
  await eventually(() => (answers.length === READS_PER_SOURCE_MAX + 12 ? true : undefined));
  assert.equal(answers.filter(({ result }) => result === 0).length, READS_PER_SOURCE_MAX + 2);
});

describe("a sender's trace", () => {
  test("is kept in the entry and in the verdict, of an acceptance and of a refusal", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    await using counter = await openCounter(server.url);
    await counter.host.untilLeading();
    const inbox = sender.bus.newInbox();
    const verdicts: CoreMessage[] = [];
    sender.bus.subscribe(inbox, (message) => verdicts.push(message));
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const headers = { [HEADER.replyTo]: inbox, [HEADER.traceparent]: traceparent };
    await sender.post(envelope("task.progress"), headers);
    await sender.post(envelope("task.failed"), headers);
    await eventually(() => (verdicts.length === 2 ? true : undefined));
    for (const verdict of verdicts) assert.equal(verdict.header(HEADER.traceparent), traceparent);
    for (const seq of [2, 3]) {
      const stored = await sender.bus.read(logStream("tasks"), seq);
      assert.equal(stored?.header(HEADER.traceparent), traceparent);
    }
  });
});

describe("with authentication on", () => {
  test("verdicts and reads go to the sender's own inbox only", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    await using counter = await openCounter(server.url, {
      replyPrefix: (tenant, source) => `_INBOX.${tenant}.${source}.`,
    });
    await counter.host.untilLeading();
    const arrived: string[] = [];
    sender.bus.subscribe("_INBOX.>", ({ subject }) => arrived.push(subject));
    const own = `_INBOX.${TENANT}.agent:a.`;
    const strange = [
      `_INBOX.${TENANT}.agent:b.1`,
      "_INBOX.other.agent:a.1",
      `_INBOX.${TENANT}.agent:a`,
      `_INBOX.${TENANT}.agent:ab.1`,
      "_INBOX.1",
    ];
    for (const reply of strange) {
      await sender.post(envelope("task.progress"), { [HEADER.replyTo]: reply });
      await sender.post(envelope("task.failed"), { [HEADER.replyTo]: reply });
      sender.bus.nats.publish(rpc("count"), JSON.stringify(asked), { reply });
      sender.bus.nats.publish(rpc("status"), "", { reply });
    }
    const reply = `${own}verdict`;
    await sender.post(envelope("task.progress"), { [HEADER.replyTo]: reply });
    await eventually(() => (arrived.includes(reply) ? true : undefined));
    sender.bus.nats.publish(rpc("count"), JSON.stringify(asked), { reply: `${own}read` });
    await eventually(() => (arrived.includes(`${own}read`) ? true : undefined));
    // The connection to the server asks things of its own under `_INBOX.`.
    const answered = arrived.filter((subject) => strange.includes(subject));
    assert.deepEqual(answered, []);
    assert.equal(counter.host.status().counters.replies_dropped, strange.length * 4);
    assert.equal(counter.host.status().counters.accepted, strange.length + 1);
  });

  test("where the server answers reads from other accounts is nobody's inbox for verdicts", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    await using counter = await openCounter(server.url, {
      replyPrefix: (tenant, source) => `_INBOX.${tenant}.${source}.`,
      borderReplyPrefix: "_R_.",
    });
    await counter.host.untilLeading();
    const own = `_INBOX.${TENANT}.agent:a.read`;
    const arrived: string[] = [];
    sender.bus.subscribe(own, ({ subject }) => arrived.push(subject));
    const strange = ["_R_.a.b", "_R_", "_R_.*", "_R_x.a", "hv.acme.log.tasks._R_.x"];
    for (const reply of strange) {
      await sender.post(envelope("task.progress"), { [HEADER.replyTo]: reply });
      // The server itself takes no reply of its own form from a client.
      if (!reply.startsWith("_R_.")) sender.bus.nats.publish(rpc("status"), "", { reply });
    }
    sender.bus.nats.publish(rpc("status"), "", { reply: own });
    await eventually(() => (arrived.length === 1 ? true : undefined));
    await eventually(() =>
      counter.host.status().counters.accepted === strange.length ? true : undefined,
    );
    assert.equal(counter.host.status().counters.replies_dropped, strange.length + 3);
  });
});
