/** What is folded and not stored yet leaves a leader in no way: no request, no answer, no entry (architecture, section 6). */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Bus, intakeStreamSpec, type Lease, logStream, rpcSubject } from "@harmovela/bus";
import { type Decider, deriveId } from "@harmovela/envelope";
import { startNatsServer } from "@harmovela/testkit";
import type { ReadHandler } from "../src/index.ts";
import { altered, Gate, hurriedClock } from "./altered.ts";
import { COUNTER_SERVICE, type CounterState, createCounterDecider } from "./counter-decider.ts";
import {
  type Answer,
  ask,
  envelope,
  eventsOf,
  eventually,
  type HostedOptions,
  openCounter,
  openSender,
  readLog,
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

/** A read that looks at the state only when it is told to. */
function slowCount(): { waiting: (() => void)[]; reads: HostedOptions<CounterState>["reads"] } {
  const waiting: (() => void)[] = [];
  const slow: ReadHandler<CounterState> = async (state) => {
    await new Promise<void>((resolve) => waiting.push(resolve));
    return state.counts.get(`${TENANT}/agent:a`) ?? 0;
  };
  return { waiting, reads: { slow } };
}

/** The lease as the host sees it, which a test can take away. */
class Taker {
  #lose: () => void = () => {};
  #isTaken = false;

  around = (bus: Bus): Bus =>
    altered(bus, {
      openLease: (options) => {
        const lease = bus.openLease(options);
        this.#lose = options.onLost;
        const isHeld = () => lease.isHeld && !this.#isTaken;
        return altered<Lease>(lease, {
          get isHeld() {
            return isHeld();
          },
        });
      },
    });

  take(): void {
    this.#isTaken = true;
    this.#lose();
  }

  giveBack(): void {
    this.#isTaken = false;
  }
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

describe("when the lease is lost before appends are acknowledged", () => {
  test("a read that was under way does not answer what is not stored, however soon it ends", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    const gate = new Gate();
    const taker = new Taker();
    const { waiting, reads: handlers } = slowCount();
    await using counter = await openCounter(server.url, {
      around: (bus) => taker.around(gate.around(bus)),
      reads: handlers,
    });
    await counter.host.untilLeading();
    gate.isHolding = true;
    await sender.post(envelope("task.progress"));
    await eventually(() => (gate.held === 1 ? true : undefined));
    const reads = Array.from({ length: 20 }, () => ask(sender, "slow"));
    await eventually(() => (waiting.length === reads.length ? true : undefined));
    // They end before, in the midst of and after what happens in the host when it is told.
    for (const [index, go] of waiting.entries()) {
      if (index === 10) taker.take();
      go();
      await Promise.resolve();
    }
    for (const { error, result } of await Promise.all(reads)) {
      assert.equal(result, undefined);
      assert.equal(error?.retryable, true);
    }
    assert.equal((await sender.bus.streamState(logStream("tasks")))?.lastSeq, 1);
  });

  test("a recovery that is under way writes nothing more", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    const gate = new Gate();
    const taker = new Taker();
    let answer: (() => void) | undefined;
    let isSlow = false;
    let appendsAfter = 0;
    let isLost = false;
    const counting = (bus: Bus): Bus =>
      altered(bus, {
        streamState: async (stream) => {
          if (isSlow && stream === logStream("tasks")) {
            isSlow = false;
            await new Promise<void>((resolve) => {
              answer = resolve;
            });
          }
          return bus.streamState(stream);
        },
        openAppender: (options) => {
          const appender = bus.openAppender(options);
          return altered(appender, {
            append: (...message) => {
              if (isLost) appendsAfter += 1;
              return appender.append(...message);
            },
          });
        },
      });
    await using counter = await openCounter(server.url, {
      around: (bus) => taker.around(gate.around(counting(bus))),
    });
    await counter.host.untilLeading();
    gate.isHolding = true;
    await sender.post(envelope("task.progress"));
    await eventually(() => (gate.held === 1 ? true : undefined));
    isSlow = true;
    gate.lose();
    const go = await eventually(() => answer);
    taker.take();
    isLost = true;
    go();
    await eventually(() => (counter.host.status().role === "standby" ? true : undefined));
    await ask(sender, "count", asked);
    await counter.writer.flush();
    assert.equal(appendsAfter, 0);
    assert.equal((await sender.bus.streamState(logStream("tasks")))?.lastSeq, 1);
    taker.giveBack();
    await eventually(async () =>
      eventsOf(await readLog(sender.bus)).length === 1 ? true : undefined,
    );
  });
});
