/** One task in the hands of an agent: what it can say about it, and how it ended. */
import { type Envelope, newEventId } from "@harmovela/envelope";
import {
  type ErrorPayload,
  HarmovelaError,
  type JsonObject,
  type JsonValue,
} from "@harmovela/failure";
import type { Draft } from "./draft.ts";
import type { Observed } from "./lane.ts";
import type { Reading } from "./reads.ts";
import { isObject } from "./rejected-error.ts";
import { isTerminalState, type Settled, toSettled } from "./settled.ts";
import type { TaskWatch } from "./task-watch.ts";
import type { Verdict } from "./verdict.ts";

/** What a handle needs of its agent. */
export interface TaskAgent {
  readonly watch: TaskWatch;
  publish(draft: Draft): Promise<Verdict>;
  submit(spec: SubmitSpec): Promise<TaskHandle>;
  readTask(taskId: string): Promise<Reading>;
  /** The entry about the task at a position of the log; undefined when it is not there any more. */
  entryAt(taskId: string, seq: number): Promise<Observed | undefined>;
}

export interface SubmitSpec {
  /** Default: a fresh `task_<ULID>`. */
  task_id?: string;
  /** Who is to do it; without one, whoever accepts it. */
  target?: string;
  description?: string;
  /** Counted from receipt, on the broker's clock. */
  timeout_ms?: number;
  parent_task_id?: string;
  /** Further fields of the payload. */
  payload?: JsonObject;
  /** Further fields of the envelope. */
  envelope?: Partial<Envelope>;
}

export interface WorkReport {
  message?: string;
  /** 0 to 1. */
  progress?: number;
  result?: JsonValue;
}

/** `now`: everything below is cancelled at once; else runners are asked, and forced after the grace. */
export type CancelOptions =
  | { reason?: string; grace_period_ms?: number; now?: false }
  | { reason?: string; now: true };

/** An error that a task failed with; `retryable` defaults to false. */
export type TaskError = Omit<ErrorPayload, "code" | "retryable"> & {
  code: string;
  retryable?: boolean;
};

export class TaskHandle {
  readonly id: string;
  readonly #agent: TaskAgent;
  /** Events of this handle that may end the task; at most one is accepted. */
  readonly #endings = new Set<string>();
  #settled: Settled | undefined;
  #waiters: { resolve(settled: Settled): void; reject(error: HarmovelaError): void }[] = [];
  #stopListening: (() => void) | undefined;

  /** @internal Handles come from `submit`, `handle` and `tasks` of an agent. */
  constructor(agent: TaskAgent, id: string) {
    this.#agent = agent;
    this.id = id;
  }

  accept(): Promise<Verdict> {
    return this.#say("accepted");
  }
  start(): Promise<Verdict> {
    return this.#say("started");
  }
  block(reason: string): Promise<Verdict> {
    return this.#say("blocked", { reason });
  }
  progress(report: WorkReport = {}): Promise<Verdict> {
    return this.#say("progress", { ...report });
  }
  output(report: WorkReport = {}): Promise<Verdict> {
    return this.#say("output", { ...report });
  }
  /** Refused while a child is live (spec 5.5). */
  complete(result?: JsonValue): Promise<Verdict> {
    return this.#say("completed", result === undefined ? {} : { result });
  }
  fail(error: TaskError | HarmovelaError): Promise<Verdict> {
    return this.#say("failed", { error: toTaskError(error) });
  }

  /** Asks for the end of the task and of all below it; `now` settles it without asking. */
  cancel(options: CancelOptions = {}): Promise<Verdict> {
    const payload: JsonObject = { task_id: this.id };
    if (options.reason !== undefined) payload.reason = options.reason;
    if (options.now) return this.#say("cancelled", payload);
    const grace = options.grace_period_ms;
    if (grace !== undefined) payload.grace_period_ms = grace;
    return this.#agent.publish({ type: "task.cancel.requested", task_id: this.id, payload });
  }

  /** Submits a task below this one. */
  child(spec: Omit<SubmitSpec, "parent_task_id">): Promise<TaskHandle> {
    return this.#agent.submit({ ...spec, parent_task_id: this.id });
  }

  /**
   * Resolves when the task has ended, whoever ended it. Throws `closed` when the agent is closed first,
   * `task_error` for a task that does not exist.
   */
  async settled(): Promise<Settled> {
    if (this.#settled) return this.#settled;
    if (!this.#stopListening) await this.#catchUp();
    if (this.#settled) return this.#settled;
    return new Promise((resolve, reject) => {
      this.#waiters.push({ resolve, reject });
    });
  }

  /** @internal Sees everything that is logged about the task from here on. */
  async follow(): Promise<void> {
    await this.#agent.watch.ready();
    this.#stopListening ??= this.#agent.watch.listen(this.id, {
      onEntry: (entry) => {
        this.onEntry(entry);
        const settled = toSettled(this.id, entry);
        if (settled) this.#settle(settled);
      },
      onLost: (error) => {
        this.#stopListening = undefined;
        this.onLost(error);
        for (const waiter of this.#waiters.splice(0)) waiter.reject(error);
      },
    });
  }

  /** @internal */
  unfollow(): void {
    this.#stopListening?.();
    this.#stopListening = undefined;
  }

  /** @internal For what a worker does about it. */
  protected onEntry(_entry: Observed): void {}
  protected onLost(_error: HarmovelaError): void {}
  /** Whether this handle itself has published the event. */
  protected isOwn(eventId: string): boolean {
    return this.#endings.has(eventId);
  }

  /** A task that was there before this handle: it may have ended already. */
  async #catchUp(): Promise<void> {
    await this.follow();
    try {
      const { result } = await this.#agent.readTask(this.id);
      if (!isObject(result)) throw new HarmovelaError("task_error", "there is no such task");
      if (!isTerminalState(result.state) || this.#settled) return;
      const winner = isObject(result.winner) ? result.winner : {};
      const seq = typeof winner.seq === "number" ? winner.seq : 0;
      const entry = await this.#agent.entryAt(this.id, seq);
      const settled = entry && toSettled(this.id, entry);
      if (!settled) throw new HarmovelaError("task_error", "the end of the task is not kept");
      this.#settle(settled);
    } catch (error) {
      if (this.#waiters.length === 0) this.unfollow();
      throw error;
    }
  }

  #settle(settled: Settled): void {
    this.#settled ??= settled;
    this.unfollow();
    for (const waiter of this.#waiters.splice(0)) waiter.resolve(this.#settled);
  }

  async #say(state: string, fields: JsonObject | WorkReport = {}): Promise<Verdict> {
    const id = newEventId();
    const isEnding = isTerminalState(state);
    if (isEnding) this.#endings.add(id);
    const payload = { task_id: this.id, state, ...fields } as JsonObject;
    try {
      return await this.#agent.publish({ id, type: `task.${state}`, task_id: this.id, payload });
    } catch (error) {
      // One of unknown outcome may still turn out to have ended the task.
      const isUncertain =
        error instanceof HarmovelaError && error.code === "effect_outcome_uncertain";
      if (isEnding && !isUncertain) this.#endings.delete(id);
      throw error;
    }
  }
}

function toTaskError(error: TaskError | HarmovelaError): JsonObject {
  const { code, message, details, retryable } =
    error instanceof HarmovelaError ? error.toErrorPayload() : error;
  return {
    code,
    message,
    retryable: retryable ?? false,
    ...(details === undefined ? {} : { details }),
  };
}
