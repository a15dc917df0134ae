/** Finds a nats-server on this machine; never installs one. */
import { accessSync, constants, readdirSync, statSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const NAME = process.platform === "win32" ? "nats-server.exe" : "nats-server";

/** Where the set-up step keeps its copy: `.cache/nats-server` of the nearest folder above that has one. */
const CACHE = join(".cache", "nats-server");

/**
 * The path of a nats-server: `HARMOVELA_NATS_SERVER`, else the first on `PATH`, else the cached copy
 * (the newest, if there are several releases). Undefined when there is none. A path in the variable is
 * taken at its word, so that a mistake in it shows. The cache is looked for in `from` and all folders above.
 */
export function findNatsServer(
  env: NodeJS.ProcessEnv = process.env,
  from: string = dirname(fileURLToPath(import.meta.url)),
): string | undefined {
  const named = env.HARMOVELA_NATS_SERVER;
  if (named) return named;
  for (const folder of (env.PATH ?? "").split(delimiter)) {
    if (folder !== "" && isExecutable(join(folder, NAME))) return join(folder, NAME);
  }
  return cachedNatsServer(from);
}

function cachedNatsServer(from: string): string | undefined {
  let folder = from;
  for (;;) {
    const cached = newestIn(join(folder, CACHE));
    if (cached !== undefined) return cached;
    const parent = dirname(folder);
    if (parent === folder) return undefined;
    folder = parent;
  }
}

/** The cache holds one folder per release. */
function newestIn(cache: string): string | undefined {
  let releases: string[];
  try {
    releases = readdirSync(cache);
  } catch {
    // No such folder here.
    return undefined;
  }
  return releases
    .filter((release) => isExecutable(join(cache, release, NAME)))
    .sort((a, b) => b.localeCompare(a, "en", { numeric: true }))
    .map((release) => join(cache, release, NAME))[0];
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    // Not there, or not for us.
    return false;
  }
}
