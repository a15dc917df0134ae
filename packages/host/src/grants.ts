/**
 * The registry of what agents may do (spec 9.7, 9.8): a file that operators edit, `{"grants": [{tenant?, agent,
 * roles?, scopes?}]}`. `scopes` left out: everything of its tenant; `tenant` left out: in every tenant that has
 * no agent of that name. Whoever does not stand in it may do nothing.
 */
import { readFileSync } from "node:fs";
import type { Clock } from "@harmovela/bus";
import {
  type Grants,
  isId,
  isRole,
  ROLES_MAX,
  SCOPES_MAX,
  scopeProblem,
} from "@harmovela/envelope";
import { HarmovelaError } from "@harmovela/failure";
import { LOOK_EVERY_MS, versionOf } from "./file-version.ts";

/** One agent as the registry holds it. */
export interface GrantRecord {
  tenant?: string;
  agent: string;
  roles?: string[];
  scopes?: string[];
}

export interface GrantsRegistry {
  /** What a sender may do now; undefined when it does not stand there. Never throws. */
  of(tenant: string, source: string): Grants | undefined;
  /** From now on `onTrouble` hears, once for each change, that the registry cannot be used and the last good one stays. */
  listen(onTrouble: (error: HarmovelaError) => void): void;
}

/** All grants of a registry are held in memory. */
const GRANTS_MAX = 100_000;
const NOTHING: Grants = { roles: [], scopes: [] };
const EVERYTHING: Grants = { roles: [] };

/** Where there is no registry: everybody may do everything of its tenant, in no role. */
export const NO_REGISTRY: GrantsRegistry = { of: () => EVERYTHING, listen: () => {} };

/** What counts when a sender does not stand in the registry. */
export function grantsOf(registry: GrantsRegistry, tenant: string, source: string): Grants {
  return registry.of(tenant, source) ?? NOTHING;
}

/** Throws `invalid_argument` that says which record cannot be used. */
export function openGrants(records: readonly unknown[]): GrantsRegistry {
  const grants = readGrants(records);
  return { of: (tenant, source) => find(grants, tenant, source), listen: () => {} };
}

/** A changed file takes effect within a second. Throws `invalid_argument` naming the file when it cannot be used. */
export function openGrantsFile(path: string, clock: Clock): GrantsRegistry {
  let version = versionOf(path);
  let grants = readFile(path);
  let lookedAt = clock.monotonic();
  let onTrouble: (error: HarmovelaError) => void = () => {};
  const refresh = (): void => {
    const now = clock.monotonic();
    if (now - lookedAt < LOOK_EVERY_MS) return;
    lookedAt = now;
    const found = versionOf(path);
    if (found === version) return;
    version = found;
    try {
      grants = readFile(path);
    } catch (error) {
      onTrouble(error as HarmovelaError);
    }
  };
  return {
    of: (tenant, source) => {
      refresh();
      return find(grants, tenant, source);
    },
    listen: (listener) => {
      onTrouble = listener;
    },
  };
}

function find(
  grants: ReadonlyMap<string, Grants>,
  tenant: string,
  source: string,
): Grants | undefined {
  return grants.get(nameOf(tenant, source)) ?? grants.get(nameOf(undefined, source));
}

/** Ids hold no control characters and are not empty, so no two names are one. */
function nameOf(tenant: string | undefined, agent: string): string {
  return `${tenant ?? ""}\u0000${agent}`;
}

function readFile(path: string): ReadonlyMap<string, Grants> {
  let records: unknown;
  try {
    records = (JSON.parse(readFileSync(path, "utf8")) as { grants?: unknown } | null)?.grants;
  } catch {
    // Not there, not readable and no JSON are one and the same to whoever has to mend it.
  }
  if (!Array.isArray(records)) {
    throw new HarmovelaError("invalid_argument", `${path} is no readable registry of grants`);
  }
  try {
    return readGrants(records);
  } catch (error) {
    throw new HarmovelaError("invalid_argument", `${path}: ${(error as Error).message}`);
  }
}

function readGrants(records: readonly unknown[]): ReadonlyMap<string, Grants> {
  if (records.length > GRANTS_MAX) {
    throw new HarmovelaError("invalid_argument", `a registry holds at most ${GRANTS_MAX} grants`);
  }
  const grants = new Map<string, Grants>();
  for (const [index, record] of records.entries()) {
    const problem = problemOf(record);
    if (problem !== undefined) throw unusable(index, problem);
    const { tenant, agent, roles = [], scopes } = record as GrantRecord;
    const name = nameOf(tenant, agent);
    if (grants.has(name)) throw unusable(index, "the agent stands there twice");
    grants.set(name, {
      roles: [...roles],
      ...(scopes === undefined ? {} : { scopes: [...scopes] }),
    });
  }
  return grants;
}

function unusable(index: number, why: string): HarmovelaError {
  return new HarmovelaError("invalid_argument", `grant ${index} of the registry: ${why}`);
}

function problemOf(record: unknown): string | undefined {
  if (typeof record !== "object" || record === null) return "it is no object";
  const { tenant, agent, roles, scopes, ...more } = record as Record<string, unknown>;
  const [unknown] = Object.keys(more);
  // A misspelt `scopes` would grant everything.
  if (unknown !== undefined) return `it has no field ${unknown}`;
  if (!isId(agent) || (tenant !== undefined && !isId(tenant))) return "tenant and agent are ids";
  if (!isListOfTexts(roles, ROLES_MAX)) return `roles are at most ${ROLES_MAX} texts`;
  if (!isListOfTexts(scopes, SCOPES_MAX)) return `scopes are at most ${SCOPES_MAX} texts`;
  const role = roles?.find((known) => !isRole(known));
  if (role !== undefined) return `there is no role ${role}`;
  for (const scope of scopes ?? []) {
    const problem = scopeProblem(scope);
    if (problem !== undefined) return `${scope}: ${problem}`;
  }
  return undefined;
}

function isListOfTexts(value: unknown, max: number): value is string[] | undefined {
  if (value === undefined) return true;
  return (
    Array.isArray(value) && value.length <= max && value.every((item) => typeof item === "string")
  );
}
