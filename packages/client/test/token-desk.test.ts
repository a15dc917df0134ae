/** Tokens for many tasks at once: each is got, and the service is asked for a bounded number at a time. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { HarmovelaError } from "@harmovela/failure";
import { FakeClock } from "@harmovela/testkit";
import { TOKENS_AT_ONCE, TokenDesk } from "../src/token-desk.ts";

test("a thousand are asked for one after the other, also where some are refused", async () => {
  let underWay = 0;
  let most = 0;
  const desk = new TokenDesk(async (_verb, { task_id: task }) => {
    underWay += 1;
    most = Math.max(most, underWay);
    await new Promise((resolve) => setImmediate(resolve));
    underWay -= 1;
    if (String(task).endsWith("7")) throw new HarmovelaError("unauthorized", "not yours");
    return { result: { token: `token of ${task}` }, position: "HV_LOG_TASKS:1" } as never;
  }, new FakeClock());
  const asked = Array.from({ length: 1_000 }, (_, index) => desk.token(`t${index}`));
  const got = await Promise.allSettled(asked);
  got.forEach((one, index) => {
    if (index % 10 === 7) assert.equal(one.status, "rejected");
    else assert.deepEqual(one, { status: "fulfilled", value: `token of t${index}` });
  });
  assert.equal(most, TOKENS_AT_ONCE);
  assert.equal(underWay, 0);
});

test("a service that cannot answer now is asked again after a pause, longer each time", async () => {
  const clock = new FakeClock();
  const askedAt: number[] = [];
  const desk = new TokenDesk(async () => {
    askedAt.push(clock.monotonic());
    throw new HarmovelaError("internal_error", "too much is asked", { category: "dependency" });
  }, clock);
  const asked = desk.token("t1").catch((error: unknown) => error);
  let isOver = false;
  void asked.then(() => {
    isOver = true;
  });
  while (!isOver) {
    await new Promise((resolve) => setImmediate(resolve));
    clock.runNext();
  }
  assert.equal(((await asked) as HarmovelaError).code, "internal_error");
  assert.deepEqual(askedAt, [0, 200, 600, 1_200]);
});
