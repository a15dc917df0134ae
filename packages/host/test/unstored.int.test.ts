/** What is folded and not stored yet leaves a leader in no way: no request, no answer, no entry (architecture, section 6). */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { intakeStreamSpec, logStream, rpcSubject } from "@harmovela/bus";
import { type Decider, deriveId } from "@harmovela/envelope";
import { startNatsServer } from "@harmovela/testkit";
import { Gate, hurriedClock } from "./altered.ts";
import { COUNTER_SERVICE, type CounterState, createCounterDecider } from "./counter-decider.ts";
import {
  type Answer,
  ask,
  envelope,
  eventually,
  openCounter,
  openSender,
  slowCount,
  TENANT,
} from "./harness.ts";

const asked = { source: "agent:a" };

/** Asks and remembers whether an answer has come. */
function asking(answer: Promise<Answer>): { answer: Promise<Answer>; isAnswered(): boolean } {
  let isAnswered = false;
  void answer.finally(() => {
    isAnswered = true;
  });
  return { answer, isAnswered: () => isAnswered };
}

describe("while appends are not acknowledged", () => {
  test("a request waits for the entry that owes it", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    await sender.bus.provision(intakeStreamSpec("beliefs", { replicas: 1 }));
    const base = createCounterDecider();
    const id = deriveId(TENANT, "count", "ask", 1);
    const decider: Decider<CounterState> = {
      ...base,
      owed: (state, _now, { requests }) => {
        if (state.counts.size === 0 || requests.has(id)) return undefined;
        const request = envelope("belief.asserted", { id, source: COUNTER_SERVICE });
        return { request, tenant: TENANT, cause: "count", to: "beliefs" };
      },
    };
    const gate = new Gate();
    await using counter = await openCounter(server.url, { decider, around: gate.around });
    await counter.host.untilLeading();
    gate.isHolding = true;
    await sender.post(envelope("task.progress"));
    await eventually(() => (gate.held === 1 ? true : undefined));
    // One more turn at least: by its end the request has been asked for.
    await sender.post(envelope("task.progress"));
    await eventually(() => (gate.held === 2 ? true : undefined));
    await counter.writer.flush();
    assert.equal((await sender.bus.streamState("HV_IN_BELIEFS"))?.lastSeq, 0);
    assert.equal(counter.host.status().counters.requests, 0);
    gate.lose();
    await eventually(async () => {
      const state = await sender.bus.streamState("HV_IN_BELIEFS");
      return state?.lastSeq === 1 ? true : undefined;
    });
    assert.equal((await sender.bus.streamState(logStream("tasks")))?.lastSeq, 3);
  });

  test("a read waits, the status does not, and what is stored in the end is answered", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    const gate = new Gate();
    await using counter = await openCounter(server.url, { around: gate.around });
    await counter.host.untilLeading();
    gate.isHolding = true;
    await sender.post(envelope("task.progress"));
    await eventually(() => (gate.held === 1 ? true : undefined));
    const read = asking(ask(sender, "count", asked));
    const { status } = await ask(sender, "status");
    assert.equal(status?.position, 2);
    assert.equal(status?.acked, 1);
    assert.equal(read.isAnswered(), false);
    gate.lose();
    assert.deepEqual(await read.answer, { position: "HV_LOG_TASKS:2", result: 1 });
  });

  test("a read that began before them and ends after waits for what it has seen", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    const gate = new Gate();
    const slow = slowCount();
    await using counter = await openCounter(server.url, { around: gate.around, reads: slow.reads });
    await counter.host.untilLeading();
    const read = asking(ask(sender, "slow"));
    await eventually(() => (slow.waiting.length === 1 ? true : undefined));
    gate.isHolding = true;
    await sender.post(envelope("task.progress"));
    await eventually(() => (gate.held === 1 ? true : undefined));
    slow.waiting[0]?.();
    await ask(sender, "status");
    assert.equal(read.isAnswered(), false);
    gate.lose();
    assert.equal((await read.answer).result, 1);
  });

  test("reads that wait are bounded; the others are told to come again", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    const gate = new Gate();
    await using counter = await openCounter(server.url, { around: gate.around });
    await counter.host.untilLeading();
    gate.isHolding = true;
    await sender.post(envelope("task.progress"));
    await eventually(() => (gate.held === 1 ? true : undefined));
    const reply = sender.bus.newInbox();
    const answers: Answer[] = [];
    sender.bus.subscribe(reply, ({ data }) => {
      answers.push(JSON.parse(new TextDecoder().decode(data)) as Answer);
    });
    const to = { tenant: TENANT, source: "agent:a", domain: "tasks", verb: "count" } as const;
    for (let count = 0; count < 1_500; count += 1) {
      sender.bus.nats.publish(rpcSubject(to), JSON.stringify(asked), { reply });
    }
    await eventually(() => (answers.length >= 500 ? true : undefined));
    assert.ok((await ask(sender, "status")).status !== undefined);
    assert.equal(answers.length, 500);
    assert.ok(answers.every(({ error }) => error?.retryable === true));
    gate.lose();
    await eventually(() => (answers.length === 1_500 ? true : undefined));
    assert.equal(answers.filter(({ result }) => result === 1).length, 1_000);
    assert.equal((await ask(sender, "count", asked)).result, 1);
  });
});

describe("close() while appends are not acknowledged", () => {
  test("a read meanwhile waits with them and answers what became stored", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    const gate = new Gate();
    await using counter = await openCounter(server.url, { around: gate.around });
    await counter.host.untilLeading();
    gate.isHolding = true;
    await sender.post(envelope("task.progress"));
    await eventually(() => (gate.held === 1 ? true : undefined));
    const closing = counter.host.close();
    const read = asking(ask(sender, "count", asked));
    await ask(sender, "status");
    assert.equal(read.isAnswered(), false);
    gate.lose();
    await closing;
    assert.equal((await read.answer).result, 1);
    assert.equal((await sender.bus.streamState(logStream("tasks")))?.lastSeq, 2);
  });

  test("a read that would rest on what is never stored is told to come again", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    const gate = new Gate();
    const hurried = { around: gate.around, clock: hurriedClock };
    await using counter = await openCounter(server.url, hurried);
    await counter.host.untilLeading();
    gate.isHolding = true;
    await sender.post(envelope("task.progress"));
    await eventually(() => (gate.held === 1 ? true : undefined));
    const closing = counter.host.close();
    const { error, result } = await ask(sender, "count", asked);
    assert.equal(result, undefined);
    assert.equal(error?.retryable, true);
    await closing;
    assert.equal((await sender.bus.streamState(logStream("tasks")))?.lastSeq, 1);
  });
});
