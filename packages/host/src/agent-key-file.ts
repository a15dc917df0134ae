/**
 * The registry of agents' keys as a file that operators edit: `{"keys": [{tenant, agent, kid, jwk, from,
 * until?, revoked_at?}]}`. A changed file takes effect within a second, without a restart.
 */
import { readFileSync } from "node:fs";
import type { Clock } from "@harmovela/bus";
import { HarmovelaError } from "@harmovela/failure";
import { type AgentKeySet, type AgentKeys, openAgentKeys } from "./agent-keys.ts";
import { LOOK_EVERY_MS, versionOf } from "./file-version.ts";

/**
 * Opens the registry; throws `invalid_argument` naming the file when it cannot be used. When it cannot be
 * used later the one in force stays, and `onTrouble` hears of it once for each change of the file.
 */
export async function openAgentKeyFile(
  path: string,
  clock: Clock,
  onTrouble: (error: unknown) => void,
): Promise<AgentKeys> {
  let version = versionOf(path);
  let current = openAgentKeys(readKeys(path));
  let lookedAt = clock.monotonic();
  await current;
  const refresh = (): void => {
    const now = clock.monotonic();
    if (now - lookedAt < LOOK_EVERY_MS) return;
    lookedAt = now;
    const found = versionOf(path);
    if (found === version) return;
    version = found;
    const before = current;
    current = Promise.resolve()
      .then(() => openAgentKeys(readKeys(path)))
      .catch((error: unknown) => {
        onTrouble(error);
        return before;
      });
  };
  return {
    look: async (envelope, tenant) => {
      refresh();
      return (await current).look(envelope, tenant);
    },
  };
}

function readKeys(path: string): AgentKeySet {
  try {
    const value = JSON.parse(readFileSync(path, "utf8")) as { keys?: unknown } | null;
    const keys = value?.keys;
    if (Array.isArray(keys) && keys.every((key) => typeof key === "object" && key !== null)) {
      return { keys };
    }
  } catch {
    // Not there, not readable and no JSON are one and the same to whoever has to mend it.
  }
  throw new HarmovelaError("invalid_argument", `${path} is no readable registry of agents' keys`);
}
