/** What agents know of the tasks: what a plain observer of `ev` has seen so far, nothing else. */
import type { Envelope } from "@harmovela/envelope";

export interface SeenTask {
  readonly id: string;
  readonly tenant: string;
  readonly parent: SeenTask | undefined;
  readonly submitter: string;
  readonly target: string | undefined;
  owner: string | undefined;
  /** The newest event, without `task.`. */
  state: string;
}

const ENDS: ReadonlySet<string> = new Set(["completed", "failed", "cancelled", "timed_out"]);

export class View {
  readonly #tasks = new Map<string, SeenTask>();
  readonly #live = new Map<string, SeenTask>();

  get live(): SeenTask[] {
    return [...this.#live.values()];
  }

  get known(): SeenTask[] {
    return [...this.#tasks.values()];
  }

  get ended(): SeenTask[] {
    return this.known.filter(({ state }) => ENDS.has(state));
  }

  see(tenant: string, envelope: Envelope): void {
    const { type, task_id: id, source } = envelope;
    if (!type.startsWith("task.") || id === undefined) return;
    const key = `${tenant} ${id}`;
    const name = type.slice("task.".length);
    if (name === "submitted") {
      const parent = this.#tasks.get(`${tenant} ${envelope.parent_task_id}`);
      const { target } = envelope;
      const task: SeenTask = {
        id,
        tenant,
        parent,
        submitter: source,
        target,
        owner: undefined,
        state: name,
      };
      this.#tasks.set(key, task);
      this.#live.set(key, task);
      return;
    }
    const task = this.#tasks.get(key);
    if (task === undefined || name === "cancel.requested") return;
    task.state = name;
    if (name === "accepted" || name === "started") task.owner ??= source;
    if (ENDS.has(name)) this.#live.delete(key);
  }
}
