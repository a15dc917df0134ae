import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { CommandFailure } from "../src/command-failure.ts";
import { openStack } from "../src/stack/stack.ts";
import { openStackKeys } from "../src/stack/stack-keys.ts";

let store: string;
beforeEach(() => {
  store = mkdtempSync(join(tmpdir(), "harmovela-store-"));
});
afterEach(() => rmSync(store, { recursive: true, force: true }));

test("keys are made once", () => {
  const { operator, grants } = openStackKeys(store);
  const seed = readFileSync(operator, "utf8");
  assert.equal(openStackKeys(store).operator, operator);
  assert.equal(readFileSync(operator, "utf8"), seed);
  assert.ok(existsSync(grants));
  // Nothing is left of how they were made.
  assert.deepEqual(readdirSync(store), ["keys"]);
});

test("a store that was used without keys gets none", () => {
  mkdirSync(join(store, "jetstream"));
  assert.throws(
    () => openStackKeys(store),
    (error) => error instanceof CommandFailure && /another --store/.test(error.message),
  );
  assert.deepEqual(readdirSync(store), ["jetstream"]);
});

test("a store with keys is opened by no stack without, whichever command asks", async () => {
  openStackKeys(store);
  await assert.rejects(
    openStack({ storeDir: store }),
    (error) => error instanceof CommandFailure && /--secure/.test(error.message),
  );
});

test("keys need a store that stays", async () => {
  await assert.rejects(openStack({ secure: true }), CommandFailure);
});
