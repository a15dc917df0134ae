/** Whether a file does what its manifest expects (spec 10.2). */
import { readFileSync } from "node:fs";
import { parseJson } from "@harmovela/envelope";
import { describeFailure } from "../command-failure.ts";
import { illegalLinesOf } from "./illegal-lines.ts";
import type { Fixture } from "./manifest.ts";
import { FEATURES } from "./needs.ts";
import { renamed } from "./rename.ts";
import { type FileRun, type LineResult, runLines, type SourceLine, toLines } from "./run-file.ts";

export interface FixtureResult {
  path: string;
  level: string;
  profile: string | null;
  status: "pass" | "fail" | "unsupported";
  detail: string;
}

/** Refusals for these make an `accept_all` file fail; others are listed (spec 10.2). */
const CONTRACT_CODES: ReadonlySet<string> = new Set([
  "invalid_envelope",
  "invalid_event_type",
  "unknown_event_type",
  "unsupported_version",
]);

/** Runs the file twice, the second time under other names, and judges it. */
export async function judgeFile(
  fixture: Fixture,
  options: { strict: boolean },
): Promise<FixtureResult> {
  const { path, level, profile = null } = fixture;
  const { status, detail } = await runTwice(fixture, options);
  return { path, level: `HARMOVELA-${level}`, profile, status, detail };
}

async function runTwice(
  fixture: Fixture,
  options: { strict: boolean },
): Promise<Pick<FixtureResult, "status" | "detail">> {
  try {
    const lines = toLines(readFileSync(fixture.file, "utf8"));
    const late = options.strict;
    const first = await runLines(lines, { late });
    const second = await runLines(underOtherNames(lines), { late });
    const illegal = options.strict ? illegalLinesOf(fixture, lines) : [];
    return judgeRuns(fixture, first, second, illegal);
  } catch (error) {
    // One file that cannot be run must not hide what the others do.
    return { status: "fail", detail: `it could not be run: ${describeFailure(error)}` };
  }
}

/** The same file with other names in it. */
export function underOtherNames(lines: readonly SourceLine[]): SourceLine[] {
  const values = renamed(lines.map((line) => line.json?.value));
  return lines.map((line, at) => {
    // Names in what nobody can read say nothing.
    if (line.json === undefined || !parseJson(line.bytes).ok) return line;
    const value = values[at];
    return { bytes: new TextEncoder().encode(JSON.stringify(value)), json: { value } };
  });
}

function judgeRuns(
  fixture: Fixture,
  first: FileRun,
  second: FileRun,
  illegal: readonly number[],
): Pick<FixtureResult, "status" | "detail"> {
  const faults = [
    ...typeFaults(fixture, first.lines),
    ...expectationFaults(fixture, first.lines),
    ...strictFaults(illegal, first.lines),
  ];
  const missing = missingFeatures(fixture, first.lines);
  const seen = listRefusals(first.lines);
  if (missing.length > 0) {
    return { status: "unsupported", detail: `needs ${missing.join(", ")}; ${seen}` };
  }
  faults.push(...disagreements(first, second));
  if (faults.length > 0) return { status: "fail", detail: `${faults.join("; ")}; ${seen}` };
  return { status: "pass", detail: seen };
}

/** A refusal because a service is not there proves nothing. */
function isRefused({ refusal }: LineResult): boolean {
  return refusal !== undefined && refusal.code !== "internal_error";
}

function missingFeatures({ expectation }: Fixture, lines: readonly LineResult[]): string[] {
  const types = lines.map((line) => line.type);
  const isRefusedAnyway = expectation === "reject_some" && lines.some(isRefused);
  return FEATURES.filter(
    (feature) =>
      !feature.exists &&
      feature.isNeeded(types, expectation) &&
      !(isRefusedAnyway && feature.isOptionalForRefusal),
  ).map((feature) => feature.name);
}

function typeFaults({ expectedTypes }: Fixture, lines: readonly LineResult[]): string[] {
  if (expectedTypes === undefined) return [];
  const types = lines.map((line) => line.type);
  return types.join(" ") === expectedTypes.join(" ") ? [] : ["the types are not the expected ones"];
}

function expectationFaults({ expectation }: Fixture, lines: readonly LineResult[]): string[] {
  switch (expectation) {
    case "accept_all":
      return lines
        .filter((line) => CONTRACT_CODES.has(line.refusal?.code ?? ""))
        .map((line) => `line ${line.number} is against the contract`);
    case "stateful_flow":
      return lines
        .filter((line) => line.refusal !== undefined)
        .map((line) => `line ${line.number} is refused`);
    case "reject_some":
      return lines.some(isRefused) ? [] : ["no line is refused"];
    case "delivery_e2e":
      return ["deliveries are not tracked"];
  }
}

function strictFaults(illegal: readonly number[], lines: readonly LineResult[]): string[] {
  return illegal
    .filter((number) => !lines.some((line) => line.number === number && isRefused(line)))
    .map((number) => `line ${number} is illegal and is not refused`);
}

function disagreements(first: FileRun, second: FileRun): string[] {
  const faults = first.lines.flatMap((line, at) => {
    const other = second.lines[at];
    const isSame = line.answer === other?.answer && line.refusal?.code === other?.refusal?.code;
    return isSame ? [] : [`line ${line.number} is answered differently under other names`];
  });
  const isSameOutput = first.output.join(" ") === second.output.join(" ");
  return isSameOutput ? faults : [...faults, "the output differs under other names"];
}

function listRefusals(lines: readonly LineResult[]): string {
  const refused = lines.filter((line) => line.refusal !== undefined);
  if (refused.length === 0) return `${lines.length} lines, none refused`;
  const list = refused.map((line) => `${line.number} ${line.refusal?.code}`).join(", ");
  return `${lines.length} lines, refused: ${list}`;
}
