import type { HarmovelaError } from "@harmovela/failure";
import type { WorkAgent } from "./work-agent.ts";

/** What jobs need of the worker that runs them. */
export interface JobEnvironment {
  agent: WorkAgent;
  sessionId: () => string | undefined;
  /** Resolves when the worker has a session again. */
  whenInSession: () => Promise<void>;
  handoffWaitMs: number;
  /** Gives an accepted offer back that was not begun. */
  giveBack: () => Promise<void>;
  /** Told what whoever runs the process must know. */
  report: (error: HarmovelaError) => void;
}
