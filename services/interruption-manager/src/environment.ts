import type { ManagerSettings } from "./settings.ts";

/** The settings that a deployment gives to a process (docs/operating.md); what is wrong goes to `problems`. */
export function settingsFrom(
  env: Readonly<Record<string, string | undefined>>,
  problems: string[],
): Partial<ManagerSettings> {
  const settings: Partial<ManagerSettings> = {};
  const {
    HARMOVELA_ORPHANED_TASKS: orphanedTasks = "",
    HARMOVELA_ON_GRACE_EXPIRED: onGraceExpired = "",
  } = env;
  if (orphanedTasks === "fail" || orphanedTasks === "keep" || orphanedTasks === "interrupt") {
    settings.orphanedTasks = orphanedTasks;
  } else if (orphanedTasks !== "") {
    problems.push("HARMOVELA_ORPHANED_TASKS must be fail, keep or interrupt");
  }
  if (onGraceExpired === "fail" || onGraceExpired === "force_stop") {
    settings.onGraceExpired = onGraceExpired;
  } else if (onGraceExpired !== "") {
    problems.push("HARMOVELA_ON_GRACE_EXPIRED must be fail or force_stop");
  }
  return settings;
}
