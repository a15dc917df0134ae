/** A task that was delegated to this agent, as the one who works on it sees it. */
import type { HarmovelaError } from "@harmovela/failure";
import type { Observed } from "./lane.ts";
import type { TaskAgent } from "./task-handle.ts";
import { WorkerTask } from "./worker-task.ts";

export class DelegatedTask extends WorkerTask {
  readonly #name: string;
  #isHandedOff = false;
  #wake: (() => void)[] = [];

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
    this.#rouse();
  }

  #rouse(): void {
    for (const wake of this.#wake.splice(0)) wake();
  }
}
