/** What a worker knows of tasks that are stopped, or that are to go on and wait for room. */
import type { Envelope } from "@harmovela/envelope";
import { isObject, RejectedError } from "./rejected-error.ts";
import { isForSession } from "./resumption.ts";
import type { WorkAgent } from "./work-agent.ts";

/** Open requests that are remembered for tasks which this process does not have yet; the oldest give way. */
const OPEN_MAX = 1_024;

export class PausedWork {
  readonly #agent: WorkAgent;
  readonly #session: () => string | undefined;
  /** The newest request for each task, until it is over. */
  readonly #open = new Map<string, Envelope>();
  readonly #waiting = new Map<string, Envelope>();

  constructor(agent: WorkAgent, session: () => string | undefined) {
    this.#agent = agent;
    this.#session = session;
  }

  /** What lets them go on, by task, oldest first. */
  get waiting(): ReadonlyMap<string, Envelope> {
    return this.#waiting;
  }

  /** A request that came before the work did, or while it was being accepted. */
  openOf(taskId: string): Envelope | undefined {
    return this.#open.get(taskId);
  }

  onEvent(taskId: string, envelope: Envelope): void {
    const { type } = envelope;
    if (type === "interruption.requested") {
      this.#open.delete(taskId);
      this.#open.set(taskId, envelope);
      // It is to be stopped before it went on.
      this.#waiting.delete(taskId);
      const [oldest] = this.#open.keys();
      if (this.#open.size > OPEN_MAX && oldest !== undefined) this.#open.delete(oldest);
    } else if (type === "interruption.resumed" || type === "interruption.cancelled") {
      this.forget(taskId);
    }
  }

  /** Whether it may be for this process. */
  note(resumed: Envelope): boolean {
    const { task_id: taskId } = resumed;
    const session = this.#session();
    if (taskId === undefined || session === undefined) return false;
    if (!isForSession(resumed, this.#agent.name, session)) return false;
    this.#waiting.set(taskId, resumed);
    return true;
  }

  take(taskId: string): void {
    this.#waiting.delete(taskId);
  }

  forget(taskId: string): void {
    this.#open.delete(taskId);
    this.#waiting.delete(taskId);
  }

  /** The request that is open, as the service tells of it. */
  async requestOf(taskId: string): Promise<Envelope | undefined> {
    const open = await ifKnown(this.#agent.interruptions.get(taskId));
    return open && toRequest(taskId, open);
  }

  /** Tasks of this agent that were let go on and that no process of it has worked on since. */
  async *listResumed(): AsyncGenerator<Envelope, undefined> {
    for (let after: string | undefined; ; ) {
      const { result } = await this.#agent.read("list", {
        agent: this.#agent.name,
        state: "live",
        ...(after === undefined ? {} : { after }),
      });
      if (!isObject(result)) return undefined;
      for (const task of Array.isArray(result.tasks) ? result.tasks : []) {
        if (!isObject(task) || task.is_free !== true) continue;
        const resumed = await this.#resumedOf(String(task.task_id));
        if (resumed) yield resumed;
      }
      if (typeof result.after !== "string") return undefined;
      after = result.after;
    }
  }

  async #resumedOf(taskId: string): Promise<Envelope | undefined> {
    const last = await ifKnown(this.#agent.interruptions.last(taskId));
    const closed = last?.closed;
    if (!isObject(closed) || closed.type !== "interruption.resumed") return undefined;
    return {
      spec_version: "0.2",
      id: String(closed.event_id),
      type: "interruption.resumed",
      source: String(closed.by),
      created_at: String(closed.at),
      task_id: taskId,
      checkpoint_id: String(closed.checkpoint_id ?? last?.checkpoint_id),
      payload: { task_id: taskId },
    };
  }
}

/** The manager may not know of a task yet: then nothing has interrupted it. */
async function ifKnown<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof RejectedError && error.code === "task_error") return undefined;
    throw error;
  }
}

function toRequest(
  taskId: string,
  { id, policy, requested_by: by, at, reason, grace_period_ms: graceMs, expired }: RequestView,
): Envelope {
  return {
    spec_version: "0.2",
    id,
    type: "interruption.requested",
    source: String(by),
    created_at: String(at),
    task_id: taskId,
    interruption_policy: policy as NonNullable<Envelope["interruption_policy"]>,
    payload: {
      task_id: taskId,
      ...(typeof reason === "string" ? { reason } : {}),
      ...(typeof graceMs === "number" ? { grace_period_ms: graceMs } : {}),
      ...(expired === true ? { expired } : {}),
    },
  };
}

type RequestView = {
  id: string;
  policy: string;
  requested_by?: unknown;
  at?: unknown;
  reason?: unknown;
  grace_period_ms?: unknown;
  expired?: unknown;
};
