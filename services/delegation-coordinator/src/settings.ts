import type { Instant } from "@harmovela/envelope";
import { DEFAULT_FAMILY_SETTINGS, type FamilySettings } from "./families/settings.ts";

/** What the rules of the task domain read; every value is recorded in the log with the leadership. */
export interface TaskSettings extends FamilySettings {
  /** Levels below a root (spec 5.5). */
  maxDepth: number;
  /** Grace of a cancel request that names none (spec 5.7). */
  defaultGraceMs: number;
  /**
   * What becomes of the tasks that a session had which was lost: they fail, or they stay for the other
   * sessions of their agent, or they are left to the interruption manager, which stops them.
   */
  orphanedTasks: "fail" | "keep" | "interrupt";
  /** Who writes the log of `interruptions`, and asks for what follows from it. */
  interruptionManager: string;
  /** The identity under which the service writes derived events. */
  service: string;
}

export const DEFAULT_TASK_SETTINGS: TaskSettings = {
  ...DEFAULT_FAMILY_SETTINGS,
  maxDepth: 1000,
  defaultGraceMs: 5000,
  orphanedTasks: "fail",
  interruptionManager: "service:interruption-manager",
  service: "service:delegation-coordinator",
};

/** The last instant that RFC 3339 can write; a due time beyond it falls on it. */
export const LAST_INSTANT: Instant = 253_402_300_799_999;

/** Longest reason kept in state or copied into a derived event, in UTF-16 units. */
export const REASON_LENGTH_MAX = 200;

/** Log positions remembered for each task's history. */
export const HISTORY_LENGTH_MAX = 256;
