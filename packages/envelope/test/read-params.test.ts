import assert from "node:assert/strict";
import { test } from "node:test";
import { flagParam, optionalTextParam, textParam, wholeParam } from "@harmovela/envelope";
import { HarmovelaError, type JsonObject } from "@harmovela/failure";

function isRefused(read: () => unknown): boolean {
  try {
    read();
    return false;
  } catch (error) {
    return error instanceof HarmovelaError && error.code === "invalid_query";
  }
}

test("a question of a read is taken as it is meant, or refused", () => {
  const span = { min: 1, max: 5, fallback: 3 };
  assert.equal(textParam({ task_id: "t" }, "task_id"), "t");
  assert.equal(optionalTextParam({}, "key"), undefined);
  assert.equal(wholeParam({}, "limit", span), 3);
  assert.deepEqual(
    [1, 5].map((limit) => wholeParam({ limit }, "limit", span)),
    [1, 5],
  );
  const flags: JsonObject[] = [{}, { verify: null }, { verify: true }];
  assert.deepEqual(
    flags.map((params) => flagParam(params, "verify")),
    [false, false, true],
  );
  for (const bad of ["", 1, null, {}]) {
    assert.ok(
      isRefused(() => textParam({ task_id: bad }, "task_id")),
      String(bad),
    );
    assert.ok(
      isRefused(() => optionalTextParam({ task_id: bad }, "task_id")),
      String(bad),
    );
  }
  assert.ok(isRefused(() => textParam({}, "task_id")));
  for (const bad of [0, 6, 1.5, "3", null, Number.NaN]) {
    assert.ok(
      isRefused(() => wholeParam({ limit: bad }, "limit", span)),
      String(bad),
    );
  }
  for (const bad of ["true", 1]) assert.ok(isRefused(() => flagParam({ verify: bad }, "verify")));
});
