/** What the environment says of a process: every problem at once, and the defaults of what is not said. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ConfigError, readConfig, SOURCE_LIMITS } from "../src/index.ts";

test("what each source may send: the default, another rate, none", () => {
  assert.deepEqual(readConfig({}).sourceLimits, SOURCE_LIMITS);
  const set = { HARMOVELA_SOURCE_MESSAGES_PER_S: "50", HARMOVELA_SOURCE_BYTES_PER_S: "0" };
  const { sourceLimits } = readConfig(set);
  assert.deepEqual(sourceLimits, { messagesPerSecond: 50, bytesPerSecond: 0 });
});

test("rates that are none are told together", () => {
  const bad = { HARMOVELA_SOURCE_MESSAGES_PER_S: "-1", HARMOVELA_SOURCE_BYTES_PER_S: "many" };
  assert.throws(
    () => readConfig(bad),
    (error) =>
      error instanceof ConfigError &&
      /HARMOVELA_SOURCE_MESSAGES_PER_S.*HARMOVELA_SOURCE_BYTES_PER_S/.test(error.message),
  );
});
