/** The deliberate faults of `npm run mutants` still fit the code that they are put into. */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ALL_MUTANTS } from "../../scripts/mutants/all.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));

test("each fault replaces a text that is there once, and names tests that exist", () => {
  assert.equal(new Set(ALL_MUTANTS.map(({ name }) => name)).size, ALL_MUTANTS.length);
  const wrong = ALL_MUTANTS.filter(
    ({ file, find, tests }) =>
      readFileSync(root + file, "utf8").split(find).length !== 2 ||
      !tests.every((path) => existsSync(root + path)),
  );
  assert.deepEqual(
    wrong.map(({ name }) => name),
    [],
  );
});
