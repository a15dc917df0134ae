import type { TaskSettings } from "./settings.ts";

/** The settings that a deployment gives to a process (docs/operating.md); what is wrong goes to `problems`. */
export function settingsFrom(
  env: Readonly<Record<string, string | undefined>>,
  problems: string[],
): Partial<TaskSettings> {
  const { HARMOVELA_ORPHANED_TASKS: orphanedTasks = "" } = env;
  if (orphanedTasks === "fail" || orphanedTasks === "keep") return { orphanedTasks };
  if (orphanedTasks !== "") problems.push("HARMOVELA_ORPHANED_TASKS must be fail or keep");
  return {};
}
