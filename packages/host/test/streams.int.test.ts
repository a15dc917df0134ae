/** A stream that is not what it was stops the service; a service that ends leaves nothing behind. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Clock, intakeStreamSpec } from "@harmovela/bus";
import { startNatsServer } from "@harmovela/testkit";
import { hurriedClock } from "./altered.ts";
import { envelope, eventually, openCounter, openSender, rpc } from "./harness.ts";

describe("streams that changed", () => {
  test("an intake recreated under a running leader stops the service", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    await using counter = await openCounter(server.url);
    await counter.host.untilLeading();
    for (let count = 0; count < 20; count += 1) await sender.send(envelope("task.progress"));
    await sender.bus.nats.request("$JS.API.STREAM.DELETE.HV_IN_TASKS", "");
    await sender.bus.provision(intakeStreamSpec("tasks", { replicas: 1 }));
    await assert.rejects(counter.host.done, /HV_IN_TASKS was recreated|the intake is gone/);
    const { role, isReady, failure } = counter.host.status();
    assert.deepEqual({ role, isReady }, { role: "stopped", isReady: false });
    assert.match(failure ?? "", /intake|HV_IN_TASKS/);
  });

  test("a log whose beginning is gone is not folded", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    {
      await using counter = await openCounter(server.url);
      await counter.host.untilLeading();
      for (let count = 0; count < 5; count += 1) await sender.send(envelope("task.progress"));
    }
    const [snapshot] = await sender.bus.openBlobs({ replicas: 1 }).list();
    assert.ok(snapshot);
    await sender.bus.openBlobs({ replicas: 1 }).remove(snapshot.name);
    const cut = JSON.stringify({ seq: 4 });
    await sender.bus.nats.request("$JS.API.STREAM.PURGE.HV_LOG_TASKS", cut);
    await using counter = await openCounter(server.url);
    await assert.rejects(
      counter.host.untilLeading(),
      /HV_LOG_TASKS begins with 4, and no usable snapshot holds what was before it/,
    );
    assert.equal(counter.host.status().isReady, false);
  });
});

describe("the end of a service", () => {
  test("close() while the server is away", async () => {
    await using server = await startNatsServer();
    await using counter = await openCounter(server.url);
    await counter.host.untilLeading();
    await server.kill();
    await eventually(() => (counter.writer.isConnected ? undefined : true));
    await counter.host.close();
    await counter.host.done;
    assert.equal(counter.host.status().role, "stopped");
  });

  test("a read under way when the service and its connections end fails nobody", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => {
      unhandled.push(reason);
    };
    process.on("unhandledRejection", note);
    const waits = new Set<() => void>();
    const clock: Clock = {
      ...hurriedClock,
      after: (ms, fn) => {
        waits.add(fn);
        const cancel = hurriedClock.after(ms, () => {
          waits.delete(fn);
          fn();
        });
        return () => {
          waits.delete(fn);
          cancel();
        };
      },
    };
    let end: (() => void) | undefined;
    let isEnded = false;
    {
      await using counter = await openCounter(server.url, {
        clock,
        reads: {
          count: () => 0,
          slow: async () => {
            await new Promise<void>((resolve) => {
              end = resolve;
            });
            isEnded = true;
            return 0;
          },
        },
      });
      await counter.host.untilLeading();
      const reply = sender.bus.newInbox();
      const cursor = JSON.stringify({ cursor: "HV_LOG_TASKS:1000" });
      sender.bus.nats.publish(rpc("count"), cursor, { reply });
      sender.bus.nats.publish(rpc("slow"), "{}", { reply });
      await eventually(() => end);
    }
    end?.();
    // The read that waits for a position gives up when its time is over.
    await eventually(() => (isEnded && waits.size === 0 ? true : undefined));
    await new Promise(setImmediate);
    process.off("unhandledRejection", note);
    assert.deepEqual(unhandled, []);
  });
});
