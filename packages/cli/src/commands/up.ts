import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { authFromFile, connectBus } from "@harmovela/bus";
import { Command, InvalidArgumentError } from "commander";
import pino from "pino";
import { CommandFailure } from "../command-failure.ts";
import { listenForInterruption } from "../interruption.ts";
import { LOOPBACK, otherServerOption, toServers } from "../options.ts";
import { banner } from "../stack/banner.ts";
import { openStack, type Stack, serviceLogger } from "../stack/stack.ts";

interface UpOptions {
  store?: string;
  port: number;
  host: string;
  server?: string;
  secure: boolean;
  verbose: boolean;
}

const DEFAULT_PORT = 4222;
const DEFAULT_LEVEL = "warn";
const DEFAULT_STORE = ".harmovela";

const HELP = `
The logs are kept in --store, by default in .harmovela of the current folder, and are there again next
time. Log level of the services: HARMOVELA_LOG_LEVEL, default warn.

With --secure a connection needs a key, and says nothing under another name. Keys lie in keys/ of the store,
readable by their owner alone; harmovela agent add --config <store>/keys/agents.conf makes more, and they are
good at once. A store is with keys or without for good.

Example:
  $ harmovela up --store ./data --port 4300
`;

export function upCommand(): Command {
  return new Command("up")
    .summary("run a server with JetStream and all services, until Ctrl-C")
    .description("Run a NATS server with JetStream and all services in one process, until Ctrl-C.")
    .option("--store <dir>", `where the logs are kept (default: ${DEFAULT_STORE})`)
    .option("--port <number>", "port of the server", parsePort, DEFAULT_PORT)
    .option("--host <address>", "address to listen on", LOOPBACK)
    .option("--secure", "who connects needs a key; keys are made in the store", false)
    .addOption(otherServerOption().conflicts(["store", "port", "host", "secure"]))
    .option("--verbose", "the services tell what they do", false)
    .addHelpText("after", HELP)
    .action(runUp);
}

async function runUp(options: UpOptions): Promise<void> {
  const { server, port, host, secure, verbose } = options;
  const logger = serviceLogger(verbose ? "info" : logLevel());
  const storeDir = resolve(options.store ?? DEFAULT_STORE);
  const interruption = listenForInterruption();
  if (server === undefined) prepareStore(storeDir);
  const stack = await openStack(
    server === undefined ? { storeDir, port, host, secure, logger } : { server, logger },
  );
  try {
    const version = await serverVersion(stack);
    process.stdout.write(banner(stack, { isOwn: server === undefined, host, storeDir, version }));
    await Promise.race([stack.failed, interruption.requested]);
    process.stdout.write("\nStopping: what was accepted is being stored.\n");
  } finally {
    await stack.close();
    interruption.dispose();
  }
}

function logLevel(): string {
  const { HARMOVELA_LOG_LEVEL: level = "" } = process.env;
  if (level === "") return DEFAULT_LEVEL;
  const levels = Object.keys(pino.levels.values);
  if (levels.includes(level)) return level;
  throw new CommandFailure(`HARMOVELA_LOG_LEVEL must be one of ${levels.join(", ")}`, 2);
}

/** The logs are nothing to commit. */
function prepareStore(storeDir: string): void {
  mkdirSync(storeDir, { recursive: true });
  writeFileSync(join(storeDir, ".gitignore"), "*\n");
}

async function serverVersion({ url, keys }: Stack): Promise<string> {
  await using bus = await connectBus({
    servers: toServers(url),
    name: "harmovela up",
    ...(keys === undefined ? {} : { auth: authFromFile(keys.operator) }),
  });
  return bus.serverVersion ?? "of unknown version";
}

function parsePort(text: string): number {
  const port = Number(text);
  if (!Number.isInteger(port) || port < 1 || port > 65_535) {
    throw new InvalidArgumentError("a port from 1 to 65535");
  }
  return port;
}
