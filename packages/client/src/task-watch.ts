/** All that happens to tasks from now on, read once and handed to whoever follows a task. */
import { type HarmovelaError, toHarmovelaError } from "@harmovela/failure";
import { taskOf } from "./filter.ts";
import type { Observed } from "./lane.ts";
import type { Observation } from "./observation.ts";

export interface TaskListener {
  onEntry(entry: Observed): void;
  /** Nothing more comes. */
  onLost(error: HarmovelaError): void;
}

export class TaskWatch {
  readonly #open: () => Observation;
  readonly #listeners = new Map<string, Set<TaskListener>>();
  readonly #overseers = new Set<TaskListener>();
  #observation: Observation | undefined;

  constructor(open: () => Observation) {
    this.#open = open;
  }

  /** Resolves when whatever is stored from now on will be seen. */
  async ready(): Promise<void> {
    if (!this.#observation) {
      const observation = this.#open();
      this.#observation = observation;
      this.#pump(observation).catch((error: unknown) => this.#lose(observation, error));
    }
    await this.#observation.ready;
  }

  /** The result ends it. */
  listen(taskId: string, listener: TaskListener): () => void {
    const listeners = this.#listeners.get(taskId) ?? new Set();
    this.#listeners.set(taskId, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listeners.get(taskId) === listeners)
        this.#listeners.delete(taskId);
    };
  }

  /** To every entry, before those who listen to its task. The result ends it. */
  listenToAll(listener: TaskListener): () => void {
    this.#overseers.add(listener);
    return () => this.#overseers.delete(listener);
  }

  /** Tells all who listen why nothing more comes. */
  close(error: HarmovelaError): void {
    const all = [...this.#listeners.values(), new Set(this.#overseers)];
    this.#listeners.clear();
    this.#overseers.clear();
    for (const listeners of all) for (const listener of listeners) listener.onLost(error);
  }

  async #pump(observation: Observation): Promise<void> {
    for await (const entry of observation) {
      for (const overseer of [...this.#overseers]) overseer.onEntry(entry);
      const taskId = taskOf(entry.envelope);
      const listeners = taskId === undefined ? undefined : this.#listeners.get(taskId);
      if (listeners) for (const listener of [...listeners]) listener.onEntry(entry);
    }
  }

  /** The next who follows a task starts it anew. */
  #lose(observation: Observation, error: unknown): void {
    if (this.#observation === observation) this.#observation = undefined;
    this.close(toHarmovelaError(error));
  }
}
