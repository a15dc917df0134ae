/** A second opinion is one only as long as it knows nothing of what it judges. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { it } from "node:test";

const SOURCE = new URL("../src/", import.meta.url);
const ALLOWED = /^(?:\.{1,2}\/|@harmovela\/(?:envelope|bus)$)/;

it("the checker imports only the wire contract and the bus", () => {
  const files = readdirSync(SOURCE, { recursive: true, encoding: "utf8" });
  const imported = files
    .filter((file) => file.endsWith(".ts"))
    .flatMap((file) => [
      ...readFileSync(new URL(file, SOURCE), "utf8").matchAll(/\b(?:from|import\(?)\s*"([^"]+)"/g),
    ])
    .map(([, name]) => name ?? "");
  assert.ok(imported.includes("@harmovela/envelope"));
  assert.deepEqual(
    imported.filter((name) => !ALLOWED.test(name)),
    [],
  );
});

it("the checker has its own rules of what is asserted, and of what that is worth", () => {
  const shared = /\b(?:assertedKey|invalidationOf|claimsMeant|mayWithdraw|proofRefusal)\b/;
  const files = readdirSync(SOURCE, { recursive: true, encoding: "utf8" });
  const using = files.filter(
    (file) => file.endsWith(".ts") && shared.test(readFileSync(new URL(file, SOURCE), "utf8")),
  );
  assert.deepEqual(using, []);
});
