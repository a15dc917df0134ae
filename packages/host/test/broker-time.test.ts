import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock, pass } from "@harmovela/testkit";
import { BrokerTime } from "../src/broker-time.ts";

test("a message that left no entry is judged again after a take-over: its age moves nothing on", () => {
  const time = new BrokerTime(new FakeClock());
  // The leader before had judged all of them, and had fired a timer at 950.
  time.begin(1_000, 950, 5);
  assert.equal(time.instantOf({ seq: 3, time: 900 }, 950), 900);
  assert.equal(time.instantOf({ seq: 4, time: 960 }, 950), 960);
  assert.equal(time.instantOf({ seq: 6, time: 1_010 }, 960), 1_010);
});

test("a clock that was set back before a take-over moves on what is stored after it, and no earlier", async () => {
  const clock = new FakeClock();
  const time = new BrokerTime(clock);
  time.begin(400, 1_000, 5);
  assert.equal(time.now(), 1_000);
  assert.equal(time.instantOf({ seq: 5, time: 990 }, 1_000), 990);
  await pass(clock, 10);
  assert.equal(time.instantOf({ seq: 6, time: 401 }, 1_000), 1_001);
  assert.equal(time.instantOf({ seq: 7, time: 410 }, 1_001), 1_010);
  assert.equal(time.now(), 1_010);
});

test("a clock that is set back under way moves on what follows from what was decided", async () => {
  const clock = new FakeClock();
  const time = new BrokerTime(clock);
  time.begin(1_000, 900, 0);
  assert.equal(time.instantOf({ seq: 1, time: 1_000 }, 900), 1_000);
  await pass(clock, 50);
  // An idle timer was fired at 1,040 meanwhile.
  assert.equal(time.instantOf({ seq: 2, time: 450 }, 1_040), 1_040);
  await pass(clock, 10);
  assert.equal(time.instantOf({ seq: 3, time: 460 }, 1_040), 1_050);
  assert.equal(time.now(), 1_050);
  // Set right again: nothing is moved on any more.
  assert.equal(time.instantOf({ seq: 4, time: 1_060 }, 1_050), 1_060);
  assert.equal(time.instantOf({ seq: 5, time: 1_061 }, 1_060), 1_061);
});
