/** Section 5 of the architecture: the broker's time judges, and what came in time counts however late it arrives. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Bus, intakeStream } from "@harmovela/bus";
import type { EventEntry, Instant, LogEntry } from "@harmovela/envelope";
import { startNatsServer } from "@harmovela/testkit";
import fc from "fast-check";
import { altered, Sluice } from "./altered.ts";
import {
  envelope,
  eventsOf,
  eventually,
  openCounter,
  openSender,
  readLog,
  type Sender,
} from "./harness.ts";

const submitted = (task: string, timeout: number) =>
  envelope("task.submitted", { task_id: task, payload: { timeout_ms: timeout } });

const intake = intakeStream("tasks");

function find(log: LogEntry[], type: string, task: string): EventEntry {
  const found = log.find(
    (entry) =>
      entry.kind === "event" && entry.envelope.type === type && entry.envelope.task_id === task,
  );
  assert.ok(found?.kind === "event", `no ${type} of ${task}`);
  return found;
}

/** Posts until the broker has stored something later than `instant`. */
async function untilStoredAfter(sender: Sender, instant: Instant): Promise<void> {
  await eventually(async () => {
    const stored = await sender.bus.read(
      intake,
      await sender.post(envelope("task.progress", { task_id: "other" })),
    );
    return stored !== undefined && stored.time > instant ? true : undefined;
  });
}

describe("broker time", () => {
  test("Hv-At never falls, whatever store times the messages carry", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    const shifts = new Map<number, number>();
    const around = (bus: Bus): Bus =>
      altered(bus, {
        openReader: (stream, options) => {
          const reader = bus.openReader(stream, options);
          if (stream !== intake) return reader;
          const shifted: typeof reader.take = (max) =>
            reader
              .take(max)
              .map((message) =>
                altered(message, { time: message.time + (shifts.get(message.seq) ?? 0) }),
              );
          return altered(reader, { take: shifted });
        },
      });
    await using counter = await openCounter(server.url, { around });
    await counter.host.untilLeading();
    let seq = 0;
    const step = fc.record({
      shift: fc.integer({ min: -3_600_000, max: 3_600_000 }),
      type: fc.constantFrom("task.progress", "task.submitted", "task.failed", "task.completed"),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
        for (const { shift, type } of steps) {
          seq += 1;
          shifts.set(seq, shift);
          const payload = { timeout_ms: Math.abs(shift) % 500 };
          await sender.post(envelope(type, { task_id: `t${seq}`, payload }));
        }
        await eventually(() => (counter.host.status().intake === seq ? true : undefined));
      }),
      { numRuns: 15 },
    );
    const times = (await readLog(sender.bus)).map(({ at }) => at);
    assert.ok(times.length > seq);
    assert.deepEqual(
      times,
      times.toSorted((a, b) => a - b),
    );
  });

  test("a timer that fell due while nobody ran carries its due time", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    {
      await using counter = await openCounter(server.url);
      await counter.host.untilLeading();
      await sender.send(submitted("t", 200));
    }
    const due = find(await readLog(sender.bus), "task.submitted", "t").at + 200;
    await untilStoredAfter(sender, due + 100);
    await using counter = await openCounter(server.url);
    await counter.host.untilLeading();
    await eventually(() => (counter.host.status().isSettled ? true : undefined));
    assert.equal(find(await readLog(sender.bus), "task.timed_out", "t").at, due);
  });

  test("a timer that fell due in a gap of the intake carries its due time", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    {
      await using counter = await openCounter(server.url);
      await counter.host.untilLeading();
      await sender.send(submitted("t", 200));
    }
    const due = find(await readLog(sender.bus), "task.submitted", "t").at + 200;
    await untilStoredAfter(sender, due + 100);
    await sender.post(envelope("task.progress", { task_id: "other" }));
    await sender.bus.nats.request(`$JS.API.STREAM.PURGE.${intake}`, JSON.stringify({ keep: 1 }));
    await using counter = await openCounter(server.url);
    await counter.host.untilLeading();
    await eventually(() => (counter.host.status().isSettled ? true : undefined));
    const log = await readLog(sender.bus);
    assert.ok(log.some(({ kind }) => kind === "intake_gap"));
    assert.equal(find(log, "task.timed_out", "t").at, due);
  });

  test("a report stored in time and delivered late stops the timer", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    const sluice = new Sluice(intake);
    sluice.isOpen = true;
    let looks = 0;
    const looking = (bus: Bus): Bus =>
      altered(bus, {
        streamState: (stream) => {
          if (stream === intake) looks += 1;
          return bus.streamState(stream);
        },
      });
    await using counter = await openCounter(server.url, {
      around: (bus) => sluice.around(looking(bus)),
    });
    await counter.host.untilLeading();
    await sender.send(submitted("t", 1_000));
    sluice.isOpen = false;
    const report = await sender.post(envelope("task.progress", { task_id: "t" }));
    const stored = await sender.bus.read(intake, report);
    const due = find(await readLog(sender.bus), "task.submitted", "t").at + 1_000;
    assert.ok(stored !== undefined && stored.time < due);
    await untilStoredAfter(sender, due + 50);
    // It wants to write the timer, asks whether the intake holds something older, and is told so.
    const before = looks;
    await eventually(() => (looks > before + 10 ? true : undefined));
    assert.ok(!eventsOf(await readLog(sender.bus)).includes("task.timed_out t"));
    sluice.open();
    await eventually(() => (counter.host.status().isSettled ? true : undefined));
    const events = eventsOf(await readLog(sender.bus));
    assert.ok(events.includes("task.progress t"));
    assert.ok(!events.includes("task.timed_out t"));
  });
});
