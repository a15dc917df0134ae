/** Stopping work so that it can go on later (spec 5.7): asked for, resumed, given up, and looked into. */
import { newEventId } from "@harmovela/envelope";
import { HarmovelaError, type JsonObject, type JsonValue } from "@harmovela/failure";
import type { Checkpoint } from "./checkpoint-store.ts";
import type { Draft } from "./draft.ts";
import {
  type InterruptOptions,
  type ResumeOptions,
  toCancelledInterruption,
  toInterruption,
  toResumption,
} from "./interruption-draft.ts";
import { InterruptionHandle } from "./interruption-handle.ts";
import type { Reading } from "./reads.ts";
import { isObject } from "./rejected-error.ts";
import type { TaskWatch } from "./task-watch.ts";
import type { Verdict } from "./verdict.ts";

/** What interruptions need of their agent. */
export interface InterruptionAgent {
  /** Of the events of interruptions. */
  readonly watch: TaskWatch;
  publish(draft: Draft): Promise<Verdict>;
  read(verb: string, params: JsonObject): Promise<Reading>;
}

/** One interruption of a task, as the service tells of it; instants are RFC 3339. */
export interface InterruptionView {
  /** Of the request that began it. */
  id: string;
  policy: string;
  /** `requested`, `acknowledged`, `saved`; of one that is over `resumed` or `cancelled`. */
  state: string;
  checkpoint_id?: string;
  /** Its grace passed without a checkpoint. */
  expired?: boolean;
  [field: string]: JsonValue | undefined;
}

export class Interruptions {
  readonly #agent: InterruptionAgent;

  /** @internal Use `agent.interruptions`. */
  constructor(agent: InterruptionAgent) {
    this.#agent = agent;
  }

  /**
   * Asks for a task to be stopped so that it can go on later. Resolves when the request is in the log; the
   * handle says when the task is stopped. Throws `RejectedError`: the task is unknown, has ended, or is
   * interrupted already and not by something weaker.
   */
  async request(taskId: string, options: InterruptOptions = {}): Promise<InterruptionHandle> {
    const id = newEventId();
    const handle = new InterruptionHandle(this.#agent.watch, { taskId, id });
    await handle.follow();
    try {
      handle.accepted(await this.#agent.publish({ id, ...toInterruption(taskId, options) }));
    } catch (error) {
      handle.unfollow();
      throw error;
    }
    return handle;
  }

  /**
   * Lets a stopped task go on from a checkpoint, by default from the one that was saved last. Some process
   * of its owner takes it up. Throws `checkpoint_missing` when there is none, `RejectedError` when it may
   * not be resumed; `details.winner` names who was first.
   */
  async resume(
    taskId: string,
    checkpointId?: string,
    options: ResumeOptions = {},
  ): Promise<Verdict> {
    const from = checkpointId ?? (await this.#newest(taskId));
    return this.#agent.publish(toResumption(taskId, from, options));
  }

  /** Ends a stopped task, and what is below it, instead of letting it go on. Its checkpoints stay. */
  cancel(
    taskId: string,
    { reason = "not to go on", checkpointId }: { reason?: string; checkpointId?: string } = {},
  ): Promise<Verdict> {
    return this.#agent.publish(toCancelledInterruption(taskId, reason, checkpointId));
  }

  /** What was saved of a task, oldest first. */
  async checkpoints(taskId: string): Promise<Checkpoint[]> {
    const { result } = await this.#agent.read("checkpoints", { task_id: taskId });
    const { checkpoints } = isObject(result) ? result : {};
    const views: unknown[] = Array.isArray(checkpoints) ? checkpoints : [];
    return views.filter(isObject).map(toCheckpoint);
  }

  /** One of them. Throws `RejectedError` when there is none of that id. */
  async checkpoint(taskId: string, checkpointId: string): Promise<Checkpoint> {
    const params = { task_id: taskId, checkpoint_id: checkpointId };
    const { result } = await this.#agent.read("checkpoint", params);
    return toCheckpoint(isObject(result) ? result : {});
  }

  /** The interruption that is open; undefined when there is none. */
  async get(taskId: string): Promise<InterruptionView | undefined> {
    const { result } = await this.#agent.read("interruption", { task_id: taskId });
    const open = isObject(result) ? result.open : undefined;
    return isObject(open) ? (open as InterruptionView) : undefined;
  }

  /** @internal The newest interruption of the task, over or not. */
  async last(taskId: string): Promise<InterruptionView | undefined> {
    const { result } = await this.#agent.read("interruption", { task_id: taskId });
    const { open, past } = isObject(result) ? result : {};
    const last = isObject(open) ? open : Array.isArray(past) ? past.at(-1) : undefined;
    return isObject(last) ? (last as InterruptionView) : undefined;
  }

  async #newest(taskId: string): Promise<string> {
    const open = await this.get(taskId);
    const id = open?.checkpoint_id ?? (await this.checkpoints(taskId)).at(-1)?.checkpointId;
    if (id !== undefined) return id;
    throw new HarmovelaError("checkpoint_missing", "nothing was saved that it could go on from", {
      details: { task_id: taskId },
    });
  }
}

function toCheckpoint(view: Record<string, unknown>): Checkpoint {
  const { checkpoint_id, task_id, at, bytes, location, digest } = view;
  return {
    checkpointId: String(checkpoint_id),
    taskId: String(task_id),
    at: String(at),
    ...(typeof bytes === "number" ? { bytes } : {}),
    ...(typeof location === "string" ? { location } : {}),
    ...(typeof digest === "string" ? { digest } : {}),
  };
}
