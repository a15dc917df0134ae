/**
 * The interruptions of one job, from the process that runs it (spec 5.7).
 *
 * J1 An interruption is acknowledged when it is seen and answered with `saved` when the job's function has
 *    stopped: whoever goes on from the checkpoint then is the only one who works.
 * J2 What is announced is stored: the newest checkpoint whose `checkpoint` has resolved, else where this run
 *    began, else "from the start".
 * J3 A newer interruption takes the place of an older one; what is said then answers the newer.
 */
import type { Envelope } from "@harmovela/envelope";
import { HarmovelaError, type JsonValue, toHarmovelaError } from "@harmovela/failure";
import {
  type Checkpoint,
  type ExternalCheckpoint,
  external,
  fromTheStart,
} from "./checkpoint-store.ts";
import type { DelegatedTask } from "./delegated-task.ts";
import { type InterruptionPolicy, toAcknowledgement, toSaved } from "./interruption-draft.ts";
import type { JobEnvironment } from "./job-environment.ts";
import { payloadOf } from "./offer.ts";
import { RejectedError } from "./rejected-error.ts";
import { saidOnce } from "./said-once.ts";

/** What a job is told when it is to stop for now. */
export interface InterruptionNotice {
  /** Of the request. */
  id: string;
  policy: InterruptionPolicy;
  reason: string | undefined;
  /** Who asks. */
  by: string;
  /** From receipt, milliseconds; undefined where the policy's default holds. */
  graceMs: number | undefined;
}

/** What it returns is waited for. */
export type InterruptListener = (notice: InterruptionNotice) => unknown;

/** Requests that take each other's place while one is being answered. */
const ANSWERS_MAX = 4;

export class JobInterruptions {
  readonly #environment: JobEnvironment;
  readonly #task: DelegatedTask;
  /** Where this run has begun. */
  readonly #resumedFrom: Checkpoint | undefined;
  readonly #listeners = new Set<InterruptListener>();
  #current: InterruptionNotice | undefined;
  #acknowledged: Promise<void> = Promise.resolve();
  #isDraining = false;
  #isOver = false;
  #newest: Checkpoint | undefined;
  /** Checkpoints are stored one after the other, so that the newest is the one that was made last. */
  #storing: Promise<unknown> = Promise.resolve();

  constructor(
    environment: JobEnvironment,
    task: DelegatedTask,
    resumedFrom: Checkpoint | undefined,
  ) {
    this.#environment = environment;
    this.#task = task;
    this.#resumedFrom = resumedFrom;
  }

  /** Whether the job is to stop, so that it can go on later. */
  get isAsked(): boolean {
    return this.#current !== undefined;
  }

  onInterrupt(listener: InterruptListener): () => void {
    this.#listeners.add(listener);
    if (this.#current) void this.#tell(listener, this.#current);
    return () => this.#listeners.delete(listener);
  }

  /** An event of the task's interruptions, in the order of the log. */
  onEvent(envelope: Envelope): void {
    if (this.#isOver) return;
    const { id, type } = envelope;
    if (type === "interruption.requested") this.#onRequested(envelope);
    // Somebody else goes on, or nobody does: what this process still does counts no more.
    else if (type === "interruption.resumed" || type === "interruption.cancelled")
      this.#task.end(id, type);
  }

  /** Resolves with its id when it is stored (J2). */
  checkpoint(data: Uint8Array | JsonValue): Promise<string> {
    return this.#keep(() => this.#environment.agent.checkpoints.put(this.#task.id, data));
  }

  checkpointAt(where: ExternalCheckpoint): Promise<string> {
    return this.#keep(async () => external(this.#task.id, where));
  }

  /** The job's function has returned: what is to drain has drained. */
  drained(): void {
    if (this.#isDraining && this.#current) this.#stop(this.#current);
  }

  /** The job's function has stopped because of this: says so, with what it can go on from (J1, J3). */
  async save(): Promise<void> {
    await this.#storing;
    this.#isOver = true;
    const { agent } = this.#environment;
    const checkpoint = this.#newest ?? this.#resumedFrom ?? fromTheStart(this.#task.id);
    for (let answer = 1; !this.#task.hasEnded; answer++) {
      await this.#acknowledged;
      const request = this.#current?.id ?? "";
      try {
        await saidOnce(this.#environment, this.#task, () =>
          agent.publish(toSaved(checkpoint, request)),
        );
        return;
      } catch (error) {
        if (!(error instanceof RejectedError)) throw error;
        // The task has ended, or somebody was faster.
        if (!this.#isSuperseded(error, request) || answer >= ANSWERS_MAX) return;
      }
    }
  }

  /** The job has ended: what it stored to go on from is of no use any more. */
  async forget(): Promise<void> {
    await this.#storing;
    this.#isOver = true;
    const newest = this.#newest;
    if (newest) await this.#environment.agent.checkpoints.remove(newest);
  }

  #onRequested(envelope: Envelope): void {
    const { id, interruption_policy: policy = "save_and_stop", source: by } = envelope;
    const { reason, grace_period_ms: graceMs, expired } = payloadOf(envelope);
    const notice: InterruptionNotice = {
      id,
      policy,
      by,
      reason: typeof reason === "string" ? reason : undefined,
      graceMs: typeof graceMs === "number" ? graceMs : undefined,
    };
    this.#current = notice;
    if (expired !== true) this.#acknowledged = this.#acknowledge(id);
    const told = [...this.#listeners].map((listener) => this.#tell(listener, notice));
    this.#isDraining = policy === "drain_then_stop";
    if (policy === "force_stop") this.#stop(notice);
    else if (policy === "save_and_stop") void Promise.all(told).then(() => this.#stop(notice));
  }

  async #tell(listener: InterruptListener, notice: InterruptionNotice): Promise<void> {
    try {
      await listener(notice);
    } catch (error) {
      this.#environment.report(toHarmovelaError(error));
    }
  }

  #stop({ id, policy, reason }: InterruptionNotice): void {
    const error = new HarmovelaError("interrupted", reason ?? "the work is to stop for now", {
      details: { task_id: this.#task.id, event_id: id, type: "interruption.requested", policy },
    });
    this.#task.interrupt(error, policy === "force_stop");
  }

  /** Never throws: what is refused here shows when it is answered. */
  async #acknowledge(request: string): Promise<void> {
    const { agent, report } = this.#environment;
    try {
      await saidOnce(this.#environment, this.#task, () =>
        agent.publish(toAcknowledgement(this.#task.id, request)),
      );
    } catch (error) {
      if (!(error instanceof RejectedError)) report(toHarmovelaError(error));
    }
  }

  #keep(make: () => Promise<Checkpoint>): Promise<string> {
    const kept = this.#storing.then(async () => {
      if (this.#isOver || this.#task.hasEnded)
        throw new HarmovelaError("closed", "the job is over, and nothing goes on from it");
      const made = await make();
      const before = this.#newest;
      this.#newest = made;
      if (this.#isDraining && this.#current) this.#stop(this.#current);
      if (before) this.#drop(before);
      return made.checkpointId;
    });
    this.#storing = kept.catch(() => undefined);
    return kept;
  }

  /** Nobody was told of it. */
  #drop(checkpoint: Checkpoint): void {
    const { agent, report } = this.#environment;
    agent.checkpoints.remove(checkpoint).catch((error: unknown) => report(toHarmovelaError(error)));
  }

  /** Another request stands where this one stood, seen here already or not. */
  #isSuperseded({ details }: RejectedError, request: string): boolean {
    if (this.#current && this.#current.id !== request) return true;
    const by = details?.superseded_by;
    if (typeof by !== "string" || !this.#current) return false;
    this.#current = { ...this.#current, id: by };
    this.#acknowledged = this.#acknowledge(by);
    return true;
  }
}
