import assert from "node:assert/strict";
import { test } from "node:test";
import { settingsIn } from "../src/environment.ts";

test("a process takes its settings from the environment, and says all that is wrong with them", () => {
  const problems: string[] = [];
  assert.deepEqual(settingsIn({}, problems), {});
  assert.deepEqual(
    settingsIn(
      {
        HARMOVELA_EVIDENCE_WAIT_MS: "0",
        HARMOVELA_ATTESTATIONS_NEEDED: "2",
        HARMOVELA_AUTHORITIES: "agent:auditor, runtime:store,",
      },
      problems,
    ),
    {
      evidenceWaitMs: 0,
      attestationsNeeded: 2,
      authorities: ["agent:auditor", "runtime:store"],
    },
  );
  assert.deepEqual(problems, []);
  settingsIn(
    {
      HARMOVELA_EVIDENCE_WAIT_MS: "soon",
      HARMOVELA_ATTESTATIONS_NEEDED: "0",
      HARMOVELA_AUTHORITIES: "x".repeat(200),
    },
    problems,
  );
  assert.equal(problems.length, 3);
});
