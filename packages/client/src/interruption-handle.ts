/** One interruption as whoever asked for it follows it. */
import { HarmovelaError } from "@harmovela/failure";
import type { Observed } from "./lane.ts";
import { Promised } from "./promised.ts";
import { isObject } from "./rejected-error.ts";
import type { TaskWatch } from "./task-watch.ts";
import type { Verdict } from "./verdict.ts";

/** What was saved, and where in the log it says so. */
export interface Saved {
  taskId: string;
  checkpointId: string;
  /** Who saved it. */
  by: string;
  cursor: string;
}

export class InterruptionHandle {
  readonly taskId: string;
  /** Of the request. */
  readonly id: string;
  readonly #watch: TaskWatch;
  readonly #saved = new Promised<Saved>();
  /** Of what stands for it now: what replaced it, what its expiry became. */
  #current: string;
  /** What came before it concerns others. */
  #isMade = false;
  #verdict: Verdict | undefined;
  #stopListening: (() => void) | undefined;

  /** @internal Use `request` of an agent's interruptions. */
  constructor(watch: TaskWatch, { taskId, id }: { taskId: string; id: string }) {
    this.#watch = watch;
    this.taskId = taskId;
    this.id = id;
    this.#current = id;
  }

  /** What became of the request; `pending` while the tasks below are being stopped. */
  get verdict(): Verdict | undefined {
    return this.#verdict;
  }

  /** @internal */
  accepted(verdict: Verdict): void {
    this.#verdict = verdict;
  }

  /**
   * Resolves when the task is saved, under this request or one that took its place. Throws
   * `interruption_timeout` when the grace passed without, `task_error` when it was over before: the task
   * has ended, or was resumed or given up after a forced stop.
   */
  get saved(): Promise<Saved> {
    return this.#saved.promise;
  }

  /** @internal Sees everything that is logged about interruptions of the task from here on. */
  async follow(): Promise<void> {
    await this.#watch.ready();
    this.#stopListening ??= this.#watch.listen(this.taskId, {
      onEntry: (entry) => this.#onEntry(entry),
      onLost: (error) => this.#end(() => this.#saved.reject(error)),
    });
  }

  /** @internal */
  unfollow(): void {
    this.#stopListening?.();
    this.#stopListening = undefined;
  }

  #onEntry({ envelope, cursor }: Observed): void {
    const { id, type, source: by, checkpoint_id: checkpointId, payload } = envelope;
    const { taskId } = this;
    this.#isMade ||= id === this.id;
    if (!this.#isMade) return;
    if (type === "interruption.requested") {
      if (
        isObject(payload) &&
        payload.expired === true &&
        envelope.causation_id === this.#current
      ) {
        this.#fail("interruption_timeout", "nothing was saved in time", id);
      }
      // A stronger one takes its place, and what is saved then is saved for both.
      if (id !== this.id) this.#current = id;
    } else if (type === "interruption.saved" && checkpointId !== undefined) {
      this.#end(() => this.#saved.resolve({ taskId, checkpointId, by, cursor }));
    } else if (type === "interruption.resumed" || type === "interruption.cancelled") {
      this.#fail("task_error", "it was over before anything was saved", id);
    }
  }

  #fail(code: "interruption_timeout" | "task_error", message: string, eventId: string): void {
    const details = { task_id: this.taskId, interruption: this.id, event_id: eventId };
    this.#end(() => this.#saved.reject(new HarmovelaError(code, message, { details })));
  }

  #end(settle: () => void): void {
    settle();
    this.unfollow();
  }
}
