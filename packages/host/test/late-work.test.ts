import assert from "node:assert/strict";
import { test } from "node:test";
import pino from "pino";
import { Alarms } from "../src/alarms.ts";
import { Counters } from "../src/counters.ts";
import { type Late, LateWork } from "../src/late-work.ts";

const late = (work: string, source = "agent:w") => ({ tenant: "acme", source, work });

/** Each refusal with whether an operator is told of it. */
function open(): { refused(late: Late): boolean; counters: Counters } {
  const counters = new Counters("tasks");
  const lateWork = new LateWork(counters, new Alarms(pino({ level: "silent" }), counters));
  return {
    counters,
    refused: (late) => {
      const before = counters.get("alarms");
      lateWork.refused(late);
      return counters.get("alarms") > before;
    },
  };
}

test("A13 an agent goes on with a work when it is refused for the third time, and is told of once", () => {
  const lateWork = open();
  const said = Array.from({ length: 6 }, () => lateWork.refused(late("t")));
  assert.deepEqual(said, [false, false, true, false, false, false]);
  assert.equal(lateWork.counters.get("late"), 6);
});

test("every work and every agent is counted by itself", () => {
  const lateWork = open();
  for (const one of [late("t"), late("u"), late("t", "agent:x"), { ...late("t"), tenant: "b" }]) {
    assert.deepEqual([lateWork.refused(one), lateWork.refused(one)], [false, false]);
  }
  assert.equal(lateWork.refused(late("u")), true);
});

test("of many works the longest silent is forgotten, whoever keeps sending is not", () => {
  const lateWork = open();
  lateWork.refused(late("forgotten"));
  lateWork.refused(late("kept"));
  for (let count = 0; count < 999; count += 1) {
    lateWork.refused(late(`other ${count}`));
    if (count === 500) lateWork.refused(late("kept"));
  }
  assert.equal(lateWork.refused(late("kept")), true);
  assert.deepEqual(
    [1, 2, 3].map(() => lateWork.refused(late("forgotten"))),
    [false, false, true],
  );
});
