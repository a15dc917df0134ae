/** What one sender or one plan can take up, and what a restart has to do again (architecture, sections 2, 4 and 6). */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { intakeStream } from "@harmovela/bus";
import { startNatsServer } from "@harmovela/testkit";
import { Sluice } from "./altered.ts";
import { createCounterDecider } from "./counter-decider.ts";
import { envelope, eventually, openCounter, openSender, readLog, TENANT } from "./harness.ts";

const intake = intakeStream("tasks");

/** Lengths of the runs of equal values. */
function runs(values: string[]): { value: string; length: number }[] {
  const found: { value: string; length: number }[] = [];
  for (const value of values) {
    const last = found.at(-1);
    if (last?.value === value) last.length += 1;
    else found.push({ value, length: 1 });
  }
  return found;
}

describe("fairness", () => {
  test("a long plan and a flood take turns of 64 steps and 256 messages", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    const sluice = new Sluice(intake);
    await using counter = await openCounter(server.url, {
      decider: createCounterDecider(1_000),
      around: sluice.around,
    });
    await counter.host.untilLeading();
    const messages = 3_000;
    const subject = (type: string) => `hv.${TENANT}.in.tasks.agent:a.${type}`;
    const plan = envelope("task.completed", { task_id: "long" });
    sender.bus.nats.publish(subject(plan.type), JSON.stringify(plan));
    for (let count = 0; count < messages; count += 1) {
      const sent = envelope("task.progress");
      sender.bus.nats.publish(subject(sent.type), JSON.stringify(sent));
    }
    await eventually(() => (sluice.arrived() === messages + 1 ? true : undefined));
    sluice.open();
    await eventually(() => (counter.host.status().isSettled ? true : undefined));
    const log = await readLog(sender.bus);
    const begun = log.findIndex(({ kind }) => kind === "begun");
    const entries = log.slice(begun + 1).map(({ cause }) => ("in" in cause ? "message" : "step"));
    assert.equal(entries.filter((entry) => entry === "step").length, 1_001);
    assert.equal(entries.filter((entry) => entry === "message").length, messages);
    const contended = entries.slice(
      0,
      Math.min(entries.lastIndexOf("step"), entries.lastIndexOf("message")),
    );
    for (const { value, length } of runs(contended)) {
      assert.ok(length <= (value === "step" ? 64 : 256), `${length} times ${value}`);
    }
    assert.ok(runs(contended).length > 20);
  });
});

describe("refusals", () => {
  test("300 of one source: the burst is logged one by one, the rest is counted; nobody else is affected", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    {
      await using counter = await openCounter(server.url);
      await counter.host.untilLeading();
    }
    const inbox = sender.bus.newInbox();
    let verdicts = 0;
    sender.bus.subscribe(inbox, () => {
      verdicts += 1;
    });
    const { headers } = await import("@nats-io/nats-core");
    const replyTo = headers();
    replyTo.set("Hv-Reply-To", inbox);
    for (let count = 0; count < 300; count += 1) {
      const sent = JSON.stringify(envelope("task.failed", { payload: { bad: count } }));
      const subject = `hv.${TENANT}.in.tasks.agent:a.task.failed`;
      sender.bus.nats.publish(subject, sent, { headers: replyTo });
    }
    // A flush says that they have reached the server, not that they are stored.
    const last = await eventually(() => sender.bus.read(intake, 300));
    const first = await sender.bus.read(intake, 1);
    assert.ok(first !== undefined);
    await using counter = await openCounter(server.url);
    await counter.host.untilLeading();
    await eventually(() => (verdicts === 300 ? true : undefined));
    await sender.send(envelope("task.failed", { source: "agent:b" }));
    const counted = await eventually(async () => {
      const log = await readLog(sender.bus);
      const logged = log.filter(
        (entry) => entry.kind === "event" && entry.envelope.target === "agent:a",
      ).length;
      const refused = log.flatMap((entry) => (entry.kind === "refused" ? [entry.body] : []));
      const total = refused.reduce((sum, body) => sum + Number(body.total), 0);
      return logged + total === 300 ? { log, logged, refused, total } : undefined;
    });
    const gained = ((last.time - first.time) / 1_000) * 20;
    assert.ok(
      counted.logged >= 200 && counted.logged <= 200 + Math.ceil(gained),
      `${counted.logged}`,
    );
    assert.ok(counted.refused.length <= 2, `${counted.refused.length} entries`);
    const named = counted.refused.map(({ counts }) => counts as Record<string, number>);
    const ofSource = named.reduce((sum, counts) => sum + (counts[`${TENANT} agent:a`] ?? 0), 0);
    assert.equal(ofSource, counted.total);
    const toOthers = counted.log.filter(
      (entry) => entry.kind === "event" && entry.envelope.target === "agent:b",
    );
    assert.equal(toOthers.length, 1);
  });
});

describe("messages that leave no entry", () => {
  test("after 1,000 of them a position is kept, and a restart begins there", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    const repeated = envelope("task.progress");
    {
      await using counter = await openCounter(server.url);
      await counter.host.untilLeading();
      await sender.send(repeated);
      const subject = `hv.${TENANT}.in.tasks.agent:a.task.progress`;
      for (let count = 0; count < 1_100; count += 1) {
        sender.bus.nats.publish(subject, JSON.stringify(repeated));
      }
      await eventually(() => (counter.host.status().intake === 1_101 ? true : undefined));
      await eventually(() => (counter.host.status().isSettled ? true : undefined));
      assert.equal(counter.host.status().counters.duplicates, 1_100);
    }
    const positions = (await readLog(sender.bus)).flatMap((entry) =>
      entry.kind === "position" ? [Number(entry.body.intake)] : [],
    );
    assert.equal(positions.length, 1);
    const kept = positions[0] ?? 0;
    assert.ok(kept >= 1_001 && kept <= 1_101, `${kept}`);
    const sluice = new Sluice(intake);
    sluice.isOpen = true;
    await using counter = await openCounter(server.url, { around: sluice.around });
    await counter.host.untilLeading();
    assert.equal(sluice.after, kept);
    await eventually(() => (counter.host.status().intake === 1_101 ? true : undefined));
    assert.equal(counter.host.status().counters.duplicates, 1_101 - kept);
  });
});
