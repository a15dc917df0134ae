/**
 * Puts deliberate faults into a copy of the product, one at a time, and runs the default tests that
 * should notice. A fault that no test notices is a hole in the tests: exit code 1.
 *
 *   npm run mutants              all of them
 *   npm run mutants -- gate      those whose name contains "gate"
 */
import { spawnSync } from "node:child_process";
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ALL_MUTANTS } from "./all.ts";
import type { Mutant } from "./mutant.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
/** A fault may also make a test hang; then it is noticed as well. */
const TEST_MS_MAX = 180_000;
/** All tests together, without a fault: for each file. */
const FILE_MS_MAX = 60_000;
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;
/** Then the runner ends it and its process; the limit above leaves both behind. */
const ONE_TEST_MS_MAX = 120_000;

/** A copy of the sources whose workspace packages resolve to the copy and all others to the original. */
function copyTree(): string {
  const copy = mkdtempSync(join(tmpdir(), "harmovela-mutants-"));
  for (const folder of ["packages", "services", "test", "scripts", "schemas"]) {
    cpSync(join(root, folder), join(copy, folder), {
      recursive: true,
      filter: (path) => !/\/(node_modules|dist)$/.test(path),
    });
  }
  for (const file of ["package.json", "tsconfig.base.json"])
    cpSync(join(root, file), join(copy, file));
  mkdirSync(join(copy, "node_modules", "@harmovela"), { recursive: true });
  for (const name of readdirSync(join(root, "node_modules"))) {
    if (name === "@harmovela" || name === ".bin") continue;
    symlinkSync(join(root, "node_modules", name), join(copy, "node_modules", name));
  }
  for (const home of ["packages", "services"]) {
    for (const name of readdirSync(join(copy, home))) {
      symlinkSync(join(copy, home, name), join(copy, "node_modules", "@harmovela", name));
    }
  }
  return copy;
}

function runTests(copy: string, tests: readonly string[]): { passed: boolean; output: string } {
  const { status, stdout } = spawnSync(
    process.execPath,
    [
      "--conditions=development",
      "--import",
      "tsx",
      "--test",
      `--test-timeout=${ONE_TEST_MS_MAX}`,
      ...tests,
    ],
    {
      cwd: copy,
      encoding: "utf8",
      timeout: Math.max(TEST_MS_MAX, FILE_MS_MAX * tests.length),
      maxBuffer: OUTPUT_BYTES_MAX,
      killSignal: "SIGKILL",
    },
  );
  return { passed: status === 0, output: stdout ?? "" };
}

/** Applies the fault; throws when the text it replaces is not there exactly once. */
function withFault(copy: string, { file, find, replace, name }: Mutant, work: () => void): void {
  const path = join(copy, file);
  const original = readFileSync(path, "utf8");
  const parts = original.split(find);
  if (parts.length !== 2) {
    throw new Error(`${name}: found ${parts.length - 1} times in ${file}: ${find}`);
  }
  writeFileSync(path, parts.join(replace));
  try {
    work();
  } finally {
    writeFileSync(path, original);
  }
}

const [wanted = ""] = process.argv.slice(2);
const chosen = ALL_MUTANTS.filter(({ name }) => name.includes(wanted));
const copy = copyTree();
const survivors: string[] = [];
try {
  const tests = [...new Set(chosen.flatMap((mutant) => mutant.tests))];
  const sound = runTests(copy, tests);
  if (!sound.passed) {
    process.stdout.write(sound.output);
    throw new Error("the tests fail without any fault");
  }
  for (const mutant of chosen) {
    withFault(copy, mutant, () => {
      const started = performance.now();
      const { passed, output } = runTests(copy, mutant.tests);
      const seconds = ((performance.now() - started) / 1_000).toFixed(1);
      const by = /not ok \d+ - (.*)/.exec(output)?.[1] ?? "it ended or hung";
      process.stdout.write(
        passed ? `SURVIVED  ${mutant.name}\n` : `caught    ${mutant.name}  (${seconds} s: ${by})\n`,
      );
      if (passed) survivors.push(mutant.name);
    });
  }
} finally {
  rmSync(copy, { recursive: true, force: true });
}
process.stdout.write(`${chosen.length - survivors.length} of ${chosen.length} faults caught\n`);
process.exitCode = survivors.length === 0 ? 0 : 1;
