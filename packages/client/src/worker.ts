/**
 * An agent that works for others: it takes what is delegated to it, as much as it can at a time.
 *
 * W1 Several processes may work under one name. Whose acceptance is accepted has the job; the others
 *    are told and leave it. Each speaks in a session of its own.
 * W2 What cannot be taken in time is refused, so that the delegator knows, with a time to ask again.
 * W3 Work that was stopped goes on where there is room for it, before new work is taken; it is never refused.
 */

import type { Envelope } from "@harmovela/envelope";
import { HarmovelaError, type JsonObject, toHarmovelaError } from "@harmovela/failure";
import { AgentSession } from "./agent-session.ts";
import { Answers } from "./answers.ts";
import { isOfEndedSession, takeCare } from "./caretaking.ts";
import type { Checkpoint } from "./checkpoint-store.ts";
import { DelegatedTask } from "./delegated-task.ts";
import { taskOf } from "./filter.ts";
import type { ResumeOptions } from "./interruption-draft.ts";
import { runJob } from "./job.ts";
import type { JobFunction } from "./job-context.ts";
import { JobInterruptions } from "./job-interruptions.ts";
import type { Observed } from "./lane.ts";
import { listWaiting, type Offer, toOffer } from "./offer.ts";
import { PausedWork } from "./paused-work.ts";
import { Promised } from "./promised.ts";
import { toResumedFrom } from "./resumed-from.ts";
import { findResumption, isTaken } from "./resumption.ts";
import { toSettled } from "./settled.ts";
import { tell } from "./tell.ts";
import type { Verdict } from "./verdict.ts";
import { WaitingOffers } from "./waiting-offers.ts";
import { inSession, type WorkAgent } from "./work-agent.ts";
import type { WorkerOptions } from "./worker-options.ts";

interface Running {
  /** Known as soon as it is known what the work is. */
  task: DelegatedTask | undefined;
  /** Of a job that is this process's. */
  interruptions: JobInterruptions | undefined;
  done: Promise<void>;
}

/** What is to be done, and from where. */
interface Work {
  offer: Offer;
  task: DelegatedTask;
  checkpoint?: Checkpoint;
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
  readonly #offers: WaitingOffers;
  readonly #running = new Map<string, Running>();
  readonly #paused: PausedWork;
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
    if (typeof work !== "function")
      throw new HarmovelaError("invalid_argument", "the work of a worker is a function");
    this.#base = agent;
    this.#agent = inSession(agent, () => this.sessionId);
    this.#options = options;
    this.#work = work;
    this.#answers = new Answers(this.#agent, () => this.#closing !== undefined);
    this.#paused = new PausedWork(this.#agent, () => this.sessionId);
    this.#offers = new WaitingOffers({
      agent: this.#agent,
      patienceMs: options.patienceMs ?? PATIENCE_MS,
      isOpen: () => !this.#closing && this.#session !== undefined,
      onNews: () => this.#fill(),
      refuse: (offer) =>
        this.#answers.reject(offer, "at capacity", options.retryAfterMs ?? RETRY_AFTER_MS),
      report: (error) => this.#report(error),
    });
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

  /**
   * Lets a stopped task of this agent go on in this process, as soon as it has room: see `resume` of an
   * agent's interruptions.
   */
  async resume(
    taskId: string,
    checkpointId?: string,
    options: ResumeOptions = {},
  ): Promise<Verdict> {
    await this.#inSession.promise;
    const { sessionId } = this;
    const inSession = sessionId === undefined ? {} : { session_id: sessionId };
    const envelope = { ...options.envelope, ...inSession };
    return this.#agent.interruptions.resume(taskId, checkpointId, { ...options, envelope });
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

  /** @internal Closed with its agent, which waits for so long where its own options say nothing. */
  closeWithin(drainMs: number): Promise<void> {
    return this.close({ drainMs: this.#options.drainMs ?? drainMs });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(drainMs: number): Promise<void> {
    this.#options.drainOn?.off("SIGTERM", this.#onSignal);
    this.#stopListening();
    this.#offers.clear();
    await this.#jobsWithin(drainMs);
    const stopped = new HarmovelaError("internal_error", "the worker was stopped", {
      category: "dependency",
    });
    for (const { task } of this.#running.values()) task?.abort(stopped);
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
    // Lost again at once: another one is on its way.
    if (session.isOver) return;
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
    for (const { task } of this.#running.values()) task?.abort(error);
    this.#again(async () => {
      await this.#openSession();
      await this.#lookUpWaiting();
      await this.#lookUpPaused();
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
    const { watch, interruptionWatch } = this.#agent;
    await Promise.all([watch.ready(), interruptionWatch.ready()]);
    const onLost = (error: HarmovelaError): void => {
      if (this.#closing || error.code === "closed") return;
      this.#report(error);
      this.#again(() => this.#listen());
    };
    const ends = [
      interruptionWatch.listenToAll({ onEntry: (entry) => this.#onInterruption(entry), onLost }),
      watch.listenToAll({ onEntry: (entry) => this.#onEntry(entry), onLost }),
    ];
    this.#stopListening = () => {
      for (const end of ends) end();
    };
    await this.#lookUpWaiting();
    await this.#lookUpPaused();
  }

  /** Offers that were made while nobody listened. */
  async #lookUpWaiting(): Promise<void> {
    for await (const taskId of listWaiting(this.#agent)) {
      if (this.#closing) return;
      await this.#lookUp(taskId);
    }
  }

  /** What happened to interrupted work while nobody listened; without a manager that is nothing. */
  async #lookUpPaused(): Promise<void> {
    const jobs = [...this.#running].filter(([, { interruptions }]) => interruptions !== undefined);
    try {
      for (const [taskId, { interruptions }] of jobs) {
        const request = await this.#paused.requestOf(taskId);
        if (request) interruptions?.onEvent(request);
      }
      for await (const resumed of this.#paused.listResumed()) this.#onResumed(resumed);
    } catch (error) {
      if (toHarmovelaError(error).code !== "no_service") throw error;
    }
  }

  async #lookUp(taskId: string): Promise<void> {
    if (!this.#running.has(taskId)) await this.#offers.lookUp(taskId);
  }

  #onEntry(entry: Observed): void {
    const { envelope } = entry;
    const taskId = taskOf(envelope);
    if (taskId === undefined) return;
    const isForMe = (envelope.delegated_to ?? envelope.target) === this.#agent.name;
    switch (envelope.type) {
      case "delegation.requested":
        if (isForMe && !this.#closing) this.#offers.note(toOffer(entry, taskId));
        return;
      case "delegation.escalated":
        this.#offers.drop(taskId);
        if (isForMe) this.#lookUp(taskId).catch((error: unknown) => this.#report(error));
        return;
      case "delegation.accepted":
      case "delegation.rejected":
        this.#offers.drop(taskId);
        return;
      default:
        if (!toSettled(taskId, entry)) return;
        this.#offers.drop(taskId);
        this.#paused.forget(taskId);
    }
  }

  #onInterruption({ envelope, cursor }: Observed): void {
    const taskId = taskOf(envelope);
    if (taskId === undefined) return;
    this.#agent.note(cursor);
    this.#paused.onEvent(taskId, envelope);
    const running = this.#running.get(taskId);
    running?.interruptions?.onEvent(envelope);
    if (envelope.type === "interruption.resumed") this.#onResumed(envelope);
    const isForMe = envelope.target === this.#agent.name;
    if (running || this.#closing || !isForMe || !isOfEndedSession(envelope)) return;
    takeCare(this.#agent, envelope).catch((error: unknown) => this.#report(error));
  }

  #onResumed(resumed: Envelope): void {
    if (this.#closing || !this.#paused.note(resumed)) return;
    this.#fill();
  }

  get #hasRoom(): boolean {
    const isOpen = !this.#closing && this.#session !== undefined;
    return isOpen && this.#running.size < this.#options.concurrency;
  }

  /** What has been begun goes first. */
  #fill(): void {
    for (const [taskId, resumed] of this.#paused.waiting) {
      if (!this.#hasRoom) return;
      // Its job here is still being stopped.
      if (this.#running.has(taskId)) continue;
      this.#paused.take(taskId);
      this.#begin(taskId, (running) => this.#goOn(taskId, resumed, running));
    }
    for (const [taskId, offer] of this.#offers.waiting) {
      if (!this.#hasRoom) return;
      // One that was given back and offered again while the job is not over yet.
      if (this.#running.has(taskId)) continue;
      this.#offers.drop(taskId);
      this.#begin(taskId, (running) => this.#take(offer, running));
    }
  }

  /** One slot for it, until the work on it here is over. */
  #begin(taskId: string, work: (running: Running) => Promise<void>): void {
    const running: Running = {
      task: undefined,
      interruptions: undefined,
      done: Promise.resolve(),
    };
    this.#running.set(taskId, running);
    running.done = work(running)
      .catch((error: unknown) => this.#report(error))
      .finally(() => {
        running.task?.unfollow();
        this.#running.delete(taskId);
        this.#fill();
      });
  }

  async #take(offer: Offer, running: Running): Promise<void> {
    const task = await this.#follow(offer, running);
    if (!(await this.#answers.accept(offer))) return;
    await this.#run({ offer, task }, running);
  }

  /** Until it is known whether this process goes on with it. */
  async #goOn(taskId: string, resumed: Envelope, running: Running): Promise<void> {
    const found = await this.#untilKnown(() => findResumption(this.#agent, resumed));
    if (found === undefined) return;
    const task = await this.#follow(found.offer, running);
    const isMine = await this.#untilKnown(() => isTaken(this.#agent, found));
    if (isMine && !this.#paused.waiting.has(taskId))
      await this.#run({ offer: found.offer, task, checkpoint: found.checkpoint }, running);
  }

  /** Undefined when it is closed before. */
  async #untilKnown<T>(ask: () => Promise<T>): Promise<T | undefined> {
    while (!this.#closing) {
      try {
        return await ask();
      } catch (caught) {
        const error = toHarmovelaError(caught);
        if (error.retry === "never" && error.code !== "effect_outcome_uncertain") throw error;
        this.#report(error);
      }
      await new Promise<void>((resolve) => this.#agent.clock.after(AGAIN_MS, resolve));
    }
    return undefined;
  }

  async #follow(offer: Offer, running: Running): Promise<DelegatedTask> {
    const { taskId, request } = offer;
    const task = new DelegatedTask(this.#agent, this.#agent.name, taskId, request);
    running.task = task;
    await task.follow();
    return task;
  }

  async #run({ offer, task, checkpoint }: Work, running: Running): Promise<void> {
    const environment = {
      agent: this.#agent,
      sessionId: () => this.sessionId,
      whenInSession: () => this.#inSession.promise,
      handoffWaitMs: this.#options.handoffWaitMs ?? HANDOFF_WAIT_MS,
      giveBack: () => this.#answers.reject(offer, "the worker was stopped"),
      report: (error: HarmovelaError) => this.#report(error),
    };
    const interruptions = new JobInterruptions(environment, task, checkpoint);
    running.interruptions = interruptions;
    const open = this.#paused.openOf(task.id);
    if (open) interruptions.onEvent(open);
    const resumedFrom = checkpoint && toResumedFrom(this.#agent.checkpoints, checkpoint);
    await runJob(environment, { offer, task, interruptions, resumedFrom }, this.#work);
  }

  #report(error: unknown): void {
    tell(this.#options.onError, toHarmovelaError(error));
  }
}
