/** A task that was delegated to this agent, as the one who works on it sees it. */
import type { HarmovelaError } from "@harmovela/failure";
import type { Observed } from "./lane.ts";
import { Promised } from "./promised.ts";
import type { TaskAgent } from "./task-handle.ts";
import { WorkerTask } from "./worker-task.ts";

export class DelegatedTask extends WorkerTask {
  readonly #name: string;
  #isHandedOff = false;
  #hasEnded = false;
  #isCancelRequested = false;
  #wake: (() => void)[] = [];
  readonly #over = new Promised<void>();
  readonly #interrupted = new Promised<void>();

  /** @internal `entry` is the request. */
  constructor(agent: TaskAgent, name: string, id: string, entry: Observed) {
    super(agent, id, entry);
    this.#name = name;
  }

  get isHandedOff(): boolean {
    return this.#isHandedOff;
  }

  /** Resolves when the task was handed over or is not to be worked on any more. */
  async handedOff(): Promise<void> {
    while (!this.#isHandedOff && !this.signal.aborted)
      await new Promise<void>((resolve) => this.#wake.push(resolve));
  }

  /**
   * Resolves when nothing that this process does for it counts any more: ended by others, given to
   * somebody else, its session lost. A cancellation that is asked for leaves time to end it well.
   */
  get over(): Promise<void> {
    return this.#over.promise;
  }

  /** Others have ended it or have it now: there is nothing to say about it. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  get isCancelRequested(): boolean {
    return this.#isCancelRequested;
  }

  /** Whether its job is to stop for now. */
  get isInterrupted(): boolean {
    return this.#interrupted.isSettled;
  }

  /** Resolves when its job is to stop for now. */
  get interrupted(): Promise<void> {
    return this.#interrupted.promise;
  }

  /** Its job is to stop so that it can go on later; by force, nothing that it still does counts. */
  interrupt(error: HarmovelaError, isForced: boolean): void {
    super.abort(error);
    this.#interrupted.resolve();
    if (isForced) this.#over.resolve();
    this.#rouse();
  }

  /** What this process does for it counts no more, since that event. */
  end(eventId: string, type: string): void {
    this.stop(eventId, type);
    this.#rouse();
  }

  protected override onEntry(entry: Observed): void {
    const { id, type, delegated_to: to } = entry.envelope;
    if (type === "delegation.handoff.completed") this.#isHandedOff = true;
    else if (type === "delegation.rejected") this.stop(id, type);
    else if (type === "delegation.escalated" && to !== this.#name) this.stop(id, type);
    super.onEntry(entry);
    this.#rouse();
  }

  protected override onLost(error: HarmovelaError): void {
    super.onLost(error);
    this.#rouse();
  }

  override abort(error: HarmovelaError): void {
    super.abort(error);
    this.#over.resolve();
    this.#rouse();
  }

  protected override stop(eventId: string, type: string): void {
    super.stop(eventId, type);
    if (type === "task.cancel.requested") {
      this.#isCancelRequested = true;
      return;
    }
    this.#hasEnded = true;
    this.#over.resolve();
  }

  #rouse(): void {
    for (const wake of this.#wake.splice(0)) wake();
  }
}
