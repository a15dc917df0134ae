import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { failureRecord, HarmovelaError, reject, toHarmovelaError } from "../src/index.ts";

const KEYS = new Set([
  "category",
  "code",
  "stage",
  "attempt",
  "max_attempts",
  "class_retryable",
  "action",
]);

/** A text that cannot occur by chance, as a caller would hold it. */
const secret = fc
  .tuple(fc.constantFrom("sk-", "Bearer ", "prompt: ", "    at fn (/app/x.ts:1:2) "), fc.uuid())
  .map(([kind, id]) => kind + id);

test("a failure record holds what follows from the code and what its maker said", () => {
  assert.deepEqual(failureRecord("task_timeout", { stage: "rules", attempt: 2, maxAttempts: 3 }), {
    category: "dependency",
    code: "task_timeout",
    stage: "rules",
    attempt: 2,
    max_attempts: 3,
    class_retryable: true,
    action: "bounded_retry",
  });
});

test("a stated category replaces the usual one and brings its own action", () => {
  const record = failureRecord("internal_error", { category: "dependency" });
  assert.equal(record.category, "dependency");
  assert.equal(record.class_retryable, true);
  assert.equal(record.action, "bounded_retry");
});

test("nothing outside the allow-list enters a failure record, whatever the types are told", () => {
  fc.assert(
    fc.property(secret, fc.string(), (hidden, key) => {
      const facts = {
        stage: hidden,
        category: hidden,
        attempt: hidden,
        maxAttempts: Number.NaN,
        message: hidden,
        [key]: hidden,
      };
      // Only a cast can bring such values here: that is what the allow-list is for.
      const record = failureRecord(hidden as "task_error", facts as object);
      assert.ok(!JSON.stringify(record).includes(hidden));
      assert.deepEqual(
        Object.keys(record).filter((name) => !KEYS.has(name)),
        [],
      );
      assert.equal(record.code, "internal_error");
    }),
  );
});

test("a foreign error's message, stack, cause and fields stay on this side", () => {
  fc.assert(
    fc.property(
      secret,
      fc.constantFrom("ECONNRESET", "ETIMEDOUT", "EWHATEVER", 7),
      (hidden, code) => {
        const foreign = Object.assign(new Error(hidden, { cause: hidden }), {
          code,
          password: hidden,
          name: hidden,
        });
        for (const caught of [foreign, hidden, { message: hidden, code }, [hidden]]) {
          const error = toHarmovelaError(caught);
          assert.ok(!error.message.includes(hidden));
          assert.ok(!JSON.stringify(error.toErrorPayload({ stage: "bus" })).includes(hidden));
          assert.equal(error.cause, caught);
        }
      },
    ),
  );
});

test("the cause and the stack of our own errors do not travel", () => {
  fc.assert(
    fc.property(secret, (hidden) => {
      const error = new HarmovelaError("task_error", "the task has ended", {
        cause: new Error(hidden),
        details: { state: "completed", error: new Error(hidden), run: () => hidden },
      });
      const sent = JSON.stringify(error.toErrorPayload());
      assert.ok(!sent.includes(hidden));
      assert.ok(!sent.includes("harmovela-error"));
    }),
  );
});

test("values that cannot even be read are internal errors", () => {
  const trap = (): never => {
    throw new Error("no");
  };
  const hostile = [new Proxy({}, { get: trap }), new Proxy({}, { getPrototypeOf: trap })];
  for (const caught of [undefined, null, 0, Symbol("x"), ...hostile, Object.create(null)])
    assert.equal(toHarmovelaError(caught).code, "internal_error");
});

test("reject takes retryable from the table and keeps the record under details.failure", () => {
  assert.deepEqual(reject("internal_error", "no judge", { service: "x" }, { stage: "rules" }), {
    code: "internal_error",
    message: "no judge",
    retryable: true,
    details: {
      service: "x",
      failure: {
        category: "internal",
        code: "internal_error",
        stage: "rules",
        class_retryable: false,
        action: "observe",
      },
    },
  });
  assert.equal(reject("task_error", "no").retryable, false);
});

test("details cannot replace the failure record", () => {
  const { details } = reject("task_error", "no", { failure: "mine" });
  assert.deepEqual(details?.failure, failureRecord("task_error"));
});
