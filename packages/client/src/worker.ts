/**
 * An agent that works for others: it takes what is delegated to it, as much as it can at a time.
 *
 * W1 Several processes may work under one name. Whose acceptance is accepted has the job; the others
 *    are told and leave it. Each speaks in a session of its own.
 * W2 What cannot be taken in time is refused, so that the delegator knows, with a time to ask again.
 */
import { HarmovelaError, type JsonObject, toHarmovelaError } from "@harmovela/failure";
import { AgentSession, type SessionOptions } from "./agent-session.ts";
import { Answers } from "./answers.ts";
import { DelegatedTask } from "./delegated-task.ts";
import { taskOf } from "./filter.ts";
import { type JobFunction, runJob } from "./job.ts";
import type { Observed } from "./lane.ts";
import { findOffer, isPending, listWaiting, type Offer, toOffer } from "./offer.ts";
import { Promised } from "./promised.ts";
import { toSettled } from "./settled.ts";
import { inSession, type WorkAgent } from "./work-agent.ts";

export interface WorkerOptions extends SessionOptions {
  /** Jobs at a time. */
  concurrency: number;
  /**
   * How long an offer may wait for a job to end before it is refused, milliseconds; another process of
   * this name may take it meanwhile. Default 2,000; 0 refuses at once.
   */
  patienceMs?: number;
  /** What a refusal says about when to ask again, milliseconds from then. Default 5,000. */
  retryAfterMs?: number;
  /** How long an accepted job waits for the handoff that was promised, milliseconds. Default 5,000. */
  handoffWaitMs?: number;
  /** How long `close` waits for jobs under way before it aborts them, milliseconds. Default 30,000. */
  drainMs?: number;
  /** What tells it to close: on its SIGTERM, as `process` does. */
  drainOn?: SignalSource;
  /** Told what went wrong outside of jobs, and of jobs that do not heed their signal. Default: nobody. */
  onError?: (error: HarmovelaError) => void;
}

export interface SignalSource {
  on(signal: "SIGTERM", listener: () => void): unknown;
  off(signal: "SIGTERM", listener: () => void): unknown;
}

interface Running {
  task: DelegatedTask;
  done: Promise<void>;
}

const PATIENCE_MS = 2_000;
const RETRY_AFTER_MS = 5_000;
const HANDOFF_WAIT_MS = 5_000;
const DRAIN_MS = 30_000;
/** For jobs that were aborted to say what became of them. */
const ABORTED_MS = 2_000;
const AGAIN_MS = 1_000;

export class Worker {
  readonly #base: WorkAgent;
  readonly #agent: WorkAgent;
  readonly #options: WorkerOptions;
  readonly #work: JobFunction;
  readonly #answers: Answers;
  readonly #closed = new Promised<void>();
  /** Not taken yet, oldest first. */
  readonly #offers = new Map<string, { offer: Offer; cancel: () => void }>();
  readonly #running = new Map<string, Running>();
  #session: AgentSession | undefined;
  #inSession = new Promised<void>();
  #stopListening: () => void = () => {};
  #closing: Promise<void> | undefined;
  readonly #onSignal = (): void => {
    this.close().catch((error: unknown) => this.#report(error));
  };

  /** @internal Use `worker` of an agent. */
  constructor(agent: WorkAgent, options: WorkerOptions, work: JobFunction) {
    const { concurrency } = options;
    if (!Number.isInteger(concurrency) || concurrency < 1)
      throw new HarmovelaError("invalid_argument", "concurrency must be a whole number from 1 on");
    this.#base = agent;
    this.#agent = inSession(agent, () => this.sessionId);
    this.#options = options;
    this.#work = work;
    this.#answers = new Answers(this.#agent, () => this.#closing !== undefined);
  }

  /** Undefined while there is none. */
  get sessionId(): string | undefined {
    return this.#session?.id;
  }

  /** What was agreed for the session. */
  get capabilities(): JsonObject {
    return this.#session?.capabilities ?? {};
  }

  /** Jobs under way, those that are being accepted included. */
  get running(): number {
    return this.#running.size;
  }

  /** Resolves when it has been closed, by whomever. */
  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  /** @internal Resolves when it takes offers. */
  async open(): Promise<void> {
    await this.#openSession();
    await this.#listen();
    this.#options.drainOn?.on("SIGTERM", this.#onSignal);
  }

  /**
   * Takes nothing more, lets jobs end, aborts those that have not after `drainMs`, closes its session.
   * Offers that were not taken stay for others, or for the next time.
   */
  close(options: { drainMs?: number } = {}): Promise<void> {
    this.#closing ??= this.#close(options.drainMs ?? this.#options.drainMs ?? DRAIN_MS);
    return this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(drainMs: number): Promise<void> {
    this.#options.drainOn?.off("SIGTERM", this.#onSignal);
    this.#stopListening();
    for (const taskId of [...this.#offers.keys()]) this.#drop(taskId);
    await this.#jobsWithin(drainMs);
    const stopped = new HarmovelaError("internal_error", "the worker was stopped", {
      category: "dependency",
    });
    for (const { task } of this.#running.values()) task.abort(stopped);
    await this.#jobsWithin(ABORTED_MS);
    await this.#session?.close("drained");
    this.#inSession.reject(new HarmovelaError("closed", "the worker is closed"));
    this.#closed.resolve();
  }

  async #jobsWithin(ms: number): Promise<void> {
    if (this.#running.size === 0) return;
    let cancel: () => void = () => {};
    const late = new Promise<void>((resolve) => {
      cancel = this.#agent.clock.after(ms, resolve);
    });
    await Promise.race([Promise.all([...this.#running.values()].map(({ done }) => done)), late]);
    cancel();
  }

  async #openSession(): Promise<void> {
    const session = new AgentSession(this.#base, (error) => this.#onSessionLost(error));
    await session.open(this.#options);
    this.#session = session;
    this.#inSession.resolve();
    this.#fill();
  }

  /** What was accepted in a session that is over is not this process's any more. */
  #onSessionLost(error: HarmovelaError): void {
    if (this.#closing) return;
    this.#report(error);
    this.#session = undefined;
    this.#inSession = new Promised();
    for (const { task } of this.#running.values()) task.abort(error);
    this.#again(async () => {
      await this.#openSession();
      await this.#lookUpWaiting();
    });
  }

  /** Until it succeeds or the worker is closed. */
  #again(attempt: () => Promise<void>): void {
    if (this.#closing) return;
    attempt().catch((error: unknown) => {
      this.#report(error);
      this.#agent.clock.after(AGAIN_MS, () => this.#again(attempt));
    });
  }

  async #listen(): Promise<void> {
    this.#stopListening();
    await this.#agent.watch.ready();
    this.#stopListening = this.#agent.watch.listenToAll({
      onEntry: (entry) => this.#onEntry(entry),
      onLost: (error) => {
        if (this.#closing || error.code === "closed") return;
        this.#report(error);
        this.#again(() => this.#listen());
      },
    });
    await this.#lookUpWaiting();
  }

  /** Offers that were made while nobody listened. */
  async #lookUpWaiting(): Promise<void> {
    for await (const taskId of listWaiting(this.#agent)) {
      if (this.#closing) return;
      await this.#lookUp(taskId);
    }
  }

  async #lookUp(taskId: string): Promise<void> {
    if (this.#offers.has(taskId) || this.#running.has(taskId)) return;
    const offer = await findOffer(this.#agent, taskId);
    if (offer && !this.#offers.has(taskId)) this.#note(offer);
  }

  #onEntry(entry: Observed): void {
    const { envelope } = entry;
    const taskId = taskOf(envelope);
    if (taskId === undefined) return;
    const isForMe = (envelope.delegated_to ?? envelope.target) === this.#agent.name;
    switch (envelope.type) {
      case "delegation.requested":
        if (isForMe) this.#note(toOffer(entry, taskId));
        return;
      case "delegation.escalated":
        this.#drop(taskId);
        if (isForMe) this.#lookUp(taskId).catch((error: unknown) => this.#report(error));
        return;
      case "delegation.accepted":
      case "delegation.rejected":
        this.#drop(taskId);
        return;
      default:
        if (toSettled(taskId, entry)) this.#drop(taskId);
    }
  }

  #note(offer: Offer): void {
    if (this.#closing) return;
    const { taskId } = offer;
    this.#drop(taskId);
    const cancel = this.#agent.clock.after(this.#options.patienceMs ?? PATIENCE_MS, () =>
      this.#refuse(offer).catch((error: unknown) => this.#report(error)),
    );
    this.#offers.set(taskId, { offer, cancel });
    this.#fill();
  }

  #drop(taskId: string): void {
    this.#offers.get(taskId)?.cancel();
    this.#offers.delete(taskId);
  }

  #fill(): void {
    for (const [taskId, { offer }] of this.#offers) {
      if (this.#closing || !this.#session || this.#running.size >= this.#options.concurrency)
        return;
      // One that was given back and offered again while the job is not over yet.
      if (this.#running.has(taskId)) continue;
      this.#drop(taskId);
      this.#start(offer);
    }
  }

  #start(offer: Offer): void {
    const { taskId, request } = offer;
    const task = new DelegatedTask(this.#agent, this.#agent.name, taskId, request);
    const done = this.#take(offer, task)
      .catch((error: unknown) => this.#report(error))
      .finally(() => {
        task.unfollow();
        this.#running.delete(taskId);
        this.#fill();
      });
    this.#running.set(taskId, { task, done });
  }

  async #take(offer: Offer, task: DelegatedTask): Promise<void> {
    await task.follow();
    if (!(await this.#answers.accept(offer))) return;
    const environment = {
      agent: this.#agent,
      sessionId: () => this.sessionId,
      whenInSession: () => this.#inSession.promise,
      handoffWaitMs: this.#options.handoffWaitMs ?? HANDOFF_WAIT_MS,
      giveBack: () => this.#answers.reject(offer, "the worker was stopped"),
      report: (error: HarmovelaError) => this.#report(error),
    };
    await runJob(environment, offer, task, this.#work);
  }

  /** W2. Of what somebody has taken meanwhile a refusal would take it away again. */
  async #refuse(offer: Offer): Promise<void> {
    const { taskId } = offer;
    const isWaiting = (): boolean =>
      !this.#closing && this.#session !== undefined && this.#offers.get(taskId)?.offer === offer;
    if (!isWaiting() || !(await isPending(this.#agent, taskId)) || !isWaiting()) return;
    this.#drop(taskId);
    await this.#answers.reject(offer, "at capacity", this.#options.retryAfterMs ?? RETRY_AFTER_MS);
  }

  #report(error: unknown): void {
    this.#options.onError?.(toHarmovelaError(error));
  }
}
