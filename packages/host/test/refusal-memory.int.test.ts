/** Refusals that wait until they are stored do not hold what they refuse: it may be large, and a flood of it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { HEADER } from "@harmovela/bus";
import type { Decider } from "@harmovela/envelope";
import { startNatsServer } from "@harmovela/testkit";
import { Gate } from "./altered.ts";
import { type CounterState, createCounterDecider } from "./counter-decider.ts";
import { envelope, eventually, openCounter, openSender } from "./harness.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;
const MESSAGES = 20;

test("a refusal that is not stored yet lets go of the envelope", async () => {
  await using server = await startNatsServer();
  await using sender = await openSender(server.url);
  const base = createCounterDecider();
  const refused: WeakRef<object>[] = [];
  const decider: Decider<CounterState> = {
    ...base,
    decide: (state, arrived, context) => {
      refused.push(new WeakRef(arrived.envelope));
      return base.decide(state, arrived, context);
    },
  };
  const gate = new Gate();
  await using counter = await openCounter(server.url, { decider, around: gate.around });
  await counter.host.untilLeading();
  gate.isHolding = true;
  const inbox = sender.bus.newInbox();
  for (let count = 0; count < MESSAGES; count += 1) {
    await sender.post(envelope("task.failed"), { [HEADER.replyTo]: `${inbox}.${count}` });
  }
  await eventually(() => (gate.held >= MESSAGES ? true : undefined));
  await eventually(() => {
    collect();
    return refused.every((ref) => ref.deref() === undefined) ? true : undefined;
  });
  assert.equal(refused.length, MESSAGES);
  assert.equal(counter.host.status().counters.verdicts ?? 0, 0, "none has left");
  gate.lose();
});
