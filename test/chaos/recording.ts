/** The recorder process, and what it wrote down. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { within } from "./deadline.ts";

const SCRIPT = fileURLToPath(new URL("recorder.mjs", import.meta.url));
const END_MS = 120_000;

export interface Verdict {
  tenant: string;
  id: string;
  type: string;
  /** `event.acknowledged` or a rejection. */
  verdict: string;
  cursor?: string;
  pending: boolean;
  duplicate: boolean;
  error?: { code: string; message: string; details?: Record<string, unknown> };
}

/** A message that a plain subscriber saw under `ev`. */
export interface Seen {
  seq: number;
  subject: string;
  sha: string;
}

/** An entry that a plain subscriber saw on its way to the log, stored or not. */
export interface Tried {
  subject: string;
  sha: string;
  /** The leadership it was written under. */
  epoch: number;
}

/** A handoff token that was given out. */
export interface Given {
  tenant: string;
  task: string;
  jti: string;
}

export interface RecorderOptions {
  url: string | string[];
  tenants: string[];
  /** Per tenant. */
  agents: number;
  seed: number;
  mix: "plain" | "all";
  /** Between two pieces of work of an agent, on average. Default 0. */
  restMs?: number;
}

export interface Recorder extends AsyncDisposable {
  readonly verdicts: Verdict[];
  readonly seen: Seen[];
  readonly tried: Tried[];
  readonly tokens: Given[];
  /** Lets the agents end what they began; resolves when each envelope has been answered. */
  stop(): Promise<{ sent: number; resent: number }>;
}

export async function startRecorder(options: RecorderOptions): Promise<Recorder> {
  const child = spawn(process.execPath, [SCRIPT, JSON.stringify(options)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const exit = once(child, "exit");
  const verdicts: Verdict[] = [];
  const seen: Seen[] = [];
  const tried: Tried[] = [];
  const tokens: Given[] = [];
  let onReady = () => {};
  const ready = new Promise<void>((resolve) => {
    onReady = resolve;
  });
  let totals: { sent: number; resent: number } | undefined;
  const lines = createInterface({ input: child.stdout });
  const read = once(lines, "close");
  lines.on("line", (line) => {
    const { kind, ...rest } = JSON.parse(line);
    if (kind === "verdict") verdicts.push(rest as Verdict);
    else if (kind === "seen") seen.push(rest as Seen);
    else if (kind === "tried") tried.push(rest as Tried);
    else if (kind === "token") tokens.push(rest as Given);
    else if (kind === "end") totals = rest as { sent: number; resent: number };
    else onReady();
  });
  await within(20_000, "the recorder is ready", ready);
  return {
    verdicts,
    seen,
    tried,
    tokens,
    async stop() {
      child.stdin.write("stop\n");
      await within(END_MS, "everything that the recorder sent is answered", exit);
      await read;
      if (totals === undefined) throw new Error("the recorder has not come to its end");
      return totals;
    },
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGKILL");
      await exit;
    },
  };
}
