import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const SCRIPT = fileURLToPath(new URL("counter-process.ts", import.meta.url));

export interface CounterProcess extends AsyncDisposable {
  child: ChildProcess;
  /** Resolves when the line was printed. */
  until(line: "started" | "leading"): Promise<void>;
  signal(signal: "SIGKILL" | "SIGSTOP" | "SIGCONT" | "SIGTERM"): void;
}

export function startCounterProcess(
  url: string,
  instance: string,
  leaseMs = 1_500,
  ...more: "audit"[]
): CounterProcess {
  const child = spawn(
    process.execPath,
    [
      "--conditions=development",
      "--import",
      "tsx",
      SCRIPT,
      url,
      instance,
      String(leaseMs),
      ...more,
    ],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  let printed = "";
  const waiting = new Set<() => void>();
  child.stdout.on("data", (chunk: Buffer) => {
    printed += chunk.toString();
    for (const look of waiting) look();
  });
  return {
    child,
    until: (line) =>
      new Promise((resolve, fail) => {
        const timer = setTimeout(
          () => fail(new Error(`${instance} did not get to ${line}`)),
          30_000,
        );
        const look = () => {
          if (!printed.split("\n").includes(line)) return;
          clearTimeout(timer);
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      }),
    signal: (signal) => {
      child.kill(signal);
    },
    [Symbol.asyncDispose]: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exit = once(child, "exit");
      child.kill("SIGCONT");
      child.kill("SIGKILL");
      await exit;
    },
  };
}
