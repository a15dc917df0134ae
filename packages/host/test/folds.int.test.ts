/** P4 of the architecture: leader, standby and a fold of what is stored have the same state. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { logStream } from "@harmovela/bus";
import type { Decider } from "@harmovela/envelope";
import { startNatsServer } from "@harmovela/testkit";
import { Fold } from "../src/index.ts";
import { createCounterDecider, describeCounter } from "./counter-decider.ts";
import {
  type Counter,
  envelope,
  eventually,
  openCounter,
  openObserver,
  openSender,
  type Sender,
} from "./harness.ts";
import { createObserverDecider, describeObserver } from "./observer-decider.ts";

/** The decider, and the state that its newest fold works on. */
function watched<State>(decider: Decider<State>): { decider: Decider<State>; state(): State } {
  let state: State | undefined;
  return {
    decider: {
      ...decider,
      initial: () => {
        state = decider.initial();
        return state;
      },
    },
    state: () => {
      if (state === undefined) throw new Error("not folded yet");
      return state;
    },
  };
}

async function load(sender: Sender): Promise<void> {
  for (let round = 0; round < 30; round += 1) {
    const task_id = `t${round}`;
    await Promise.all([
      sender.send(envelope("task.submitted", { task_id, payload: { timeout_ms: 30 + round * 7 } })),
      sender.send(
        envelope("task.progress", { task_id: `t${round - 1}`, source: `agent:${round % 3}` }),
      ),
      sender.send(envelope("task.completed", { task_id })),
      sender.send(envelope("task.failed", { task_id })),
    ]);
  }
}

/** Resolves when all have folded the same, and it is everything there is. */
async function untilEven(
  sender: Sender,
  domain: "tasks" | "beliefs",
  all: Counter[],
): Promise<number> {
  return eventually(async () => {
    const stored = await sender.bus.streamState(logStream(domain));
    const positions = all.map(({ host }) => host.status().position);
    const isEven = positions.every((position) => position === stored?.lastSeq);
    return isEven ? stored?.lastSeq : undefined;
  });
}

describe("one log, one state", () => {
  test("a counter: leader, standby, late standby and a plain fold", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    const [leading, following, late] = [1, 2, 3].map(() => watched(createCounterDecider()));
    assert.ok(leading && following && late);
    await using leader = await openCounter(server.url, { decider: leading.decider });
    await leader.host.untilLeading();
    await using standby = await openCounter(server.url, { decider: following.decider });
    await load(sender);
    const isDone = (): boolean => leading.state().timers.length + leading.state().plans.size === 0;
    await eventually(() => (isDone() && leader.host.status().isSettled ? true : undefined));
    await using other = await openCounter(server.url, { decider: late.decider });
    const last = await untilEven(sender, "tasks", [leader, standby, other]);
    const fold = new Fold(createCounterDecider());
    for (let seq = 1; seq <= last; seq += 1) {
      const stored = await sender.bus.read(logStream("tasks"), seq);
      assert.ok(stored);
      fold.read(stored);
    }
    assert.equal(fold.foreign, 0);
    const expected = describeCounter(fold.state);
    assert.deepEqual(describeCounter(leading.state()), expected);
    assert.deepEqual(describeCounter(following.state()), expected);
    assert.deepEqual(describeCounter(late.state()), expected);
    assert.ok(fold.state.counts.size > 3);
  });

  test("an observer: what it has seen of another log is in every fold at the same place", async () => {
    await using server = await startNatsServer();
    await using sender = await openSender(server.url);
    const [leading, following, late] = [1, 2, 3].map(() => watched(createObserverDecider()));
    assert.ok(leading && following && late);
    const described = watched(createCounterDecider());
    await using tasks = await openCounter(server.url, { decider: described.decider });
    await tasks.host.untilLeading();
    await using leader = await openObserver(server.url, { decider: leading.decider });
    await leader.host.untilLeading();
    await using standby = await openObserver(server.url, { decider: following.decider });
    await load(sender);
    const { state } = leading;
    const timersLeft = (): number => described.state().timers.length;
    await eventually(() =>
      state().owed.size === 0 &&
      state().outcomes.size === 90 &&
      timersLeft() === 0 &&
      tasks.host.status().isSettled
        ? true
        : undefined,
    );
    // The others have seen of the other log what this entry says.
    const fact = envelope("memory.fact.added", { payload: { fact_id: "f", value: 1 } });
    await sender.send(fact);
    await using other = await openObserver(server.url, { decider: late.decider });
    await untilEven(sender, "beliefs", [leader, standby, other]);
    const expected = describeObserver(leading.state());
    assert.deepEqual(describeObserver(following.state()), expected);
    assert.deepEqual(describeObserver(late.state()), expected);
    assert.equal(leading.state().accepted, 1);
  });
});
