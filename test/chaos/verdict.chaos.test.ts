/** The moments between an append and its verdict, and verdicts that nobody reads. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Envelope } from "@harmovela/envelope";
import { startNatsServer } from "@harmovela/testkit";
import { eventually } from "./deadline.ts";
import { Fleet } from "./fleet.ts";
import type { KillOrder } from "./kill-order.ts";
import { type Answer, envelope, Sender } from "./sender.ts";
import { assertGreen, controlsOf, eventsOf, readRecords, untilSettled } from "./stored-log.ts";

const TENANT = "acme";

const POINTS: KillOrder[] = [
  { of: "entry", n: 1, point: "before" },
  { of: "entry", n: 1, point: "published" },
  { of: "entry", n: 1, point: "acked" },
  { n: 1, point: "verdict" },
];

interface Kind {
  name: string;
  /** What must be there before, and the envelope in question. */
  make(task: string): { before: Envelope[]; sent: Envelope };
  isRight(answer: Answer): boolean;
}

const KINDS: Kind[] = [
  {
    name: "an accepted envelope",
    make: (task) => ({ before: [], sent: envelope("agent:a", "task.submitted", task) }),
    isRight: ({ type }) => type === "event.acknowledged",
  },
  {
    name: "a refused envelope",
    make: (task) => ({
      before: [envelope("agent:a", "task.submitted", task)],
      sent: envelope("agent:a", "task.completed", task),
    }),
    isRight: ({ type, payload }) =>
      type === "event.rejected" && payload.error?.code === "task_error",
  },
  {
    name: "a cancel that begins a cascade",
    make: (task) => ({
      before: [
        envelope("agent:a", "task.submitted", task),
        envelope("agent:a", "task.submitted", `${task}-c`, { parent_task_id: task }),
      ],
      sent: envelope("agent:a", "task.cancelled", task),
    }),
    // The answer to a later attempt may come when the cascade is over.
    isRight: ({ type, payload }) =>
      type === "event.acknowledged" && (payload.pending === true || payload.duplicate === true),
  },
];

describe("verdicts", () => {
  test("kill -9 between append and verdict: the sender is answered, one entry", async (t) => {
    await using server = await startNatsServer();
    await using sender = await Sender.open(server.url, TENANT);
    await using fleet = await Fleet.open({ url: server.url, leaseTtlMs: 600, isLeaseFreed: true });
    const sent: { what: string; envelope: Envelope; answer: Answer }[] = [];
    let living = fleet.start();
    for (const order of POINTS) {
      for (const { name, make, isRight } of KINDS) {
        const what = `${name}, ${order.point}`;
        const { before, sent: inQuestion } = make(`task-${sent.length}`);
        for (const each of before) await sender.send(each);
        await living.kill();
        const doomed = fleet.start({ ...order, ...(order.of && { tenant: TENANT }) });
        await doomed.until("leading");
        const answered = sender.send(inQuestion);
        await doomed.ended;
        // What the server had for the sender when the process ended arrives before this.
        const flushed = sender.bus.flush().then(() => false);
        const isEarly = await Promise.race([answered.then(() => true), flushed]);
        assert.equal(isEarly, false, `${what}: a verdict before its time`);
        living = fleet.start();
        const answer = await answered;
        assert.ok(isRight(answer), `${what}: ${JSON.stringify(answer)}`);
        sent.push({ what, envelope: inQuestion, answer });
      }
    }
    const records = await untilSettled(sender.bus, 10_000);
    const report = assertGreen(records);
    const events = eventsOf(records);
    const begun = controlsOf(records, "begun").map(({ seq }) => seq);
    for (const { what, envelope: asked, answer } of sent) {
      const isRefused = answer.type === "event.rejected";
      const entries = events.filter(({ envelope: { id, type, causation_id } }) =>
        isRefused ? type === "event.rejected" && causation_id === asked.id : id === asked.id,
      );
      assert.equal(entries.length, 1, what);
      const position = Number(answer.payload.cursor?.split(":")[1]);
      if (answer.payload.pending) assert.ok(begun.includes(position), what);
      else if (!isRefused) assert.equal(position, entries[0]?.seq, what);
    }
    assert.equal(begun.length, POINTS.length);
    t.diagnostic(`${server.version}: ${fleet.killed} kills, ${report.entries} entries`);
  });

  test("a verdict that nobody reads: the same bytes again resolve, one entry", async () => {
    await using server = await startNatsServer();
    await using sender = await Sender.open(server.url, TENANT);
    await using fleet = await Fleet.open({ url: server.url, leaseTtlMs: 600 });
    await using coordinator = fleet.start();
    await coordinator.until("leading");
    for (const [place, { name, make, isRight }] of KINDS.entries()) {
      const { before, sent } = make(`task-${place}`);
      for (const each of before) await sender.send(each);
      await sender.post(sent, "_INBOX.nobody.listens");
      const entry = await eventually(10_000, `${name} is in the log`, async () =>
        eventsOf(await readRecords(sender.bus)).find(
          ({ envelope: { id, causation_id } }) => id === sent.id || causation_id === sent.id,
        ),
      );
      const answer = await sender.send(sent);
      assert.ok(isRight(answer), `${name}: ${JSON.stringify(answer)}`);
      if (answer.type === "event.rejected") {
        const { id } = answer as unknown as Envelope;
        assert.equal(id, entry.envelope.id, "the refusal that was logged");
      } else {
        assert.equal(answer.payload.duplicate, true);
      }
    }
    const records = await untilSettled(sender.bus, 10_000);
    assertGreen(records);
    const ids = eventsOf(records).map(({ envelope: { id } }) => id);
    assert.equal(new Set(ids).size, ids.length);
    const refusals = eventsOf(records).filter(({ envelope }) => envelope.type === "event.rejected");
    assert.equal(refusals.length, 1);
    assert.equal(controlsOf(records, "begun").length, 1);
  });
});
