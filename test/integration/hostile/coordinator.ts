/** The coordinator as an operator runs it: a process of its own, with little memory. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { HostStatus } from "@harmovela/host";
import { freePort } from "@harmovela/testkit";

const MAIN = join(
  fileURLToPath(new URL("../../../", import.meta.url)),
  "services/delegation-coordinator/src/main.ts",
);
const START_MS_MAX = 60_000;

export class CoordinatorProcess implements AsyncDisposable {
  readonly child: ChildProcess;
  readonly #healthPort: number;
  /** Most memory that it was seen to hold, bytes. */
  residentMax = 0;

  private constructor(child: ChildProcess, healthPort: number) {
    this.child = child;
    this.#healthPort = healthPort;
  }

  /** Resolves when it leads. `heapMb`: what it may hold of objects before it dies. */
  static async start(
    url: string,
    { heapMb, tokenKeyFile }: { heapMb: number; tokenKeyFile: string },
  ): Promise<CoordinatorProcess> {
    const healthPort = await freePort();
    const child = spawn(
      process.execPath,
      [`--max-old-space-size=${heapMb}`, "--conditions=development", "--import", "tsx", MAIN],
      {
        env: {
          ...process.env,
          HARMOVELA_SERVERS: url,
          HARMOVELA_HEALTH_PORT: String(healthPort),
          HARMOVELA_TOKEN_KEYS: tokenKeyFile,
          HARMOVELA_LOG_LEVEL: process.env.HARMOVELA_TEST_LOG ?? "error",
        },
        stdio: ["ignore", "inherit", "inherit"],
      },
    );
    const started = new CoordinatorProcess(child, healthPort);
    await started.until("it leads", ({ role }) => role === "leader", START_MS_MAX);
    return started;
  }

  get isRunning(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  async status(): Promise<HostStatus | undefined> {
    try {
      const response = await fetch(`http://127.0.0.1:${this.#healthPort}/healthz`);
      return (await response.json()) as HostStatus;
    } catch {
      // It has not opened its port yet.
      return undefined;
    }
  }

  async until(what: string, is: (status: HostStatus) => boolean, ms: number): Promise<HostStatus> {
    const until = performance.now() + ms;
    for (;;) {
      if (!this.isRunning) throw new Error(`the coordinator has ended before ${what}`);
      const status = await this.status();
      if (status !== undefined && is(status)) return status;
      if (performance.now() > until) {
        throw new Error(`not within ${ms} ms: ${what}: ${JSON.stringify(status)}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  /** Looks how much memory it holds. */
  weigh(): void {
    const { stdout } = spawnSync("ps", ["-o", "rss=", "-p", String(this.child.pid)], {
      encoding: "utf8",
    });
    this.residentMax = Math.max(this.residentMax, Number(stdout.trim()) * 1_024);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.isRunning) return;
    const exit = once(this.child, "exit");
    this.child.kill("SIGKILL");
    await exit;
  }
}
