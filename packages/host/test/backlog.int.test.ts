/** Hundreds of large envelopes that wait in the intake when a service starts. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { startNatsServer } from "@harmovela/testkit";
import { envelope, eventsOf, openCounter, openSender, readLog, TENANT } from "./harness.ts";

const COUNT = 400;
const BYTES = 500_000;

describe("a backlog of large envelopes", () => {
  test("is judged in order without the server cutting anybody off", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    {
      await using counter = await openCounter(server.url);
      await counter.host.untilLeading();
    }
    const message = "x".repeat(BYTES);
    const subject = `hv.${TENANT}.in.tasks.agent:a.task.progress`;
    for (let count = 1; count <= COUNT; count += 1) {
      const sent = envelope("task.progress", { task_id: `t${count}`, payload: { message } });
      sender.bus.nats.publish(subject, JSON.stringify(sent));
      if (count % 20 === 0) await sender.bus.flush();
    }
    await using counter = await openCounter(server.url);
    await counter.host.untilLeading();
    const last = await sender.send(envelope("task.progress", { task_id: "last" }));
    assert.equal(last.type, "event.acknowledged");
    assert.doesNotMatch(server.log, /Slow Consumer/);
    const { counters, role } = counter.host.status();
    assert.deepEqual([role, counters.recoveries, counters.accepted], ["leader", 0, COUNT + 1]);
    const expected = Array.from({ length: COUNT }, (_, index) => `task.progress t${index + 1}`);
    assert.deepEqual(eventsOf(await readLog(sender.bus)), [...expected, "task.progress last"]);
  });
});
