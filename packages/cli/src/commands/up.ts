import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { connectBus } from "@harmovela/bus";
import { Command, InvalidArgumentError } from "commander";
import pc from "picocolors";
import { listenForInterruption } from "../interruption.ts";
import { DEFAULT_SERVER, otherServerOption, toServers } from "../options.ts";
import { SERVICE_BY_DOMAIN } from "../stack/services.ts";
import { openStack, type Stack, serviceLogger } from "../stack/stack.ts";
import { plainText } from "../terminal.ts";
import { VERSION } from "../version.ts";

interface UpOptions {
  store?: string;
  port: number;
  host: string;
  server?: string;
  verbose: boolean;
}

const DEFAULT_PORT = 4222;
const LOOPBACK = "127.0.0.1";
const DEFAULT_STORE = ".harmovela";

const HELP = `
The logs are kept in --store, by default in .harmovela of the current folder, and are there again next
time. Log level of the services: HARMOVELA_LOG_LEVEL, default warn.

Example:
  $ harmovela up --store ./data --port 4300
`;

export function upCommand(): Command {
  return new Command("up")
    .summary("run a server with JetStream and all services, until Ctrl-C")
    .description("Run a NATS server with JetStream and all services in one process, until Ctrl-C.")
    .option("--store <dir>", `where the logs are kept (default: ${DEFAULT_STORE})`)
    .option("--port <number>", "port of the server", parsePort, DEFAULT_PORT)
    .option("--host <address>", "address to listen on; nobody is asked who he is", LOOPBACK)
    .addOption(otherServerOption().conflicts(["store", "port", "host"]))
    .option("--verbose", "the services tell what they do", false)
    .addHelpText("after", HELP)
    .action(runUp);
}

async function runUp(options: UpOptions): Promise<void> {
  const { server, port, host, verbose } = options;
  const logger = serviceLogger(verbose ? "info" : (process.env.HARMOVELA_LOG_LEVEL ?? "warn"));
  const storeDir = resolve(options.store ?? DEFAULT_STORE);
  const interruption = listenForInterruption();
  if (server === undefined) prepareStore(storeDir);
  const stack = await openStack(
    server === undefined ? { storeDir, port, host, logger } : { server, logger },
  );
  try {
    const version = await serverVersion(stack.url);
    process.stdout.write(banner(stack, { ...options, storeDir, version }));
    await Promise.race([stack.failed, interruption.requested]);
    process.stdout.write("\nStopping: what was accepted is being stored.\n");
  } finally {
    await stack.close();
    interruption.dispose();
  }
}

/** The logs are nothing to commit. */
function prepareStore(storeDir: string): void {
  mkdirSync(storeDir, { recursive: true });
  writeFileSync(join(storeDir, ".gitignore"), "*\n");
}

async function serverVersion(url: string): Promise<string> {
  await using bus = await connectBus({ servers: toServers(url), name: "harmovela up" });
  return bus.serverVersion ?? "of unknown version";
}

interface Told {
  server?: string;
  host: string;
  storeDir: string;
  version: string;
}

function banner(stack: Stack, { server, host, storeDir, version }: Told): string {
  const isOwn = server === undefined;
  const option = stack.url === DEFAULT_SERVER ? "" : ` --server ${stack.url}`;
  const rows: [string, string][] = [
    ["server", `${stack.url}  (nats-server ${version})`],
    ["observe", "hv.default.ev.>  for tenant default, hv.*.ev.> for all"],
    ["next", `harmovela demo${option}      harmovela tail${option}`],
    ["judging", Object.values(SERVICE_BY_DOMAIN).map(nameOf).join(", ")],
  ];
  if (stack.standingBy.length > 0) {
    const names = stack.standingBy.map(nameOf).join(", ");
    rows.push(["standby", `another process leads ${names}; this one takes over when it stops`]);
  }
  rows.push(["auth", isOwn ? authentication(host) : "as that server is set up"]);
  rows.push([
    "durable",
    isOwn
      ? `logs in ${storeDir}; a killed process loses nothing that was acknowledged,`
      : "a killed process loses nothing that was acknowledged,",
  ]);
  rows.push(["", "a power failure may lose the last two minutes (the server's sync_interval)"]);
  const lines = rows.map(([name, text]) => `  ${pc.dim(name.padEnd(9))} ${plainText(text)}`);
  return `${pc.bold(`Harmovela ${VERSION} is running.`)}\n\n${lines.join("\n")}\n\nCtrl-C stops it.\n`;
}

function authentication(host: string): string {
  const reach = host === LOOPBACK ? "this machine" : `whatever reaches ${host}`;
  return `OFF: everybody on ${reach} may publish as anybody`;
}

function nameOf(service: string): string {
  return service.replace("service:", "");
}

function parsePort(text: string): number {
  const port = Number(text);
  if (!Number.isInteger(port) || port < 1 || port > 65_535) {
    throw new InvalidArgumentError("a port from 1 to 65535");
  }
  return port;
}
