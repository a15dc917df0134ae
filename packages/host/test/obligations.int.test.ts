/** A decider that cannot fold what the host writes: what it owes is settled as failed, what it was sent is refused or passed over. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Decider, DomainEntry } from "@harmovela/envelope";
import { startNatsServer } from "@harmovela/testkit";
import { type CounterState, createCounterDecider } from "./counter-decider.ts";
import {
  envelope,
  errorOf,
  eventsOf,
  eventually,
  openCounter,
  openSender,
  readLog,
} from "./harness.ts";

/** The counter, whose `evolve` throws on some entries. */
function failingOn(isBad: (entry: DomainEntry) => boolean): Decider<CounterState> {
  const base = createCounterDecider();
  return {
    ...base,
    evolve: (state, entry) => {
      if (isBad(entry)) throw new Error("boom");
      base.evolve(state, entry);
    },
  };
}

describe("an entry that evolve cannot fold", () => {
  test("of an obligation: it is settled as failed and the next obligation is met", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    const decider = failingOn(
      ({ kind, ...entry }) =>
        kind === "event" &&
        "envelope" in entry &&
        entry.envelope.type === "task.timed_out" &&
        entry.envelope.task_id === "bad",
    );
    await using counter = await openCounter(server.url, { decider });
    await counter.host.untilLeading();
    for (const task of ["bad", "good"]) {
      const payload = { timeout_ms: task === "bad" ? 50 : 100 };
      await sender.send(envelope("task.submitted", { task_id: task, payload }));
    }
    await eventually(async () =>
      eventsOf(await readLog(sender.bus)).includes("task.timed_out good") ? true : undefined,
    );
    const log = await readLog(sender.bus);
    assert.equal(log.filter(({ kind }) => kind === "obligation_failed").length, 1);
    assert.ok(!eventsOf(log).includes("task.timed_out bad"));
    assert.equal(counter.host.status().counters.obligations_failed, 1);
    assert.ok(counter.host.status().alarms.some(({ alarm }) => alarm.startsWith("obligation")));
    // What is stored can be folded by whoever comes next.
    await using standby = await openCounter(server.url, { decider });
    await eventually(() => (standby.host.status().isReady ? true : undefined));
    assert.equal(standby.host.status().position, log.length);
  });

  test("and whose refusal it cannot fold either: the envelope is passed over, the next one judged", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    const decider = failingOn(
      (entry) =>
        entry.kind === "event" &&
        (entry.envelope.source === "agent:bad" || entry.envelope.target === "agent:bad"),
    );
    await using counter = await openCounter(server.url, { decider });
    await counter.host.untilLeading();
    await sender.post(envelope("task.progress", { source: "agent:bad" }));
    const verdict = await sender.send(envelope("task.progress"));
    assert.equal(verdict.type, "event.acknowledged");
    assert.equal(counter.host.status().counters.dropped, 1);
    assert.equal(counter.host.status().role, "leader");
    assert.equal(eventsOf(await readLog(sender.bus)).length, 1);
  });

  test("once only: the envelope is refused as retryable and can be sent again", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    let isBroken = true;
    const decider = failingOn((entry) => isBroken && entry.kind === "begun");
    await using counter = await openCounter(server.url, { decider });
    await counter.host.untilLeading();
    const sent = envelope("task.completed", { task_id: "t" });
    assert.equal(errorOf(await sender.send(sent)).retryable, true);
    isBroken = false;
    assert.equal((await sender.send(sent)).type, "event.acknowledged");
    await eventually(() => (counter.host.status().isSettled ? true : undefined));
    const events = eventsOf(await readLog(sender.bus));
    assert.equal(events.filter((line) => line === "task.completed t").length, 1);
  });
});

describe("two tenants whose plans have the same id", () => {
  /** Both are judged in one batch, so their own events are owed one right after the other. */
  async function postBoth(url: string): Promise<void> {
    {
      await using counter = await openCounter(url);
      await counter.host.untilLeading();
    }
    for (const tenant of ["first", "second"]) {
      await using sender = await openSender(url, tenant);
      await sender.post(envelope("task.completed", { id: "same", task_id: tenant }));
    }
  }

  test("are two obligations: none is taken for the other that its entry did not discharge", async () => {
    await using server = await startNatsServer();
    await postBoth(server.url);
    await using counter = await openCounter(server.url, { decider: createCounterDecider(0) });
    await using sender = await openSender(server.url);
    await eventually(async () => {
      const events = eventsOf(await readLog(sender.bus));
      return events.includes("task.completed first") && events.includes("task.completed second")
        ? true
        : undefined;
    });
    assert.deepEqual(counter.host.status().alarms, []);
  });

  test("and where one cannot be folded, the other one is met", async () => {
    await using server = await startNatsServer();
    await postBoth(server.url);
    const base = createCounterDecider(0);
    const decider: Decider<CounterState> = {
      ...base,
      evolve: (state, entry) => {
        if (entry.kind === "event" && entry.tenant === "first") throw new Error("boom");
        base.evolve(state, entry);
      },
    };
    await using counter = await openCounter(server.url, { decider });
    await using sender = await openSender(server.url);
    await eventually(async () => {
      const log = await readLog(sender.bus);
      return log.some(({ kind }) => kind === "obligation_failed") &&
        eventsOf(log).includes("task.completed second")
        ? true
        : undefined;
    });
    assert.equal(counter.host.status().counters.obligations_failed, 1);
  });
});
