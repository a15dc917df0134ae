import type { ManagerSettings } from "./settings.ts";
import type { CheckpointStoreOptions } from "./store/checkpoint-store.ts";

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

/** The smallest store that is of use: a few of the largest checkpoints. */
const STORE_BYTES_MIN = 32 * 1024 * 1024;

/** The room of the store of checkpoints, and each tenant's part of it. */
export function storeFrom(
  env: Readonly<Record<string, string | undefined>>,
  problems: string[],
): Partial<CheckpointStoreOptions> {
  const store: Partial<CheckpointStoreOptions> = {};
  const bytesIn = (name: string): number | undefined => {
    const text = env[name] ?? "";
    if (text === "") return undefined;
    const bytes = Number(text);
    if (Number.isSafeInteger(bytes) && bytes >= STORE_BYTES_MIN) return bytes;
    problems.push(`${name} must be a whole number from ${STORE_BYTES_MIN} on`);
    return undefined;
  };
  const maxBytes = bytesIn("HARMOVELA_CHECKPOINT_BYTES");
  const tenantBytes = bytesIn("HARMOVELA_CHECKPOINT_TENANT_BYTES");
  if (maxBytes !== undefined) store.maxBytes = maxBytes;
  if (tenantBytes !== undefined) store.tenantBytes = tenantBytes;
  return store;
}
