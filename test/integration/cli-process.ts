/** The real command line as a process of its own. */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { dirname, join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import type { Envelope } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "..", "..");
const MAIN = join(ROOT, "packages", "cli", "src", "main.ts");
/** Longer than any command here takes on a busy machine. */
const DEADLINE_MS = 240_000;

export interface CliResult {
  code: number | null;
  stdout: string;
  stderr: string;
}

export interface CliOptions {
  input?: string | Uint8Array;
  cwd?: string;
  env?: NodeJS.ProcessEnv;
}

/** A command that runs on. */
export class CliProcess implements AsyncDisposable {
  readonly child: ChildProcessByStdio<Writable, Readable, Readable>;
  stdout = "";
  stderr = "";
  readonly ended: Promise<CliResult>;
  readonly #args: readonly string[];
  readonly #looks = new Set<() => void>();
  #isEnded = false;

  constructor(args: readonly string[], { cwd, env }: CliOptions = {}) {
    this.#args = args;
    this.child = spawn(
      process.execPath,
      ["--conditions=development", "--import", import.meta.resolve("tsx"), MAIN, ...args],
      {
        cwd: cwd ?? ROOT,
        env: { ...process.env, NO_COLOR: "1", FORCE_COLOR: "", ...env },
        stdio: ["pipe", "pipe", "pipe"],
      },
    );
    this.child.stdin.on("error", () => {
      // It ended before it had read everything; its exit code is what counts.
    });
    this.child.stdout.setEncoding("utf8").on("data", (text: string) => {
      this.stdout += text;
      this.#look();
    });
    this.child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.stderr += text;
      this.#look();
    });
    this.ended = new Promise((resolve) => {
      this.child.once("close", (code) => {
        this.#isEnded = true;
        this.#look();
        resolve({ code, stdout: this.stdout, stderr: this.stderr });
      });
    });
  }

  /** Resolves when `is` holds of what it has written; throws with what it wrote when it never does. */
  until(is: (process: CliProcess) => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const stop = (): void => {
        clearTimeout(timer);
        this.#looks.delete(look);
      };
      const fail = (what: string): void => {
        stop();
        const wrote = `${this.stdout}\n${this.stderr}`.slice(-4_000);
        reject(new Error(`harmovela ${this.#args.join(" ")}: ${what}:\n${wrote}`));
      };
      const look = (): void => {
        if (is(this)) {
          stop();
          resolve();
        } else if (this.#isEnded) fail("has ended");
      };
      const timer = setTimeout(() => fail("not in time"), DEADLINE_MS);
      this.#looks.add(look);
      look();
    });
  }

  /** Its events on stdout so far. */
  get events(): Envelope[] {
    return eventsOf(this.stdout);
  }

  send(...lines: readonly string[]): void {
    for (const line of lines) this.child.stdin.write(`${line}\n`);
  }

  /** Its result; throws when it does not end. */
  async end(): Promise<CliResult> {
    await this.until(() => this.#isEnded);
    return this.ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#isEnded) this.child.kill("SIGKILL");
    await this.ended;
  }

  #look(): void {
    for (const look of [...this.#looks]) look();
  }
}

/** Runs a command to its end. */
export async function cli(args: readonly string[], options: CliOptions = {}): Promise<CliResult> {
  await using running = new CliProcess(args, options);
  running.child.stdin.end(options.input ?? "");
  // Awaited here: leaving this block ends the process.
  return await running.end();
}

/** The complete lines as events. */
export function eventsOf(text: string): Envelope[] {
  return text
    .slice(0, text.lastIndexOf("\n") + 1)
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Envelope);
}

/** `type id` of each event; answers and derived events by what they are about. */
export function namesOf(events: readonly Envelope[]): string[] {
  return events.map((event) => {
    const payload = event.payload as JsonObject;
    const about = payload.acknowledged_event_id;
    if (about === undefined) {
      return event.id.startsWith("hv_")
        ? `${event.type} ${event.task_id}`
        : `${event.type} ${event.id}`;
    }
    const error = payload.error as JsonObject | undefined;
    const how = error?.code ?? (payload.duplicate === true ? "duplicate" : "ok");
    return `${event.type} ${String(about)} ${String(how)}`;
  });
}

let count = 0;

/** A line of one event. */
export function line(
  type: string,
  fields: Partial<Envelope> & { id: string },
  payload: JsonObject = {},
): string {
  count += 1;
  const created_at = new Date(Date.UTC(2026, 2, 1) + count * 1000).toISOString();
  const frame = { spec_version: "0.2", source: "agent:planner", created_at };
  return JSON.stringify({ ...frame, ...fields, type, payload });
}
