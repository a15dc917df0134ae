import { isObject } from "./record.ts";

/** What rules read of the settings in force: those of the newest `epoch` entry (architecture, section 6). */
export interface Settings {
  /** Levels below a root (spec 5.5). */
  maxDepth: number;
  /** Grace of a cancel request that names none, ms (spec 5.7). */
  defaultGraceMs: number;
  /** Graces of a `save_and_stop` and of a `drain_then_stop` that name none, ms (spec 5.7). */
  saveGraceMs: number;
  drainGraceMs: number;
  /** What becomes of the tasks of a lost session (spec 5.1). */
  orphanedTasks: "fail" | "keep" | "interrupt";
  /** Senders are proved: who delegates under a parent must have a part in it (spec 5.6). */
  authenticated: boolean;
  /** Events of sessions that nobody opened are refused (spec 5.1). */
  strictSessions: boolean;
  /** Profiles in force for events that name no session, or one that nobody opened (spec 4.2). */
  defaultProfiles: readonly string[];
  /** Window of a command or query that names none, ms (spec 5.9). */
  negotiationWindowMs: number;
  /** What follows when nothing was saved within the grace: the task fails, or it stays stopped (spec 5.7). */
  onGraceExpired: "fail" | "force_stop";
  /** Tasks that nobody submitted may be interrupted and compensated, by anybody (C40). */
  externalTasks: boolean;
  /** How long what is over, or what nobody uses, is remembered, ms. */
  retentionMs: number;
}

export function defaultSettings(): Settings {
  return {
    maxDepth: 1_000,
    defaultGraceMs: 5_000,
    saveGraceMs: 5_000,
    drainGraceMs: 60_000,
    orphanedTasks: "fail",
    authenticated: false,
    strictSessions: false,
    defaultProfiles: [],
    negotiationWindowMs: 5_000,
    onGraceExpired: "fail",
    externalTasks: false,
    retentionMs: 30 * 86_400_000,
  };
}

const NUMBERS = [
  "maxDepth",
  "defaultGraceMs",
  "saveGraceMs",
  "drainGraceMs",
  "negotiationWindowMs",
  "retentionMs",
] as const;
const FLAGS = ["authenticated", "strictSessions", "externalTasks"] as const;
const ORPHANED = ["fail", "keep", "interrupt"] as const;
const ON_GRACE_EXPIRED = ["fail", "force_stop"] as const;

function isOneOf<T extends string>(names: readonly T[], value: unknown): value is T {
  return names.some((name) => name === value);
}

/** Takes over what an `epoch` entry records; what it does not say stays as it was. */
export function readSettings(settings: Settings, recorded: unknown): void {
  if (!isObject(recorded)) return;
  for (const name of NUMBERS) {
    const value = recorded[name];
    if (typeof value === "number") settings[name] = value;
  }
  for (const name of FLAGS) {
    const value = recorded[name];
    if (typeof value === "boolean") settings[name] = value;
  }
  const { defaultProfiles, orphanedTasks, onGraceExpired } = recorded;
  if (isOneOf(ORPHANED, orphanedTasks)) settings.orphanedTasks = orphanedTasks;
  if (isOneOf(ON_GRACE_EXPIRED, onGraceExpired)) settings.onGraceExpired = onGraceExpired;
  if (Array.isArray(defaultProfiles)) {
    settings.defaultProfiles = defaultProfiles.filter((profile) => typeof profile === "string");
  }
}
