import type { TaskSettings } from "./settings.ts";

/** The settings that a deployment gives to a process (docs/operating.md); what is wrong goes to `problems`. */
export function settingsFrom(
  env: Readonly<Record<string, string | undefined>>,
  problems: string[],
): Partial<TaskSettings> {
  const { HARMOVELA_ORPHANED_TASKS: orphanedTasks = "" } = env;
  switch (orphanedTasks) {
    case "fail":
    case "keep":
    case "interrupt":
      return { orphanedTasks };
    case "":
      break;
    default:
      problems.push("HARMOVELA_ORPHANED_TASKS must be fail, keep or interrupt");
  }
  return {};
}
