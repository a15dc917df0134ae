import assert from "node:assert/strict";
import { test } from "node:test";
import { LateWork } from "../src/late-work.ts";

const late = (work: string, source = "agent:w") => ({ tenant: "acme", source, work });

test("A13 an agent goes on with a work when it is refused for the third time, and is told of once", () => {
  const lateWork = new LateWork();
  const said = Array.from({ length: 6 }, () => lateWork.goesOn(late("t")));
  assert.deepEqual(said, [false, false, true, false, false, false]);
});

test("every work and every agent is counted by itself", () => {
  const lateWork = new LateWork();
  for (const one of [late("t"), late("u"), late("t", "agent:x"), { ...late("t"), tenant: "b" }]) {
    assert.deepEqual([lateWork.goesOn(one), lateWork.goesOn(one)], [false, false]);
  }
  assert.equal(lateWork.goesOn(late("u")), true);
});

test("of many works the longest silent is forgotten, whoever keeps sending is not", () => {
  const lateWork = new LateWork();
  lateWork.goesOn(late("forgotten"));
  lateWork.goesOn(late("kept"));
  for (let count = 0; count < 999; count += 1) {
    lateWork.goesOn(late(`other ${count}`));
    if (count === 500) lateWork.goesOn(late("kept"));
  }
  assert.equal(lateWork.goesOn(late("kept")), true);
  assert.deepEqual(
    [1, 2, 3].map(() => lateWork.goesOn(late("forgotten"))),
    [false, false, true],
  );
});
