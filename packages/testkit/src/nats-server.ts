/** A real nats-server with JetStream for one test file: own port, own store, killed when the process ends. */
import { type ChildProcess, type ChildProcessByStdio, spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { findNatsServer } from "@harmovela/bus";

export interface NatsServerOptions {
  /** Default: what `findNatsServer` finds. */
  binary?: string;
  /** Default: a temporary folder, removed at the end. */
  storeDir?: string;
  /** Default: a free one. */
  port?: number;
  /** Further lines for the server's configuration file. */
  config?: string;
}

export interface NatsServer {
  readonly url: string;
  readonly port: number;
  readonly storeDir: string;
  readonly version: string;
  /** Of the process that runs now; undefined while none does. */
  readonly pid: number | undefined;
  /** What the server has written since its last start, the last 64 KiB. */
  readonly log: string;
  /** SIGKILL: what is not on disk or in the page cache is gone. Resolves when it has ended. */
  kill(): Promise<void>;
  /** An orderly stop. Resolves when it has ended. */
  stop(): Promise<void>;
  /** Starts again on the same port and store; kills first if it runs. Resolves when it is ready. */
  restart(): Promise<void>;
  /** Stops it and removes what it made. */
  [Symbol.asyncDispose](): Promise<void>;
}

const START_ATTEMPTS_MAX = 5;
const READY_MS_MAX = 20_000;
const STOP_MS_MAX = 10_000;
const LOG_CHARS_MAX = 65_536;

const running = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** Starts a server on 127.0.0.1; resolves when it answers and JetStream is ready. Throws, with the server's log, when it does not. */
export async function startNatsServer(options: NatsServerOptions = {}): Promise<NatsServer> {
  const binary = options.binary ?? findNatsServer();
  if (!binary) {
    throw new Error(
      "no nats-server: set HARMOVELA_NATS_SERVER, put one on PATH, or run `node scripts/nats-server.mjs`",
    );
  }
  const folder = mkdtempSync(join(tmpdir(), "harmovela-nats-"));
  const storeDir = options.storeDir ?? join(folder, "store");
  for (let attempt = 1; ; attempt++) {
    const port = options.port ?? (await freePort());
    const configFile = join(folder, "nats.conf");
    writeFileSync(
      configFile,
      `listen: "127.0.0.1:${port}"\njetstream { store_dir: ${JSON.stringify(storeDir)} }\n${options.config ?? ""}\n`,
    );
    const server = new RunningServer({ binary, configFile, folder, storeDir, port });
    try {
      await server.restart();
      return server;
    } catch (error) {
      await server.kill();
      // Between finding a free port and listening on it somebody else may have taken it.
      const isClash = server.log.includes("address already in use");
      if (!isClash || options.port !== undefined || attempt >= START_ATTEMPTS_MAX) {
        rmSync(folder, { recursive: true, force: true });
        throw error;
      }
    }
  }
}

/** Below the ranges from which systems take the ports of outgoing connections: only a listener can clash. */
const PORT_MIN = 20_000;
const PORT_MAX = 32_000;
const PORT_ATTEMPTS_MAX = 50;

/** A port of 127.0.0.1 that was free a moment ago, and that no outgoing connection takes meanwhile. */
export async function freePort(): Promise<number> {
  for (let attempt = 1; attempt <= PORT_ATTEMPTS_MAX; attempt++) {
    const port = randomInt(PORT_MIN, PORT_MAX);
    if (await isFree(port)) return port;
  }
  throw new Error(`no free port found in ${PORT_ATTEMPTS_MAX} attempts`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
  });
}

interface Place {
  binary: string;
  configFile: string;
  folder: string;
  storeDir: string;
  port: number;
}

class RunningServer implements NatsServer {
  readonly #place: Place;
  #child: ChildProcess | undefined;
  #ended: Promise<void> = Promise.resolve();
  #log = "";
  #version = "";
  #isToEnd = false;

  constructor(place: Place) {
    this.#place = place;
  }

  get url(): string {
    return `nats://127.0.0.1:${this.#place.port}`;
  }
  get port(): number {
    return this.#place.port;
  }
  get storeDir(): string {
    return this.#place.storeDir;
  }
  get version(): string {
    return this.#version;
  }
  get pid(): number | undefined {
    return this.#child?.pid;
  }
  get log(): string {
    return this.#log;
  }

  async restart(): Promise<void> {
    await this.kill();
    this.#log = "";
    this.#isToEnd = false;
    const child = spawn(this.#place.binary, ["-c", this.#place.configFile], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#child = child;
    running.add(child);
    this.#ended = new Promise((resolve) => {
      const end = (): void => {
        running.delete(child);
        if (this.#child === child) this.#child = undefined;
        resolve();
      };
      child.once("exit", end);
      child.once("error", (error) => {
        this.#log += `\n${error.message}`;
        end();
      });
    });
    await this.#ready(child);
    // Whoever waits for it would only say that the time is over.
    child.once("exit", (code, signal) => {
      if (this.#isToEnd) return;
      process.stderr.write(`nats-server has ended by itself (${signal ?? code}):\n${this.#log}\n`);
    });
    // A test that ends must not be held up by its server.
    child.unref();
    for (const pipe of [child.stdout, child.stderr]) (pipe as unknown as Socket).unref();
  }

  async kill(): Promise<void> {
    this.#isToEnd = true;
    this.#child?.ref();
    this.#child?.kill("SIGKILL");
    await this.#ended;
  }

  async stop(): Promise<void> {
    const child = this.#child;
    this.#isToEnd = true;
    child?.ref();
    child?.kill("SIGTERM");
    const timer = setTimeout(() => child?.kill("SIGKILL"), STOP_MS_MAX);
    await this.#ended;
    clearTimeout(timer);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    rmSync(this.#place.folder, { recursive: true, force: true });
  }

  /** The server says when it listens, and that it does after JetStream is up. */
  #ready(child: ChildProcessByStdio<null, Readable, Readable>): Promise<void> {
    return new Promise((resolve, reject) => {
      const fail = (what: string): void => {
        clearTimeout(timer);
        reject(new Error(`${what}:\n${this.#log}`));
      };
      const timer = setTimeout(() => fail("nats-server is not ready in time"), READY_MS_MAX);
      child.once("exit", () => fail("nats-server has ended"));
      child.once("error", () => fail("nats-server cannot be started"));
      const keep = (chunk: Buffer): void => {
        this.#log = `${this.#log}${chunk}`.slice(-LOG_CHARS_MAX);
        if (!this.#log.includes("Server is ready")) return;
        this.#version ||= /Version:\s+(\S+)/.exec(this.#log)?.[1] ?? "";
        clearTimeout(timer);
        resolve();
      };
      child.stdout.on("data", keep);
      child.stderr.on("data", keep);
    });
  }
}
