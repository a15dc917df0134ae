/** How a worker works. */
import type { HarmovelaError } from "@harmovela/failure";
import type { SessionOptions } from "./agent-session.ts";

export interface WorkerOptions extends SessionOptions {
  /** Jobs at a time. */
  concurrency: number;
  /**
   * How long an offer may wait for a job to end before it is refused, milliseconds; another process of
   * this name may take it meanwhile. Default 2,000; 0 refuses at once.
   */
  patienceMs?: number;
  /** What a refusal says about when to ask again, milliseconds from then. Default 5,000. */
  retryAfterMs?: number;
  /** How long an accepted job waits for the handoff that was promised, milliseconds. Default 5,000. */
  handoffWaitMs?: number;
  /** How long `close` waits for jobs under way before it aborts them, milliseconds. Default 30,000. */
  drainMs?: number;
  /** What tells it to close: on its SIGTERM, as `process` does. */
  drainOn?: SignalSource;
  /** Told what went wrong outside of jobs, and of jobs that do not heed their signal. Default: nobody. */
  onError?: (error: HarmovelaError) => void;
}

export interface SignalSource {
  on(signal: "SIGTERM", listener: () => void): unknown;
  off(signal: "SIGTERM", listener: () => void): unknown;
}
