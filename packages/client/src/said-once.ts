/** Saying something that must be known to have been said. */
import { toHarmovelaError } from "@harmovela/failure";
import type { DelegatedTask } from "./delegated-task.ts";
import type { JobEnvironment } from "./job-environment.ts";
import type { Verdict } from "./verdict.ts";

/** Tries of an ending whose outcome is uncertain; one of them at most is accepted. */
const ENDINGS_MAX = 3;

const SESSION_CODES = ["session_closed", "session_error", "session_timeout"];

/** Says an end until it is known what became of it, in the session that there is by then. */
export async function saidOnce(
  { whenInSession }: Pick<JobEnvironment, "whenInSession">,
  task: DelegatedTask,
  say: () => Promise<Verdict>,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    await whenInSession();
    try {
      await say();
      return;
    } catch (error) {
      const code = toHarmovelaError(error).code;
      const isOver = code === "task_error" && attempt > 1 && task.signal.aborted;
      if (isOver) return;
      const mayAgain = ["effect_outcome_uncertain", "no_service", ...SESSION_CODES].includes(code);
      if (!mayAgain || attempt >= ENDINGS_MAX) throw error;
    }
  }
}
