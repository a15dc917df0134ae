/** A leader whose lease is lost writes nothing more and answers nothing that is not stored (architecture, section 6). */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Bus, logStream } from "@harmovela/bus";
import { startNatsServer } from "@harmovela/testkit";
import { altered, Gate, Taker } from "./altered.ts";
import {
  ask,
  envelope,
  eventsOf,
  eventually,
  openCounter,
  openSender,
  readLog,
  slowCount,
} from "./harness.ts";

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
    await ask(sender, "count", { source: "agent:a" });
    await counter.writer.flush();
    assert.equal(appendsAfter, 0);
    assert.equal((await sender.bus.streamState(logStream("tasks")))?.lastSeq, 1);
    taker.giveBack();
    await eventually(async () =>
      eventsOf(await readLog(sender.bus)).length === 1 ? true : undefined,
    );
  });
});

describe("the bucket of leases", () => {
  test("is asked for with the replicas of the streams", async () => {
    await using server = await startNatsServer();
    let asked: number | undefined;
    const around = (bus: Bus): Bus =>
      altered(bus, {
        provision: (spec) => bus.provision({ ...spec, replicas: 1 }),
        openBlobs: () => bus.openBlobs({ replicas: 1 }),
        openLease: (options) => {
          asked = options.replicas;
          return bus.openLease({ ...options, replicas: 1 });
        },
      });
    await using counter = await openCounter(server.url, { around, replicas: 3 });
    await counter.host.untilLeading();
    assert.equal(asked, 3);
  });
});
