/** A manifest in the public format (spec 10.3) and which of its fixtures a run takes. */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { CommandFailure } from "../command-failure.ts";

export const EXPECTATIONS = ["accept_all", "stateful_flow", "reject_some", "delivery_e2e"] as const;
export type Expectation = (typeof EXPECTATIONS)[number];

export const LEVELS = ["C0", "C1", "C2", "C3"] as const;
export type Level = (typeof LEVELS)[number];

export interface Fixture {
  /** As the manifest names it. */
  path: string;
  file: string;
  level: Level;
  profile: string | undefined;
  expectation: Expectation;
  expectedTypes: string[] | undefined;
  /** Lines that the specification calls illegal (our extension `illegal_lines`; from 1). */
  illegalLines: number[] | undefined;
}

/** Files that belong to the public suite and that its manifest forgets (spec 10.4). */
const FORGOTTEN: readonly { name: string; expectation: Expectation }[] = [
  { name: "parent-child-positive.ndjson", expectation: "stateful_flow" },
  { name: "parent-child-negative.ndjson", expectation: "reject_some" },
];

export interface Selection {
  /** Highest level taken. */
  level: Level;
  /** Taken besides the unprofiled fixtures. */
  profiles: readonly string[];
}

/** Reads the manifest; throws a CommandFailure that says what is wrong with it. */
export function readManifest(path: string): Fixture[] {
  const folder = dirname(path);
  const manifest = readJson(path);
  const listed = isRecord(manifest) ? manifest.fixtures : undefined;
  if (!Array.isArray(listed)) throw new CommandFailure(`${path}: no list of fixtures`);
  const fixtures = listed.map((entry, at) =>
    toFixture(entry, folder, `${path}: fixture ${at + 1}`),
  );
  return [...fixtures, ...forgottenBeside(fixtures, folder)];
}

/** Unprofiled fixtures and those of the profiles, up to the level (spec 10.3). */
export function select(fixtures: readonly Fixture[], { level, profiles }: Selection): Fixture[] {
  const highest = LEVELS.indexOf(level);
  return fixtures.filter(
    (fixture) =>
      LEVELS.indexOf(fixture.level) <= highest &&
      (fixture.profile === undefined || profiles.includes(fixture.profile)),
  );
}

/** The level named by `C1` or `HARMOVELA-C1`; undefined when it is none. */
export function toLevel(name: unknown): Level | undefined {
  return LEVELS.find((level) => name === level || name === `HARMOVELA-${level}`);
}

function readJson(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    throw new CommandFailure(`${path}: ${error instanceof Error ? error.message : "unreadable"}`);
  }
}

function toFixture(entry: unknown, folder: string, where: string): Fixture {
  if (!isRecord(entry)) throw new CommandFailure(`${where}: not an object`);
  const { path, profile } = entry;
  const level = toLevel(entry.level);
  const expectation = EXPECTATIONS.find((name) => name === entry.expectation);
  if (typeof path !== "string" || level === undefined || expectation === undefined) {
    throw new CommandFailure(`${where}: path, level or expectation is missing or unknown`);
  }
  const file = join(folder, path);
  if (!existsSync(file)) throw new CommandFailure(`${where}: there is no file ${path}`);
  return {
    path,
    file,
    level,
    profile: typeof profile === "string" ? profile : undefined,
    expectation,
    expectedTypes: listOf(entry.expected_types, "string"),
    illegalLines: listOf(entry.illegal_lines, "number"),
  };
}

function forgottenBeside(fixtures: readonly Fixture[], folder: string): Fixture[] {
  const first = fixtures[0];
  if (first === undefined) return [];
  return FORGOTTEN.flatMap(({ name, expectation }): Fixture[] => {
    const path = posix.join(posix.dirname(first.path), name);
    const file = join(folder, path);
    if (fixtures.some((fixture) => fixture.path === path) || !existsSync(file)) return [];
    return [
      {
        path,
        file,
        level: "C1",
        profile: undefined,
        expectation,
        expectedTypes: undefined,
        illegalLines: undefined,
      },
    ];
  });
}

function listOf<T>(value: unknown, type: "string" | "number"): T[] | undefined {
  return Array.isArray(value) && value.every((item) => typeof item === type)
    ? (value as T[])
    : undefined;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
