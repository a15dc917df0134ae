/**
 * The whole gate, in the order of what fails fastest: format and lint, types, schemas, unit and
 * property tests, then everything that needs a real nats-server on a current release and on Debian's.
 *
 *   node scripts/verify.mjs            everything
 *   node scripts/verify.mjs unit       one stage: static | unit | current | debian
 *   node scripts/verify.mjs debian-rest    what the default leaves out on Debian's release
 */
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const NODE_FLAGS = ["--conditions=development", "--import", "tsx"];

/** Files under `folder` with one of these endings; node's own globs run nothing and succeed on Node 20. */
function filesIn(folder, ...endings) {
  const absolute = join(root, folder);
  if (!existsSync(absolute)) return [];
  return readdirSync(absolute)
    .map((name) => join(folder, name))
    .flatMap((path) =>
      statSync(join(root, path)).isDirectory()
        ? path.endsWith("node_modules")
          ? []
          : filesIn(path, ...endings)
        : endings.some((ending) => path.endsWith(ending))
          ? [path]
          : [],
    )
    .sort();
}

function run(title, command, args, env = {}) {
  process.stdout.write(`\n== ${title}\n`);
  const started = Date.now();
  const { status } = spawnSync(command, args, {
    cwd: root,
    stdio: "inherit",
    env: { ...process.env, ...env },
  });
  process.stdout.write(`== ${title}: ${((Date.now() - started) / 1000).toFixed(1)} s\n`);
  if (status !== 0) {
    process.stdout.write(`== ${title} failed\n`);
    process.exit(1);
  }
}

/** A file takes two minutes at most; one that hangs is ended and named, long before a run is. */
const HANGING_MS = 600_000;

function tests(title, files, env = {}) {
  if (files.length === 0) {
    process.stdout.write(`== ${title}: no test file found\n`);
    process.exit(1);
  }
  const bounds = ["--test-concurrency=2", `--test-timeout=${HANGING_MS}`];
  const args = [...NODE_FLAGS, "--test", ...bounds, ...files];
  run(`${title} (${files.length} files)`, process.execPath, args, env);
}

/** Path of a nats-server of this release, obtained when the machine has none. */
function server(...args) {
  const { status, stdout } = spawnSync(process.execPath, ["scripts/nats-server.mjs", ...args], {
    cwd: root,
    stdio: ["ignore", "pipe", "inherit"],
    encoding: "utf8",
  });
  const path = stdout.trim().split("\n").at(-1);
  if (status !== 0 || !path) process.exit(1);
  return path;
}

const unit = () =>
  [
    ...filesIn("packages", ".test.ts"),
    ...filesIn("services", ".test.ts"),
    ...filesIn("test/services", ".test.ts"),
    ...filesIn("test/sim", ".test.ts"),
    ...filesIn("test/fuzz", ".test.ts"),
    ...filesIn("test/contract", ".memory.test.ts"),
    ...filesIn("test/tidy", ".test.ts"),
  ].filter((path) => !path.endsWith(".int.test.ts"));

const integration = () => [
  ...filesIn("test/contract", ".jetstream.test.ts"),
  ...filesIn("packages", ".int.test.ts"),
  ...filesIn("services", ".int.test.ts"),
  ...filesIn("test/integration", ".test.ts"),
  ...filesIn("test/chaos", ".test.ts"),
  ...filesIn("test/conformance", ".test.ts"),
];

/** What is about the services, the command line or the documents: by default one server is enough. */
const ONE_SERVER_IS_ENOUGH = [
  "packages/host/test/audit.",
  "test/chaos/cascade",
  "test/chaos/clocks",
  "test/chaos/interruption",
  "test/chaos/replicated",
  "test/conformance/",
  "test/integration/belief",
  "test/integration/cli-",
  "test/integration/flood",
  "test/integration/interruption",
  "test/integration/lost-worker",
  "test/integration/plain-nats",
  "test/integration/process",
  "test/integration/provenance",
  "test/integration/races",
  "test/integration/readme",
  "test/integration/worker",
];
const needsBothServers = (path) => !ONE_SERVER_IS_ENOUGH.some((start) => path.startsWith(start));

const stages = {
  static: () => {
    run("format and lint", "npx", ["biome", "ci", "."], { NO_COLOR: "1" });
    run("build", "npx", ["tsc", "-b"]);
    run("types of tests", "npx", ["tsc", "-p", "tsconfig.test.json"]);
    run("schemas are what the code says", process.execPath, [
      ...NODE_FLAGS,
      "scripts/write-schemas.ts",
      "--check",
    ]);
  },
  unit: () => tests("unit, properties, simulation", unit()),
  current: () =>
    tests("on a current nats-server", integration(), {
      HARMOVELA_NATS_SERVER: server("--release", "current"),
    }),
  debian: () =>
    tests("on Debian's nats-server", integration().filter(needsBothServers), {
      HARMOVELA_NATS_SERVER: server("--release", "debian"),
    }),
  "debian-rest": () =>
    tests(
      "the rest on Debian's nats-server",
      integration().filter((path) => !needsBothServers(path)),
      { HARMOVELA_NATS_SERVER: server("--release", "debian") },
    ),
};
const DEFAULT_STAGES = ["static", "unit", "current", "debian"];

const asked = process.argv.slice(2);
for (const name of asked.length > 0 ? asked : DEFAULT_STAGES) {
  const stage = stages[name];
  if (stage === undefined) {
    process.stdout.write(`there is no stage ${name}; stages: ${Object.keys(stages).join(", ")}\n`);
    process.exit(2);
  }
  stage();
}
process.stdout.write("\n== all stages passed\n");
