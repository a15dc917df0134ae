/**
 * Work that this agent has given to another (spec 5.6).
 *
 * G1 What counts is what the log says: the first end of the task, or the refusal of the offer. An
 *    answer that comes later or again is refused by the service and never becomes a second result.
 * G2 Work whose worker was lost is given out again as often as was asked for, as a new task: the one
 *    before has ended by then, so that there is one result still.
 */
import type { Envelope } from "@harmovela/envelope";
import { HarmovelaError, type JsonValue, toHarmovelaError } from "@harmovela/failure";
import { type DelegateOptions, type Parties, toDelegationEvent } from "./delegation-request.ts";
import { EventFeed } from "./event-feed.ts";
import { Follower } from "./follower.ts";
import type { Observed } from "./lane.ts";
import { toRefusal, toResult } from "./outcome.ts";
import { Promised } from "./promised.ts";
import { isObject } from "./rejected-error.ts";
import { type Settled, toSettled } from "./settled.ts";
import { type CancelOptions, TaskHandle } from "./task-handle.ts";
import type { Verdict } from "./verdict.ts";
import type { WorkAgent } from "./work-agent.ts";

export interface Acceptance {
  /** The agent that accepted. */
  by: string;
  /** Its session: which of the processes of that name. */
  sessionId: string | undefined;
  /** The event; undefined when it was accepted before this handle was there. */
  eventId: string | undefined;
}

/** What became of the handoff: without one the delegation stays accepted, and the task its delegator's. */
export type Handoff =
  | { completed: true; cursor: string }
  | { completed: false; why: HarmovelaError };

export class DelegationHandle {
  readonly #agent: WorkAgent;
  readonly #options: DelegateOptions;
  #parties: Parties;
  readonly #follower: Follower;
  readonly #feed = new EventFeed();
  readonly #accepted = new Promised<Acceptance>();
  readonly #handoff = new Promised<Handoff>();
  readonly #result = new Promised<JsonValue>();
  readonly #again: (() => Promise<DelegationHandle>) | undefined;
  /** The same work, given out again (G2). */
  #going: Promise<DelegationHandle> | undefined;
  #next: DelegationHandle | undefined;
  #isCancelled = false;
  /** Between the parties in force. */
  #isHandingOff = false;

  /** @internal Handles come from `delegate`. */
  constructor(
    agent: WorkAgent,
    parties: Parties,
    options: DelegateOptions,
    again?: () => Promise<DelegationHandle>,
  ) {
    this.#agent = agent;
    this.#parties = parties;
    this.#options = options;
    this.#again = again;
    this.#follower = new Follower(
      agent,
      parties.taskId,
      (entry) => this.#onEntry(entry),
      (error) => this.#conclude(error),
    );
  }

  /** Where the work was given out again, that of the last task. */
  get taskId(): string {
    return this.#next?.taskId ?? this.#parties.taskId;
  }

  get parentTaskId(): string | undefined {
    return this.#parties.parentId;
  }

  /**
   * Resolves when somebody has taken the offer. Rejects when it was refused: `task_error` with `reason`
   * in its details and, where the refusal says when to ask again, `retry`; `task_timeout` when nobody
   * took it before its deadline; and with how the task ended, when it ended before.
   */
  get accepted(): Promise<Acceptance> {
    return this.#accepted.promise;
  }

  /** What became of the handoff. Never rejects. */
  get handoff(): Promise<Handoff> {
    return this.#handoff.promise;
  }

  /** All that is logged about the work, from the request on, until it has ended or was refused. */
  events(): AsyncGenerator<Observed, undefined> {
    return this.#feed.read();
  }

  /**
   * What the task was completed with, null for nothing. Rejects with the code of its failure,
   * `task_cancelled`, `task_timeout`, and like `accepted` when the offer was refused (G1). With
   * `session_timeout` when its worker was lost and it is not to be given out again, and with what
   * kept it from that (G2).
   */
  result(): Promise<JsonValue> {
    return this.#result.promise;
  }

  /** Resolves when nothing more comes, whatever came. */
  async ended(): Promise<void> {
    await this.#result.promise.catch(() => undefined);
  }

  /** Asks for the end of the work and of all below it; `now` ends it without asking. */
  async cancel(options: CancelOptions = {}): Promise<Verdict> {
    this.#isCancelled = true;
    return this.#going ? (await this.#going).cancel(options) : this.#follower.cancel(options);
  }

  /**
   * Hands the task over: from then on it is the delegate's alone. Done by itself after the acceptance
   * unless `handoff: false` was asked for.
   */
  async completeHandoff(): Promise<Handoff> {
    if (this.#going) return (await this.#going).completeHandoff();
    const handoff = await this.#handOff();
    this.#handoff.resolve(handoff);
    return handoff;
  }

  /** @internal Sees what is logged from here on. */
  follow(): Promise<void> {
    return this.#follower.follow();
  }

  /** @internal The offer was not made. */
  unfollow(): void {
    this.#follower.unfollow();
  }

  /** @internal A delegation that was there before this handle: it may have gone on since. */
  async catchUp(): Promise<void> {
    // Another handle, for one that follows already does not look back.
    new TaskHandle(this.#agent, this.#parties.taskId).settled().then(
      (settled) => this.#onSettled(settled),
      () => undefined,
    );
    const { result } = await this.#agent.read("delegation", { task_id: this.#parties.taskId });
    if (!isObject(result) || this.#result.isSettled || this.#going) return;
    const { state, delegated_to: to, parent_task_id: parent } = result;
    if (typeof to === "string") this.#parties = { ...this.#parties, to };
    if (typeof parent === "string") this.#parties = { ...this.#parties, parentId: parent };
    const isTaken = state === "accepted" || state === "handed_off";
    if (isTaken && !this.#accepted.isSettled)
      this.#accept({ by: this.#parties.to, sessionId: undefined, eventId: undefined });
    if (state === "rejected")
      this.#conclude(
        new HarmovelaError("task_error", "the delegation was rejected", {
          details: { task_id: this.taskId, by: this.#parties.to, reason: result.reason ?? null },
        }),
      );
  }

  #onEntry(entry: Observed): void {
    const { envelope } = entry;
    this.#feed.push(entry);
    switch (envelope.type) {
      case "delegation.accepted":
        this.#onAccepted(envelope);
        return;
      case "delegation.rejected":
        this.#conclude(toRefusal(this.#parties.taskId, entry));
        return;
      case "delegation.escalated":
        this.#onEscalated(envelope);
        return;
      default: {
        const settled = toSettled(this.#parties.taskId, entry);
        if (settled) this.#onSettled(settled);
      }
    }
  }

  #onAccepted({ id, source, session_id }: Envelope): void {
    this.#parties = { ...this.#parties, to: source };
    this.#accept({ by: source, sessionId: session_id, eventId: id });
  }

  #accept(acceptance: Acceptance): void {
    this.#accepted.resolve(acceptance);
    const isMine = this.#parties.by === this.#agent.name;
    if (this.#options.handoff === false || !isMine || this.#isHandingOff) return;
    this.#isHandingOff = true;
    this.#handOff().then(
      (handoff) => this.#handoff.resolve(handoff),
      () => undefined,
    );
  }

  /** It goes on with somebody else, whose acceptance is the next; a token is for these parties alone. */
  #onEscalated({ source, delegated_by: by = source, delegated_to: to, target }: Envelope): void {
    this.#parties = { ...this.#parties, by, to: to ?? target ?? "" };
    this.#isHandingOff = false;
  }

  async #handOff(): Promise<Handoff> {
    const parties = this.#parties;
    try {
      const token = await this.#agent.desk.token(this.#parties.taskId, this.#options.tokenTtlMs);
      if (token === undefined) return notHandedOff("the service has no keys to issue a token with");
      const { cursor } = await this.#agent.publish(
        toDelegationEvent("delegation.handoff.completed", parties, {
          target: parties.to,
          handoff_token: token,
        }),
      );
      return { completed: true, cursor };
    } catch (error) {
      return { completed: false, why: toHarmovelaError(error) };
    }
  }

  #onSettled(settled: Settled): void {
    if (this.#result.isSettled || this.#going) return;
    try {
      this.#result.resolve(toResult(settled));
    } catch (error) {
      if (this.#again && isLoss(error) && !this.#isCancelled) {
        this.#going = this.#again();
        this.#goOn(this.#going).catch((kept: unknown) => this.#conclude(toHarmovelaError(kept)));
        return;
      }
      this.#result.reject(error);
    }
    // Whoever ended it without having accepted it has not accepted it.
    this.#close(
      new HarmovelaError("task_error", `the task was ${settled.state} before it was accepted`, {
        details: { task_id: this.taskId, state: settled.state, by: settled.by },
      }),
    );
  }

  /** G2. What is logged of the new task is told as of the old one, and its end is the end. */
  async #goOn(going: Promise<DelegationHandle>): Promise<void> {
    this.#follower.unfollow();
    const next = await going;
    this.#next = next;
    next.accepted.then(
      (acceptance) => this.#accepted.resolve(acceptance),
      () => undefined,
    );
    next.handoff.then(
      (handoff) => this.#handoff.resolve(handoff),
      () => undefined,
    );
    for await (const entry of next.events()) this.#feed.push(entry);
    this.#feed.end();
    this.#result.resolve(await next.result());
  }

  /** Without a result. */
  #conclude(error: HarmovelaError): void {
    this.#result.reject(error);
    this.#close(error);
  }

  #close(error: HarmovelaError): void {
    if (!this.#accepted.isSettled) {
      this.#accepted.reject(error);
      this.#handoff.resolve({ completed: false, why: error });
    }
    this.#follower.unfollow();
    this.#feed.end();
  }
}

function isLoss(error: unknown): boolean {
  return error instanceof HarmovelaError && error.code === "session_timeout";
}

function notHandedOff(message: string): Handoff {
  return { completed: false, why: new HarmovelaError("missing_capability", message) };
}
