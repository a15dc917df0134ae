import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { HarmovelaError } from "@harmovela/failure";
import { authFromFile, newUserKey } from "../src/index.ts";
import { mintOperator } from "./mint-creds.ts";

const folder = mkdtempSync(join(tmpdir(), "harmovela-keys-"));
const file = join(folder, "key");
after(() => rmSync(folder, { recursive: true, force: true }));

test("a seed with comments around it, or credentials; both are read again when they are asked for", () => {
  const [first, second] = [newUserKey(), newUserKey()];
  writeFileSync(file, `# of agent:a\n${first.seed}\n`);
  const auth = authFromFile(file);
  assert.ok("nkeySeed" in auth);
  writeFileSync(file, second.seed);
  assert.equal(new TextDecoder().decode(auth.nkeySeed()), second.seed);

  const creds = mintOperator().credsOf("a");
  writeFileSync(file, creds);
  const other = authFromFile(file);
  assert.ok("creds" in other);
  assert.deepEqual(Buffer.from(other.creds()), Buffer.from(creds));
});

test("a file that is neither, or not there, is named and not shown", () => {
  writeFileSync(file, "SECRETBUTNOSEED");
  for (const path of [file, join(folder, "none")]) {
    assert.throws(
      () => authFromFile(path),
      (error) =>
        error instanceof HarmovelaError &&
        error.code === "invalid_argument" &&
        error.message.includes(path) &&
        !error.message.includes("SECRET"),
    );
  }
});
