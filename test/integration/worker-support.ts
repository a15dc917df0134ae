/** Processes of workers, and the real coordinator for them. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { createCoordinator } from "@harmovela/delegation-coordinator";
import { HarmovelaError } from "@harmovela/failure";
import { openService, type RunningService, type TokenKeys } from "@harmovela/host";
import type { NatsServer } from "@harmovela/testkit";
import pino from "pino";

const root = fileURLToPath(new URL("../../", import.meta.url));
const DEADLINE_MS = 30_000;

/** Fails instead of hanging. */
export async function within<T>(what: Promise<T>, ms = DEADLINE_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`nothing within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([what, late]);
  } finally {
    clearTimeout(timer);
  }
}

export function isCode(code: string): (error: unknown) => boolean {
  return (error) => error instanceof HarmovelaError && error.code === code;
}

export interface Spawned {
  child: ChildProcess;
  printed: () => string;
  /** Resolves when it has printed what matches, rejects when it exits before. */
  says(what: RegExp): Promise<string>;
  exit: Promise<unknown[]>;
}

/** Without keys nothing is issued. */
export async function coordinator(
  server: NatsServer,
  settings: Parameters<typeof createCoordinator>[0],
  tokens?: TokenKeys,
): Promise<RunningService> {
  const service = await openService(createCoordinator(settings), {
    servers: server.url,
    version: "0.0.0",
    logger: pino({ level: "silent" }),
    ...(tokens === undefined ? {} : { tokens }),
  });
  await service.host.untilLeading();
  return service;
}

export function run(path: string, env: Record<string, string>): Spawned {
  const child = spawn(process.execPath, ["--conditions=development", "--import", "tsx", path], {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let printed = "";
  const look: (() => void)[] = [];
  const rouse = (): void => {
    for (const wake of look.splice(0)) wake();
  };
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk: Buffer) => {
      printed += chunk.toString();
      rouse();
    });
  const exit = once(child, "exit");
  exit.then(rouse, rouse);
  const says = async (what: RegExp): Promise<string> => {
    for (;;) {
      const found = what.exec(printed);
      if (found) return found[1] ?? found[0];
      if (child.exitCode !== null || child.signalCode !== null) throw new Error(printed);
      await new Promise<void>((resolve) => look.push(resolve));
    }
  };
  return { child, printed: () => printed, says, exit };
}

/** A worker that has opened its session and takes offers. */
export interface SpawnedWorker extends Spawned {
  sessionId: string;
}

/** `holds`: it holds on to whatever it takes, until it is stopped. */
export async function runWorker(
  server: NatsServer,
  name: string,
  { holds = false, ...options }: Record<string, unknown> & { holds?: boolean } = {},
): Promise<SpawnedWorker> {
  const started = run("packages/client/test/worker-process.ts", {
    HARMOVELA_SERVERS: server.url,
    WORKER_NAME: name,
    WORKER_HOLDS: String(holds),
    WORKER_OPTIONS: JSON.stringify(options),
  });
  return { ...started, sessionId: await within(started.says(/ready (\S+)/)) };
}
