/** No work on a task between the entry that stops it and the one that lets it go on, as the log has seen them. */
import type { LogEntry } from "@harmovela/envelope";

const LEGAL = ["task.cancelled", "task.cancel.requested", "task.failed", "task.timed_out"];
const ENDS = ["task.completed", "task.cancelled", "task.failed", "task.timed_out"];

export class StopBook {
  readonly #live = new Set<string>();
  readonly #stopped = new Set<string>();
  readonly #submitted = new Set<string>();
  /** Stops that were seen of live tasks. */
  stops = 0;
  resumptions = 0;

  /** An entry of the log of `interruptions`. */
  see(entry: LogEntry): void {
    if (entry.kind !== "event") return;
    const { type, task_id: task, interruption_policy: policy } = entry.envelope;
    const key = `${entry.tenant} ${task}`;
    if (!this.#live.has(key)) return;
    const isForce = type === "interruption.requested" && policy === "force_stop";
    if (isForce || type === "interruption.saved" || type === "interruption.cancelled") {
      this.#stopped.add(key);
      this.stops += 1;
    } else if (type === "interruption.resumed" && this.#stopped.delete(key)) this.resumptions += 1;
  }

  /** An entry of the log of `tasks`; throws when it is work on a task that is stopped. */
  push(entry: LogEntry): void {
    if (entry.kind !== "event") return;
    const { type, task_id: task, parent_task_id: parent, payload } = entry.envelope;
    const key = `${entry.tenant} ${task}`;
    if (type === "task.submitted" || type === "delegation.requested") {
      if (!this.#live.has(key) && this.#stopped.has(`${entry.tenant} ${parent}`)) {
        throw new Error(`${key} was born under ${parent}, which is stopped`);
      }
      this.#live.add(key);
    }
    if (type === "task.submitted") this.#submitted.add(key);
    // An offer that was refused may have left no task behind.
    if (type === "delegation.rejected" && !this.#submitted.has(key)) this.#stopped.delete(key);
    if (!type.startsWith("task.")) return;
    if (this.#stopped.has(key) && !LEGAL.includes(type)) {
      throw new Error(`${type} of ${key}, which is stopped: ${JSON.stringify(payload)}`);
    }
    if (!ENDS.includes(type)) return;
    for (const book of [this.#live, this.#stopped, this.#submitted]) book.delete(key);
  }
}
