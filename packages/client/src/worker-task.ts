/** A task that somebody has given to this agent. */
import type { Envelope } from "@harmovela/envelope";
import { HarmovelaError } from "@harmovela/failure";
import type { Observed } from "./lane.ts";
import { toSettled } from "./settled.ts";
import { type TaskAgent, TaskHandle } from "./task-handle.ts";

export class WorkerTask extends TaskHandle {
  /** The submission as logged. */
  readonly submission: Envelope;
  /** Its position. */
  readonly cursor: string;
  readonly #abort = new AbortController();
  #stateAtOffer = "submitted";

  /** @internal */
  constructor(agent: TaskAgent, id: string, entry: Observed) {
    super(agent, id);
    this.submission = entry.envelope;
    this.cursor = entry.cursor;
  }

  /**
   * Aborts when the task's cancellation is asked for or somebody else ends it (`task_cancelled`, with
   * the event's id and type in `details`), and when the agent is closed.
   */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** The task's state when it was offered: not "submitted" where work on it had begun before. */
  get stateAtOffer(): string {
    return this.#stateAtOffer;
  }

  /** @internal */
  offeredAs(state: string, cancelRequestedBy: string | undefined): void {
    this.#stateAtOffer = state;
    if (cancelRequestedBy !== undefined) this.stop(cancelRequestedBy, "task.cancel.requested");
  }

  protected override onEntry(entry: Observed): void {
    const { id, type } = entry.envelope;
    if (type === "task.cancel.requested") this.stop(id, type);
    else if (toSettled(this.id, entry) && !this.isOwn(id)) this.stop(id, type);
  }

  protected override onLost(error: HarmovelaError): void {
    this.abort(error);
  }

  /** @internal The first reason stays. */
  abort(error: HarmovelaError): void {
    this.#abort.abort(error);
  }

  /** @internal The event after which it is not to be worked on any more. */
  protected stop(eventId: string, type: string): void {
    if (this.#abort.signal.aborted) return;
    this.#abort.abort(
      new HarmovelaError("task_cancelled", "the task is not to be worked on any more", {
        details: { event_id: eventId, type, task_id: this.id },
      }),
    );
  }
}
