import assert from "node:assert/strict";
import { test } from "node:test";
import { HarmovelaError, toHarmovelaError } from "../src/index.ts";

test("category and retry follow from the code", () => {
  const rows = [
    ["task_timeout", "dependency", "now"],
    ["task_error", "conflict", "never"],
    ["no_service", "dependency", "now"],
    ["effect_outcome_uncertain", "uncertain_effect", "never"],
    ["append_conflict", "conflict", "never"],
  ] as const;
  for (const [code, category, retry] of rows) {
    const error = new HarmovelaError(code, "x");
    assert.deepEqual([error.code, error.category, error.retry], [code, category, retry]);
    assert.equal(error.name, "HarmovelaError");
    assert.ok(error instanceof Error);
  }
});

test("a stated retry and category win, on the wire too", () => {
  const error = new HarmovelaError("task_error", "busy", {
    category: "dependency",
    retry: { afterMs: 50 },
  });
  assert.deepEqual(error.retry, { afterMs: 50 });
  const payload = error.toErrorPayload();
  assert.equal(payload.retryable, true);
  assert.deepEqual(payload.details?.failure, {
    category: "dependency",
    code: "task_error",
    class_retryable: true,
    action: "bounded_retry",
  });
});

test("a local code travels as internal_error without its message", () => {
  const payload = new HarmovelaError(
    "invariant_broken",
    "entry 7 breaks the rule",
  ).toErrorPayload();
  assert.equal(payload.code, "internal_error");
  assert.equal(payload.message, "internal error");
  assert.equal(payload.retryable, false);
});

test("an error of ours is itself, and errors of the operating system are told by their code", () => {
  const own = new HarmovelaError("closed", "closed");
  assert.equal(toHarmovelaError(own), own);
  const rows = [
    [{ code: "ECONNREFUSED" }, "connection_error"],
    [{ code: "ETIMEDOUT" }, "timeout"],
    [{ name: "TimeoutError" }, "timeout"],
    [{ code: "ENOENT" }, "internal_error"],
    ["ECONNREFUSED", "internal_error"],
  ] as const;
  for (const [caught, code] of rows) assert.equal(toHarmovelaError(caught).code, code);
});
