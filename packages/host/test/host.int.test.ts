import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { HEADER, logStream, rpcSubject } from "@harmovela/bus";
import type { Envelope } from "@harmovela/envelope";
import { type NatsServer, startNatsServer } from "@harmovela/testkit";
import { createCounterDecider } from "./counter-decider.ts";
import { envelope, eventually, openCounter, openSender, readLog, TENANT } from "./harness.ts";

const decoder = new TextDecoder();
type AckPayload = { acknowledged_event_id: string; cursor: string; duplicate?: boolean };
type RejectPayload = { acknowledged_event_id: string; error: { code: string; retryable: boolean } };
const ack = (verdict: Envelope) => verdict.payload as AckPayload;
const errorOf = (verdict: Envelope) => (verdict.payload as RejectPayload).error;

describe("a hosted decider", () => {
  let server: NatsServer;
  before(async () => {
    server = await startNatsServer();
  });
  after(async () => {
    await server.stop();
  });

  test("judges, logs, acknowledges, and repeats the outcome of a duplicate", async () => {
    await using counter = await openCounter(server.url);
    await counter.host.untilLeading();
    await using sender = await openSender(server.url);
    const sent = envelope("task.progress", { task_id: "t1" });
    const first = await sender.send(sent);
    assert.equal(first.type, "event.acknowledged");
    assert.equal(first.causation_id, sent.id);
    assert.match(ack(first).cursor, /^HV_LOG_TASKS:\d+$/);
    const again = await sender.send(sent);
    assert.deepEqual(ack(again), { ...ack(first), duplicate: true });
    const other = await sender.send({ ...sent, payload: { progress: 0.5 } });
    assert.equal(other.type, "event.rejected");
    assert.equal(errorOf(other).code, "protocol_error");
    const entries = (await readLog(sender.bus)).filter(
      (entry) => entry.kind === "event" && entry.envelope.id === sent.id,
    );
    assert.equal(entries.length, 1);
  });

  test("a final refusal is an entry and is repeated for the same envelope", async () => {
    await using counter = await openCounter(server.url);
    await counter.host.untilLeading();
    await using sender = await openSender(server.url);
    const sent = envelope("task.failed", {
      task_id: "t1",
      payload: { error: { code: "tool_error", message: "m", retryable: false } },
    });
    const first = await sender.send(sent);
    const again = await sender.send(sent);
    assert.equal(errorOf(first).code, "task_error");
    assert.equal(again.id, first.id);
    const logged = (await readLog(sender.bus)).filter(
      (entry) => entry.kind === "event" && entry.envelope.causation_id === sent.id,
    );
    assert.equal(logged.length, 1);
  });

  test("a plan is begun, worked off step by step, and ends with the sender's own event", async () => {
    await using counter = await openCounter(server.url);
    await counter.host.untilLeading();
    await using sender = await openSender(server.url);
    const sent = envelope("task.completed", { task_id: "t1" });
    const [verdict, again] = await Promise.all([sender.send(sent), sender.send(sent)]);
    assert.equal((verdict.payload as { pending?: boolean }).pending, true);
    assert.deepEqual(again.payload, { ...ack(verdict), duplicate: true });
    const entries = await eventually(async () => {
      const log = await readLog(sender.bus);
      const at = log.findIndex((entry) => entry.kind === "begun" && entry.plan.id === sent.id);
      const rest = log.slice(at);
      return rest.some((entry) => entry.kind === "event" && entry.envelope.id === sent.id)
        ? rest
        : undefined;
    });
    assert.deepEqual(
      entries.map((entry) => (entry.kind === "event" ? entry.envelope.type : entry.kind)),
      ["begun", "task.output", "task.output", "task.output", "task.completed"],
    );
  });

  test("a timer fires once, in broker time, and not for who reported in time", async () => {
    await using counter = await openCounter(server.url);
    await counter.host.untilLeading();
    await using sender = await openSender(server.url);
    const submit = (task: string) =>
      sender.send(envelope("task.submitted", { task_id: task, payload: { timeout_ms: 300 } }));
    await submit("silent");
    await submit("busy");
    await sender.send(envelope("task.progress", { task_id: "busy" }));
    const timedOut = await eventually(async () => {
      const found = (await readLog(sender.bus)).flatMap((entry) =>
        entry.kind === "event" && entry.envelope.type === "task.timed_out" ? [entry] : [],
      );
      return found.length > 0 ? found : undefined;
    });
    assert.deepEqual(
      timedOut.map((entry) => entry.envelope.task_id),
      ["silent"],
    );
  });

  test("after a service was down, in-time reports count and only the silent time out", async () => {
    await using sender = await openSender(server.url);
    {
      await using counter = await openCounter(server.url);
      await counter.host.untilLeading();
      for (const task of ["d1", "d2", "d3", "d4"]) {
        await sender.send(
          envelope("task.submitted", { task_id: task, payload: { timeout_ms: 600 } }),
        );
      }
    }
    await sender.post(envelope("task.progress", { task_id: "d1" }));
    await sender.post(envelope("task.progress", { task_id: "d3" }));
    await new Promise((resolve) => setTimeout(resolve, 1_800));
    await sender.post(envelope("task.progress", { task_id: "d2" }));
    await using counter = await openCounter(server.url);
    await counter.host.untilLeading();
    await eventually(async () => (counter.host.status().isSettled ? true : undefined));
    const outs = (await readLog(sender.bus)).flatMap((entry) =>
      entry.kind === "event" && /^d\d$/.test(entry.envelope.task_id ?? "")
        ? [`${entry.envelope.type} ${entry.envelope.task_id}`]
        : [],
    );
    assert.deepEqual(outs.filter((line) => line.startsWith("task.timed_out")).sort(), [
      "task.timed_out d2",
      "task.timed_out d4",
    ]);
    assert.ok(outs.indexOf("task.timed_out d2") < outs.indexOf("task.progress d2"));
  });

  test("reads wait for a cursor and answer with a position", async () => {
    await using counter = await openCounter(server.url);
    await counter.host.untilLeading();
    await using sender = await openSender(server.url);
    const verdict = await sender.send(envelope("task.progress", { source: "agent:reader" }));
    const answer = await sender.bus.request(
      rpcSubject({ tenant: TENANT, source: "agent:reader", domain: "tasks", verb: "count" }),
      {},
      new TextEncoder().encode(
        JSON.stringify({ source: "agent:reader", cursor: ack(verdict).cursor }),
      ),
      5_000,
    );
    const { position, result } = JSON.parse(decoder.decode(answer.data));
    assert.match(position, /^HV_LOG_TASKS:\d+$/);
    assert.equal(result, 1);
  });

  test("a reply subject that is a log, control, intake or lease subject changes nothing", async () => {
    await using counter = await openCounter(server.url);
    await counter.host.untilLeading();
    await using sender = await openSender(server.url);
    const hostile = [
      `hv.${TENANT}.log.tasks.agent:a.-.task.progress`,
      "hv.-.ctl.tasks.epoch",
      `hv.${TENANT}.in.tasks.agent:a.task.progress`,
      "$KV.HV_LEASES.tasks",
      "_INBOX.>",
      "_INBOX. x",
      "_INBOXES.a",
    ];
    const before = await sender.bus.streamState(logStream("tasks"));
    const intake = await sender.bus.streamState("HV_IN_TASKS");
    const read = rpcSubject({ tenant: TENANT, source: "agent:a", domain: "tasks", verb: "count" });
    for (const reply of hostile) {
      await sender.post(envelope("session.heartbeat"), { [HEADER.replyTo]: reply });
      await sender.post(envelope("task.failed", { payload: "bad" }), { [HEADER.replyTo]: reply });
      if (!/[\s>]/.test(reply)) {
        sender.bus.nats.publish(read, "", { reply });
        for (const verb of ["PING", "INFO", "STATS"])
          sender.bus.nats.publish(`$SRV.${verb}`, "", { reply });
      }
    }
    await sender.bus.flush();
    const verdict = await sender.send(envelope("task.progress"));
    assert.equal(verdict.type, "event.acknowledged");
    assert.equal(counter.host.status().foreign, 0);
    assert.equal(counter.host.status().role, "leader");
    const now = await sender.bus.streamState(logStream("tasks"));
    assert.equal(now?.lastSeq, (before?.lastSeq ?? 0) + hostile.length * 2 + 1);
    const later = await sender.bus.streamState("HV_IN_TASKS");
    assert.equal(later?.lastSeq, (intake?.lastSeq ?? 0) + hostile.length * 2 + 1);
  });

  test("a decider that throws in decide, evolve or owed stops nobody else", async () => {
    const base = createCounterDecider();
    let brokenOwed = true;
    await using counter = await openCounter(server.url, {
      decider: {
        ...base,
        decide: (state, input, context) => {
          if (input.envelope.source === "agent:decide") throw new Error("boom in decide");
          return base.decide(state, input, context);
        },
        evolve: (state, entry) => {
          if (entry.kind === "event" && entry.envelope.source === "agent:evolve") {
            throw new Error("boom in evolve");
          }
          base.evolve(state, entry);
        },
        owed: (state, now, underWay) => {
          if (brokenOwed) throw new Error("boom in owed");
          return base.owed(state, now, underWay);
        },
      },
    });
    await counter.host.untilLeading();
    await using sender = await openSender(server.url);
    const good = () => sender.send(envelope("task.progress", { source: "agent:good" }));
    assert.equal((await good()).type, "event.acknowledged");
    for (const source of ["agent:decide", "agent:evolve"]) {
      const verdict = await sender.send(envelope("task.progress", { source }));
      assert.equal(errorOf(verdict).code, "internal_error");
      assert.equal(errorOf(verdict).retryable, true);
      assert.equal((await good()).type, "event.acknowledged");
    }
    brokenOwed = false;
    await sender.send(envelope("task.completed", { source: "agent:good", task_id: "after" }));
    await eventually(async () => (counter.host.status().isSettled ? true : undefined));
    const kinds = (await readLog(sender.bus)).map((entry) => entry.kind);
    assert.ok(kinds.includes("obligation_failed"));
    assert.ok(counter.host.status().alarms.some(({ alarm }) => alarm.includes("owed failed")));
  });
});
