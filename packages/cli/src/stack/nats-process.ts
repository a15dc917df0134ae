/**
 * A nats-server with JetStream that belongs to this process.
 *
 * N1 It never outlives this process, however that ends: a shell between the two waits for the end of
 *    its input, which the death of this process brings about.
 * N2 It has a process group of its own: Ctrl-C reaches the services first, so that they can drain.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { findNatsServer } from "@harmovela/bus";
import { CommandFailure } from "../command-failure.ts";
import { LOOPBACK } from "../options.ts";
import { reload } from "./reload.ts";
import { lockFileOf, waitForStore } from "./store-lock.ts";

export interface NatsProcessOptions {
  /** Where JetStream keeps its files; default a temporary folder that goes with the server. */
  storeDir?: string;
  /** Default: a free one. */
  port?: number;
  /** Default 127.0.0.1. */
  host?: string;
  /** A file with accounts, which it includes; its own configuration is written beside it. Default none. */
  accounts?: string;
}

export interface NatsProcess {
  readonly url: string;
  /** Resolves when it has ended, asked to or not. */
  readonly ended: Promise<void>;
  /** The last lines that it wrote. */
  readonly log: string;
  /** Reads its accounts anew. Throws a CommandFailure with what it says against them. */
  reload(): Promise<void>;
  /** An orderly stop. Resolves when it has ended. */
  stop(): Promise<void>;
}

const START_ATTEMPTS_MAX = 5;
const READY_MS_MAX = 20_000;
const STOP_MS_MAX = 10_000;
const LOG_CHARS_MAX = 16_384;

const WHY_NOT: Readonly<Record<string, string>> = {
  EADDRNOTAVAIL: "this machine has no such address",
  ENOTFOUND: "there is no host of that name",
  EACCES: "ports below 1024 are for the superuser",
};

/** N1. $0: nats-server, $1: its configuration, $2: where its process id goes, $3: what goes with it. */
const KEEPER = `
exec 3<&0
"$0" -c "$1" </dev/null 3<&- &
server=$!
echo $server > "$2"
{ cat <&3 >/dev/null 2>&1; kill -TERM $server 2>/dev/null; } >/dev/null 2>&1 &
wait $server
code=$?
rm -rf "$2" "$3"
exit $code
`;

/** Starts a server and resolves when JetStream answers. Throws what is missing or in the way. */
export async function startNatsProcess(options: NatsProcessOptions = {}): Promise<NatsProcess> {
  const binary = findNatsServer();
  if (binary === undefined) {
    throw new CommandFailure(
      "no nats-server on this machine: put one on PATH, name it in HARMOVELA_NATS_SERVER, or use --server URL",
    );
  }
  const host = options.host ?? LOOPBACK;
  if (options.port !== undefined) await assertFree(host, options.port);
  for (let attempt = 1; ; attempt++) {
    const folder = mkdtempSync(join(tmpdir(), "harmovela-"));
    const storeDir = options.storeDir ?? join(folder, "store");
    let server: OwnedServer | undefined;
    try {
      await waitForStore(storeDir);
      const port = options.port ?? (await freePort(host));
      const { accounts } = options;
      server = new OwnedServer({ binary, folder, storeDir, host, port, accounts });
      await server.start();
      return server;
    } catch (error) {
      await server?.stop();
      rmSync(folder, { recursive: true, force: true });
      // Between finding a free port and listening on it somebody else may have taken it.
      const isClash = server?.log.includes("address already in use") === true;
      if (isClash && options.port !== undefined) throw portTaken(host, options.port);
      if (!isClash || attempt >= START_ATTEMPTS_MAX) throw error;
    }
  }
}

function portTaken(host: string, port: number): CommandFailure {
  return new CommandFailure(
    `port ${port} of ${host} is in use: a stack may be running there already; use it with --server nats://${host}:${port}, or take another --port`,
  );
}

/** The port, or the system's word for why nobody can listen there. */
function listen(host: string, port: number): Promise<number | string> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", ({ code }: NodeJS.ErrnoException) => resolve(code ?? "unknown"));
    probe.listen(port, host, () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === "object" && address ? address.port : "closed"));
    });
  });
}

async function assertFree(host: string, port: number): Promise<void> {
  const found = await listen(host, port);
  if (found === "EADDRINUSE") throw portTaken(host, port);
  if (typeof found === "string") throw cannotListen(host, port, found);
}

async function freePort(host: string): Promise<number> {
  const found = await listen(host, 0);
  if (typeof found === "string") throw cannotListen(host, 0, found);
  return found;
}

function cannotListen(host: string, port: number, why: string): CommandFailure {
  const reason = WHY_NOT[why] ?? why;
  return new CommandFailure(
    `nobody can listen on ${host}${port === 0 ? "" : `:${port}`}: ${reason}`,
  );
}

interface Place {
  binary: string;
  /** For the configuration, and for a store that nobody named. Removed at the end. */
  folder: string;
  storeDir: string;
  host: string;
  port: number;
  accounts: string | undefined;
}

class OwnedServer implements NatsProcess {
  readonly #place: Place;
  #child: ChildProcess | undefined;
  #isRunning = false;
  #ended: Promise<void> = Promise.resolve();
  #log = "";

  constructor(place: Place) {
    this.#place = place;
  }

  get url(): string {
    const { host, port } = this.#place;
    return `nats://${host.includes(":") ? `[${host}]` : host}:${port}`;
  }
  get ended(): Promise<void> {
    return this.#ended;
  }
  get log(): string {
    return this.#log;
  }

  async start(): Promise<void> {
    const { binary, folder, storeDir } = this.#place;
    const file = writeConfiguration(this.#place);
    const child = spawn("/bin/sh", ["-c", KEEPER, binary, file, lockFileOf(storeDir), folder], {
      stdio: ["pipe", "pipe", "pipe"],
      detached: true,
    });
    this.#child = child;
    this.#isRunning = true;
    child.stdin.on("error", () => {
      // It has ended already, which `ended` tells.
    });
    this.#ended = new Promise((resolve) => {
      const end = (): void => {
        this.#isRunning = false;
        child.stdin.destroy();
        resolve();
      };
      child.once("exit", end);
      child.once("error", (error) => {
        this.#log += `\n${error.message}`;
        end();
      });
    });
    await this.#ready(child);
  }

  async reload(): Promise<void> {
    const log = this.#child?.stderr;
    if (!log || !this.#isRunning) throw new CommandFailure("nats-server does not run");
    await reload(Number(readFileSync(lockFileOf(this.#place.storeDir), "utf8")), log);
  }

  async stop(): Promise<void> {
    const child = this.#child;
    if (child !== undefined && this.#isRunning) {
      child.stdin?.end();
      const timer = setTimeout(() => killGroup(child), STOP_MS_MAX);
      await this.#ended;
      clearTimeout(timer);
    }
    rmSync(this.#place.folder, { recursive: true, force: true });
  }

  /** The server says when it listens, and that is after JetStream is up. */
  #ready(child: ChildProcess): Promise<void> {
    return new Promise((resolve, reject) => {
      const fail = (what: string): void => {
        clearTimeout(timer);
        reject(new CommandFailure(`${this.#place.binary}: ${what}: ${lastLineOf(this.#log)}`));
      };
      const timer = setTimeout(() => fail("not ready in time"), READY_MS_MAX);
      child.once("exit", () => fail("it has ended"));
      child.once("error", () => fail("it cannot be started"));
      const keep = (chunk: Buffer): void => {
        this.#log = `${this.#log}${chunk}`.slice(-LOG_CHARS_MAX);
        if (!this.#log.includes("Server is ready")) return;
        clearTimeout(timer);
        resolve();
      };
      child.stdout?.on("data", keep);
      child.stderr?.on("data", keep);
    });
  }
}

/** The path of what the server is told. What it includes is looked for beside it. */
function writeConfiguration({ folder, storeDir, host, port, accounts }: Place): string {
  const lines = [
    `host: ${JSON.stringify(host)}`,
    `port: ${port}`,
    `jetstream { store_dir: ${JSON.stringify(storeDir)} }`,
  ];
  if (accounts !== undefined) lines.push(`include ${JSON.stringify(basename(accounts))}`);
  const file = join(accounts === undefined ? folder : dirname(accounts), "nats.conf");
  writeFileSync(file, `${lines.join("\n")}\n`);
  return file;
}

/** The shell and the server. */
function killGroup({ pid }: ChildProcess): void {
  if (pid !== undefined) process.kill(-pid, "SIGKILL");
}

function lastLineOf(log: string): string {
  return log.trim().split("\n").at(-1) ?? "";
}
