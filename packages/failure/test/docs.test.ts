import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import {
  CATEGORIES,
  CATEGORY_BY_CODE,
  isWireCode,
  LOCAL_ERROR_CODES,
  RETRYABLE_BY_CODE,
} from "../src/index.ts";

const document = readFileSync(new URL("../../../docs/failures.md", import.meta.url), "utf8");

/** Rows of the table under a heading, as cells without back-ticks. */
function rowsUnder(heading: string): string[][] {
  const section = document.split(`## ${heading}\n`)[1]?.split("\n## ")[0] ?? "";
  return section
    .split("\n")
    .filter((line) => line.startsWith("| `"))
    .map((line) =>
      line
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim().replaceAll("`", "")),
    );
}

const yesNo = (value: boolean): string => (value ? "yes" : "no");

test("docs/failures.md lists exactly the categories, with what is done about each", () => {
  const rows = rowsUnder("Categories").map((row) => row.slice(0, 3));
  const table = Object.entries(CATEGORIES).map(([category, { retryable, action }]) => [
    category,
    yesNo(retryable),
    action,
  ]);
  assert.deepEqual(rows, table);
});

test("docs/failures.md lists exactly the codes on the wire", () => {
  const rows = rowsUnder("Codes on the wire").map((row) => row.slice(0, 3));
  const table = Object.entries(RETRYABLE_BY_CODE).map(([code, retryable]) => {
    assert.ok(isWireCode(code));
    return [code, yesNo(retryable), CATEGORY_BY_CODE[code]];
  });
  assert.deepEqual(rows, table);
});

test("docs/failures.md lists exactly the local codes, none of which is a wire code", () => {
  const rows = rowsUnder("Codes on this side of the wire").map((row) => row.slice(0, 2));
  assert.deepEqual(
    rows,
    LOCAL_ERROR_CODES.map((code) => [code, CATEGORY_BY_CODE[code]]),
  );
  assert.deepEqual(LOCAL_ERROR_CODES.filter(isWireCode), []);
});
