/** One server at a time on a store: two would write into the same files. */
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { CommandFailure } from "../command-failure.ts";

/** Holds the process id of the server on this store. */
const LOCK = "harmovela.lock";
/** A server whose owner was killed a moment ago is still on its way down. */
const WAIT_MS_MAX = 5_000;
const LOOK_MS = 20;

/** The file that the server's process id is written into. */
export function lockFileOf(storeDir: string): string {
  return join(storeDir, LOCK);
}

/** Creates the folder and resolves when no server works in it; throws when one goes on doing so. */
export async function waitForStore(storeDir: string): Promise<void> {
  mkdirSync(storeDir, { recursive: true });
  const file = lockFileOf(storeDir);
  const until = performance.now() + WAIT_MS_MAX;
  for (let pid = holderOf(file); pid !== undefined; pid = holderOf(file)) {
    if (performance.now() >= until) {
      throw new CommandFailure(
        `${storeDir} is in use by nats-server (process ${pid}): work with it by --server URL, or stop it (if there is no such server, remove ${file})`,
      );
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
  rmSync(file, { force: true });
}

function holderOf(file: string): number | undefined {
  let pid: number;
  try {
    pid = Number(readFileSync(file, "utf8"));
  } catch {
    // Nobody has the store.
    return undefined;
  }
  return Number.isInteger(pid) && pid > 0 && isServer(pid) ? pid : undefined;
}

/** After a power failure the number may belong to somebody else. */
function isServer(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("nats-server");
  } catch {
    // No /proc here: better one question too many than two servers on one store.
    return true;
  }
}
