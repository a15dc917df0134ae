/** Sees everything that is logged about the demo's tasks, in log order, and shows it. */
import type { Agent, Settled, TaskHandle } from "@harmovela/client";
import type { Envelope } from "@harmovela/envelope";
import { HarmovelaError } from "@harmovela/failure";
import type { Board } from "./board.ts";

/** Longer than anything in the demo takes. */
const WAIT_MS_MAX = 30_000;

export interface Witness {
  /** Seen so far. */
  readonly entries: readonly Envelope[];
  /** Resolves when it has seen such an event; throws `timeout` when none comes. */
  until(is: (envelope: Envelope) => boolean): Promise<void>;
  /** How the task ended, once it has been shown. */
  end(task: TaskHandle): Promise<Settled>;
}

/** Resolves when nothing can be missed. The demo's tasks are those whose ids end with `suffix`. */
export async function openWitness(agent: Agent, suffix: string, board: Board): Promise<Witness> {
  const entries: Envelope[] = [];
  const waiting = new Set<() => void>();
  const observation = agent.subscribe({ domains: ["tasks"], from: "now" });
  await observation.ready;
  const follow = async (): Promise<void> => {
    for await (const entry of observation) {
      if (!entry.envelope.task_id?.endsWith(suffix)) continue;
      entries.push(entry.envelope);
      board.show(entry);
      for (const look of [...waiting]) look();
    }
  };
  follow().catch(() => {
    // Whoever waits for an event is told that none comes.
  });
  const until = (is: (envelope: Envelope) => boolean): Promise<void> =>
    new Promise((resolve, reject) => {
      const stop = (): void => {
        clearTimeout(timer);
        waiting.delete(look);
      };
      const look = (): void => {
        if (!entries.some(is)) return;
        stop();
        resolve();
      };
      const timer = setTimeout(() => {
        stop();
        reject(new HarmovelaError("timeout", "what the demo waits for does not happen"));
      }, WAIT_MS_MAX);
      waiting.add(look);
      look();
    });
  return {
    entries,
    until,
    end: async (task) => {
      const settled = await task.settled();
      await until(({ id }) => id === settled.envelope.id);
      return settled;
    },
  };
}
