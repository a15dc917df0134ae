/** The tasks that are given to an agent, those that waited for it first. */
import type { Clock } from "@harmovela/bus";
import { toHarmovelaError } from "@harmovela/failure";
import { taskOf } from "./filter.ts";
import type { Observed } from "./lane.ts";
import type { Observation } from "./observation.ts";
import { isObject } from "./rejected-error.ts";
import { isTerminalState } from "./settled.ts";
import type { TaskAgent } from "./task-handle.ts";
import { WorkerTask } from "./worker-task.ts";

const RETRY_MS = 250;
const RETRY_MS_MAX = 5_000;

export class TaskStream implements AsyncIterableIterator<WorkerTask, undefined> {
  readonly #agent: TaskAgent;
  readonly #name: string;
  readonly #clock: Clock;
  readonly #observation: Observation;
  readonly #tasks: AsyncGenerator<WorkerTask, undefined>;

  constructor(agent: TaskAgent, name: string, clock: Clock, observation: Observation) {
    this.#agent = agent;
    this.#name = name;
    this.#clock = clock;
    this.#observation = observation;
    this.#tasks = this.#offer();
  }

  /** Resolves when no task submitted from now on can be missed. */
  get ready(): Promise<void> {
    return this.#observation.ready;
  }

  next(): Promise<IteratorResult<WorkerTask, undefined>> {
    return this.#tasks.next();
  }

  /** Ends the offers; tasks that were handed out go on. */
  async return(): Promise<IteratorResult<WorkerTask, undefined>> {
    await this.close();
    return { done: true, value: undefined };
  }

  async close(): Promise<void> {
    await this.#observation.close();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async *#offer(): AsyncGenerator<WorkerTask, undefined> {
    for await (const entry of this.#observation) {
      const id = taskOf(entry.envelope);
      if (id === undefined) continue;
      const task = await this.#toOffer(id, entry);
      if (!task) continue;
      if (this.#observation.isClosed) {
        task.unfollow();
        break;
      }
      yield task;
    }
    return undefined;
  }

  /** Undefined for a task that has ended or that another agent owns by now. */
  async #toOffer(id: string, entry: Observed): Promise<WorkerTask | undefined> {
    const task = new WorkerTask(this.#agent, id, entry);
    // Followed before it is looked up: what happens in between is seen by one or the other.
    await task.follow();
    let view: Record<string, unknown> | undefined;
    try {
      view = await this.#view(id);
    } catch (error) {
      task.unfollow();
      throw error;
    }
    const isMine = view?.owner === undefined || view.owner === this.#name;
    if (!view || isTerminalState(view.state) || !isMine) {
      task.unfollow();
      return undefined;
    }
    const request = view.cancel_requested_by;
    task.offeredAs(String(view.state), typeof request === "string" ? request : undefined);
    return task;
  }

  /** Asks until the service answers: a task must not be lost because it is away for a moment. */
  async #view(id: string): Promise<Record<string, unknown> | undefined> {
    for (let ms = RETRY_MS; !this.#observation.isClosed; ms = Math.min(ms * 2, RETRY_MS_MAX)) {
      try {
        const { result } = await this.#agent.readTask(id);
        return isObject(result) ? result : undefined;
      } catch (caught) {
        const error = toHarmovelaError(caught);
        if (error.code === "task_error") return undefined;
        if (error.retry === "never") throw error;
      }
      await new Promise<void>((resolve) => this.#clock.after(ms, resolve));
    }
    return undefined;
  }
}
