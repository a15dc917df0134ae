import { Command, InvalidArgumentError } from "commander";
import pc from "picocolors";
import { CommandFailure } from "../command-failure.ts";
import { type FixtureResult, judgeFile } from "../conformance/judge-file.ts";
import {
  type Fixture,
  type Level,
  readManifest,
  select,
  toLevel,
} from "../conformance/manifest.ts";
import { plainText } from "../terminal.ts";

interface ConformanceOptions {
  level: Level;
  profile: string[];
  strict: boolean;
  json: boolean;
}

/** Each file runs a server and all services of its own. */
const PARALLEL_MAX = 2;

const HELP = `
Each file runs through the real services in a fresh store, and once more under other names; both runs
must agree. "unsupported": the file needs rules that do not exist yet. Exit code 1 when a file fails.

Example:
  $ harmovela conformance conformance/manifest.json --level C1 --profile coordination
`;

export function conformanceCommand(): Command {
  return new Command("conformance")
    .summary("run a conformance manifest through the real services")
    .description("Run a conformance manifest (public format) through the real services.")
    .argument("<manifest>", "path of the manifest")
    .option("--level <level>", "highest level: C0, C1, C2 or C3", parseLevel, "C3" satisfies Level)
    .option("--profile <name>", "also the fixtures of this profile (repeatable)", collect, [])
    .option("--strict", "each line that the specification calls illegal must be refused", false)
    .option("--json", "print one JSON object", false)
    .addHelpText("after", HELP)
    .action(runConformance);
}

async function runConformance(path: string, options: ConformanceOptions): Promise<void> {
  const { level, profile: profiles, strict, json } = options;
  const all = readManifest(path);
  for (const profile of profiles) {
    if (all.some((fixture) => fixture.profile === profile)) continue;
    throw new CommandFailure(`no fixture is of profile ${profile}`, 2);
  }
  const fixtures = select(all, { level, profiles });
  const results = await judgeAll(fixtures, strict, (result) => {
    if (!json) process.stdout.write(`${show(result)}\n`);
  });
  const passed = results.filter((result) => result.status === "pass").length;
  const total = results.length;
  if (json) process.stdout.write(`${JSON.stringify({ fixtures: results, passed, total })}\n`);
  else process.stdout.write(`\n${summary(results)}\n`);
  if (results.some((result) => result.status === "fail")) process.exitCode = 1;
}

/** A few at a time; `onResult` is called in the manifest's order. */
async function judgeAll(
  fixtures: readonly Fixture[],
  strict: boolean,
  onResult: (result: FixtureResult) => void,
): Promise<FixtureResult[]> {
  const results: (FixtureResult | undefined)[] = fixtures.map(() => undefined);
  let started = 0;
  let shown = 0;
  const work = async (): Promise<void> => {
    for (;;) {
      const at = started++;
      const fixture = fixtures[at];
      if (fixture === undefined) return;
      results[at] = await judgeFile(fixture, { strict });
      for (let next = results[shown]; next !== undefined; next = results[++shown]) onResult(next);
    }
  };
  await Promise.all(Array.from({ length: PARALLEL_MAX }, work));
  return results.filter((result) => result !== undefined);
}

const MARKS = { pass: pc.green, fail: pc.red, unsupported: pc.yellow } as const;

function show({ path, level, profile, status, detail }: FixtureResult): string {
  const of = profile === null ? level : `${level} ${profile}`;
  const line = `${path} (${of}): ${detail}`;
  return `${MARKS[status](status.padEnd(11))} ${plainText(line)}`;
}

function summary(results: readonly FixtureResult[]): string {
  const count = (status: FixtureResult["status"]): number =>
    results.filter((result) => result.status === status).length;
  return `${count("pass")} passed, ${count("fail")} failed, ${count("unsupported")} unsupported, ${results.length} in all`;
}

function parseLevel(text: string): Level {
  const level = toLevel(text.toUpperCase());
  if (level === undefined) throw new InvalidArgumentError("one of C0, C1, C2, C3");
  return level;
}

function collect(name: string, names: string[]): string[] {
  return [...names, ...name.split(",").filter((part) => part !== "")];
}
