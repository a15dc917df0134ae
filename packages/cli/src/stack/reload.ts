/** Accounts of a running server that change: it reads them anew when told so. */
import { unwatchFile, watchFile } from "node:fs";
import type { Readable } from "node:stream";
import { CommandFailure } from "../command-failure.ts";

const LOOK_EVERY_MS = 500;
const RELOAD_MS_MAX = 20_000;
const DONE = /Reloaded server configuration/;
const REFUSED = /Failed to reload server configuration: (.*)/;
/** An account that comes with one reload has its imports from the next one on (2.9.10 and 2.15.1). */
const RELOADS = 2;

/**
 * Makes a nats-server read its configuration anew; `log` is what it writes. Resolves when what was added
 * can connect and what was removed is cut off. Throws a CommandFailure with what the server says against it.
 */
export async function reload(pid: number, log: Readable): Promise<void> {
  for (let times = 0; times < RELOADS; times++) await reloadOnce(pid, log);
}

function reloadOnce(pid: number, log: Readable): Promise<void> {
  return new Promise((resolve, reject) => {
    let text = "";
    const stop = (): void => {
      clearTimeout(timer);
      log.off("data", look);
    };
    const fail = (what: string): void => {
      stop();
      reject(new CommandFailure(`nats-server keeps its accounts as they were: ${what}`));
    };
    const look = (chunk: Buffer): void => {
      text += chunk;
      const [, why] = REFUSED.exec(text) ?? [];
      if (why !== undefined) fail(why);
      else if (DONE.test(text)) {
        stop();
        resolve();
      }
    };
    const timer = setTimeout(() => fail("no answer in time"), RELOAD_MS_MAX);
    log.on("data", look);
    process.kill(pid, "SIGHUP");
  });
}

/**
 * Calls `onChange` after each change of a file, one call at a time; what it throws goes to `onTrouble`.
 * Returns what ends it.
 */
export function followFile(
  path: string,
  onChange: () => Promise<void>,
  onTrouble: (error: unknown) => void,
): () => void {
  let underWay = Promise.resolve();
  const changed = (): void => {
    underWay = underWay.then(onChange).catch(onTrouble);
  };
  watchFile(path, { interval: LOOK_EVERY_MS, persistent: false }, changed);
  return () => unwatchFile(path, changed);
}
