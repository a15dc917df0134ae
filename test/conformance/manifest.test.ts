/**
 * Manifests in the public format through the real services: our own, and the one that
 * HARMOVELA_CONFORMANCE_MANIFEST names.
 */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { type CliResult, cli, line } from "../integration/cli-process.ts";

interface Report {
  fixtures: {
    path: string;
    level: string;
    profile: string | null;
    status: string;
    detail: string;
  }[];
  passed: number;
  total: number;
}

/** The report, or what the command said instead. */
function reportOf({ stdout, stderr }: CliResult): Report {
  assert.equal(stderr, "");
  return JSON.parse(stdout) as Report;
}

const OWN = join(dirname(fileURLToPath(import.meta.url)), "manifest.json");
const OTHER = process.env.HARMOVELA_CONFORMANCE_MANIFEST;
/** Cases of ours that need what does not exist yet. */
const UNSUPPORTED = ["cases/redelivery.ndjson"];

test("our cases pass strictly; those that need more are called unsupported", async () => {
  const result = await cli(["conformance", OWN, "--strict", "--json"]);
  const report = reportOf(result);
  assert.deepEqual(Object.keys(report), ["fixtures", "passed", "total"]);
  for (const fixture of report.fixtures) {
    assert.deepEqual(Object.keys(fixture), ["path", "level", "profile", "status", "detail"]);
    const wanted = UNSUPPORTED.includes(fixture.path) ? "unsupported" : "pass";
    assert.equal(fixture.status, wanted, `${fixture.path}: ${fixture.detail}`);
  }
  assert.equal(report.total, report.fixtures.length);
  assert.equal(report.passed, report.total - UNSUPPORTED.length);
  assert.equal(result.code, 0);
});

test("a manifest from elsewhere has no failures", async () => {
  const result = await cli(["conformance", OTHER ?? OWN, "--level", "C0", "--json"]);
  const report = reportOf(result);
  assert.ok(report.total > 0);
  assert.deepEqual(
    report.fixtures.filter(({ status, level }) => status === "fail" || level !== "HARMOVELA-C0"),
    [],
  );
  assert.equal(result.code, 0);
});

const task = (id: string, state: string): string =>
  line(`task.${state}`, { id, task_id: "t" }, { task_id: "t" });

test("what goes otherwise than expected fails, and the forgotten files are found", async () => {
  const folder = mkdtempSync(join(tmpdir(), "harmovela-conformance-"));
  const files: Record<string, string[]> = {
    "refused.ndjson": [task("e1", "submitted"), task("e2", "completed")],
    "nothing-refused.ndjson": [task("e1", "submitted")],
    "against-the-contract.ndjson": [line("environment.observed", { id: "" })],
    "other-refusal.ndjson": [task("e1", "started")],
    "other-types.ndjson": [task("e1", "submitted")],
    "profiled.ndjson": [task("e1", "submitted")],
    "parent-child-negative.ndjson": [task("e1", "submitted")],
  };
  const fixture = (path: string, expectation: string, more = {}): object => ({
    path: `files/${path}.ndjson`,
    level: "HARMOVELA-C1",
    expectation,
    ...more,
  });
  const manifest = {
    fixtures: [
      fixture("refused", "stateful_flow"),
      fixture("refused", "reject_some", { illegal_lines: [1, 2] }),
      fixture("nothing-refused", "reject_some"),
      fixture("against-the-contract", "accept_all"),
      fixture("other-refusal", "accept_all"),
      fixture("other-types", "stateful_flow", { expected_types: ["task.started"] }),
      fixture("profiled", "stateful_flow", { profile: "delivery" }),
    ],
  };
  try {
    mkdirSync(join(folder, "files"));
    for (const [name, lines] of Object.entries(files)) {
      writeFileSync(join(folder, "files", name), lines.join("\n"));
    }
    const path = join(folder, "manifest.json");
    writeFileSync(path, JSON.stringify(manifest));
    const result = await cli(["conformance", path, "--strict", "--json"]);
    const report = reportOf(result);
    assert.deepEqual(
      report.fixtures.map(({ path: file, status }) => `${file.slice(6, -7)} ${status}`),
      [
        "refused fail",
        "refused fail",
        "nothing-refused fail",
        "against-the-contract fail",
        "other-refusal pass",
        "other-types fail",
        "parent-child-negative fail",
      ],
    );
    assert.equal(result.code, 1);
    assert.match(report.fixtures[1]?.detail ?? "", /line 1 is illegal and is not refused/);
    assert.match(report.fixtures.at(-1)?.detail ?? "", /no line is refused/);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
