/** A job whose function does not return although nothing that it does counts any more. */
import { HarmovelaError } from "@harmovela/failure";
import type { DelegatedTask } from "./delegated-task.ts";
import type { JobFunction } from "./job-context.ts";
import type { JobEnvironment } from "./job-environment.ts";

/** For a function that heeds its signal, to return. */
const RETURN_MS = 2_000;

/**
 * What the work gives, or a rejection when its task is over and it has not returned in time: it cannot
 * be stopped from outside, but what it held is for other jobs then (case A13).
 */
export async function unlessUnheeded(
  { agent, report }: Pick<JobEnvironment, "agent" | "report">,
  task: DelegatedTask,
  work: ReturnType<JobFunction>,
): Promise<Awaited<ReturnType<JobFunction>>> {
  let hasReturned = false;
  let cancel: () => void = () => {};
  const unheeded = new Promise<never>((_, reject) => {
    const giveUp = (): void => {
      const details = { task_id: task.id };
      const message = "the job goes on although its task is over";
      const error = new HarmovelaError("task_cancelled", message, { details });
      report(error);
      reject(error);
    };
    void task.over.then(() => {
      if (!hasReturned) cancel = agent.clock.after(RETURN_MS, giveUp);
    });
  });
  try {
    return await Promise.race([work, unheeded]);
  } finally {
    hasReturned = true;
    cancel();
  }
}
