import { isId } from "@harmovela/envelope";
import type { AttesterSettings } from "./settings.ts";

const WAIT_MS_MAX = 86_400_000;
const NEEDED_MAX = 1_000;

/** What of the settings a process takes from its environment (docs/operating.md); problems are added to the list. */
export function settingsIn(
  env: Record<string, string | undefined>,
  problems: string[],
): Partial<AttesterSettings> {
  const settings: Partial<AttesterSettings> = {};
  const whole = (name: string, min: number, max: number): number | undefined => {
    const text = env[name];
    if (text === undefined || text === "") return undefined;
    const value = Number(text);
    if (Number.isInteger(value) && value >= min && value <= max) return value;
    problems.push(`${name} must be a whole number from ${min} to ${max}`);
    return undefined;
  };
  const evidenceWaitMs = whole("HARMOVELA_EVIDENCE_WAIT_MS", 0, WAIT_MS_MAX);
  if (evidenceWaitMs !== undefined) settings.evidenceWaitMs = evidenceWaitMs;
  const attestationsNeeded = whole("HARMOVELA_ATTESTATIONS_NEEDED", 1, NEEDED_MAX);
  if (attestationsNeeded !== undefined) settings.attestationsNeeded = attestationsNeeded;
  const authorities = (env.HARMOVELA_AUTHORITIES ?? "")
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
  if (!authorities.every(isId)) problems.push("HARMOVELA_AUTHORITIES must be names of agents");
  else if (authorities.length > 0) settings.authorities = authorities;
  return settings;
}
