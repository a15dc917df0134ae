import assert from "node:assert/strict";
import { test } from "node:test";
import { CommandFailure } from "../src/command-failure.ts";
import { toClaims } from "../src/commands/token.ts";

test("times become seconds, everything else stays as it is, what is left out stays out", () => {
  assert.deepEqual(
    toClaims(
      '{"iss":"agent:a","iat":"2026-11-30T00:00:00Z","exp":1.5,"jti":"2026-11-30T00:00:00Z"}',
    ),
    { iss: "agent:a", iat: 1_795_996_800, exp: 1.5, jti: "2026-11-30T00:00:00Z" },
  );
  assert.deepEqual(toClaims('{"exp":"soon"}'), { exp: "soon" });
  assert.deepEqual(toClaims("{}"), {});
});

test("claims that are no object are refused", () => {
  for (const text of ["", "{", "[]", "null", '"x"', "7"]) {
    assert.throws(
      () => toClaims(text),
      (error) => error instanceof CommandFailure && error.exitCode === 2,
      text,
    );
  }
});
