/** Worker processes: kept running, whatever happens to them. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { bundleProcess } from "./bundle.ts";
import type { WorkerConfig, WorkerKill } from "./worker-process.ts";

export class Workers implements AsyncDisposable {
  readonly #script: string;
  readonly #config: Omit<WorkerConfig, "kill">;
  readonly #members = new Set<{ kill(): void; ended: Promise<unknown> }>();
  /** Verdicts that workers were given: ids and where these are in the log. */
  readonly acked = new Map<string, string>();
  readonly failures: string[] = [];
  /** The orders that were carried out. */
  readonly executed: WorkerKill[] = [];
  #isClosing = false;

  private constructor(script: string, config: Omit<WorkerConfig, "kill">) {
    this.#script = script;
    this.#config = config;
  }

  static async open(config: Omit<WorkerConfig, "kill">): Promise<Workers> {
    return new Workers(await bundleProcess("worker-process"), config);
  }

  /** Keeps so many running from now on; each gets the next order. */
  keep(size: number, order: () => WorkerKill | undefined): void {
    for (let count = 0; count < size; count += 1) this.#keepOne(order);
  }

  #keepOne(order: () => WorkerKill | undefined): void {
    const kill = order();
    const config: WorkerConfig = { ...this.#config, ...(kill === undefined ? {} : { kill }) };
    const child = spawn(process.execPath, [this.#script, JSON.stringify(config)], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    createInterface({ input: child.stdout }).on("line", (line) => {
      const [what, id, cursor] = line.split(" ");
      if (what === "acked" && id !== undefined && cursor !== undefined) this.acked.set(id, cursor);
    });
    const ended = once(child, "exit");
    const member = { kill: () => child.kill("SIGKILL"), ended };
    this.#members.add(member);
    ended.then(
      () => {
        this.#members.delete(member);
        if (child.signalCode !== "SIGKILL")
          this.failures.push(`a worker ended with ${child.exitCode}`);
        if (this.#isClosing) return;
        if (kill !== undefined) this.executed.push(kill);
        this.#keepOne(order);
      },
      (error: unknown) => this.failures.push(String(error)),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosing = true;
    for (const member of this.#members) member.kill();
    await Promise.all([...this.#members].map(({ ended }) => ended));
  }
}
