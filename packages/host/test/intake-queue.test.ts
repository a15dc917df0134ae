/** What a burst of laborious envelopes may take of one turn (architecture, section 2, fairness). */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Clock, intakeStreamSpec, intakeSubject, MemoryServer } from "@harmovela/bus";
import { domainOf } from "@harmovela/envelope";
import { FakeClock, pass, settled } from "@harmovela/testkit";
import { IntakeQueue } from "../src/intake-queue.ts";
import { envelope, TENANT } from "./harness.ts";

const MESSAGES = 20;
const STEP_MS = 20;

test("validating stops after 50 ms and goes on in the next turn, in order and without loss", async () => {
  const time = new FakeClock();
  const server = new MemoryServer({ clock: time, now: () => time.monotonic() });
  const bus = server.connect({ name: "service" });
  await settled(time, bus.provision(intakeStreamSpec("tasks")));
  for (let count = 0; count < MESSAGES; count += 1) {
    const sent = envelope("task.progress");
    const { type, source } = sent;
    const subject = intakeSubject({ tenant: TENANT, domain: domainOf(type), source, type });
    await settled(time, bus.store(subject, {}, Buffer.from(JSON.stringify(sent))));
  }
  // Each look at the time finds it moved on, as while something laborious is validated.
  let looks = 0;
  const clock: Clock = {
    monotonic: () => {
      looks += 1;
      return time.monotonic() + looks * STEP_MS;
    },
    after: (ms, fn) => time.after(ms, fn),
    soon: (fn) => time.soon(fn),
  };
  const queue = new IntakeQueue({
    bus,
    clock,
    domain: "tasks",
    service: "service:s",
    after: 0,
    onReady: () => {},
  });
  await pass(time, 1_000);
  const taken: number[] = [];
  let turns = 0;
  while (!queue.isEmpty) {
    queue.fetch(256);
    queue.validate(256);
    const { length } = queue.waiting;
    assert.ok(length >= 1 && length <= 3, `${length} in one turn`);
    taken.push(...queue.waiting.map(({ message }) => message.seq));
    queue.shift(length);
    turns += 1;
  }
  assert.deepEqual(
    taken,
    Array.from({ length: MESSAGES }, (_, index) => index + 1),
  );
  assert.ok(turns >= MESSAGES / 3);
  const closing = queue.close();
  await settled(time, closing);
});
