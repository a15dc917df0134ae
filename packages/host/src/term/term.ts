/**
 * One leadership: from the acknowledged `epoch` entry until the lease, the log or the process ends it.
 */
import { type AppendFailure, logStream, type Subscription } from "@harmovela/bus";
import { HeartbeatMemory, type Instant } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import type { Alarms } from "../alarms.ts";
import { AppendRecovery } from "../append-recovery.ts";
import { AuditTrail } from "../audit/trail.ts";
import { BrokerTime } from "../broker-time.ts";
import type { Counters } from "../counters.ts";
import type { Fold } from "../fold.ts";
import { IntakeQueue } from "../intake-queue.ts";
import type { LateWork } from "../late-work.ts";
import { listenForHeartbeats } from "../live-heartbeats.ts";
import { EvolveError, LogWriter } from "../log-writer.ts";
import { Obligations } from "../obligations.ts";
import { ObservationKeeper } from "../observation-keeper.ts";
import type { ObservedLog } from "../observed-log.ts";
import type { HostOptions } from "../options.ts";
import { PositionKeeper } from "../position-keeper.ts";
import { RefusalRate } from "../refusal-rate.ts";
import type { Releases } from "../releases.ts";
import { Requests } from "../requests.ts";
import { type KeptSnapshot, SnapshotKeeper } from "../snapshot/keeper.ts";
import type { SnapshotStore } from "../snapshot/store.ts";
import { SourceRate } from "../source-rate.ts";
import { DecisionTime } from "./decision-time.ts";
import { DisplacementWatch } from "./displacement.ts";
import { IntakeJudge } from "./intake-judge.ts";
import { LogRoom } from "./log-room.ts";
import { ObservedLooks } from "./observed-looks.ts";
import { TokenOffice, type TokenRequest } from "./token-office.ts";
import { TurnLoop } from "./turn-loop.ts";

/** Why a leadership ended, and whether the fold still holds exactly what is stored. */
export interface TermEnd {
  reason: "lease_lost" | "displaced" | "evolve_failed" | "closed";
  isFoldIntact: boolean;
}

export interface TermContext<State> {
  options: HostOptions<State>;
  fold: Fold<State>;
  observed: readonly ObservedLog<State>[];
  releases: Releases;
  counters: Counters;
  alarms: Alarms;
  /** What the intake held when it began. */
  backlog: number;
  /** Causes whose entry `evolve` could not fold; shared by all terms of a process. */
  poisoned: Map<number, number>;
  failing: Set<string>;
  lateWork: LateWork;
  /** None where the decider's state cannot be written down. */
  snapshots: SnapshotStore<State> | undefined;
  isLeaseHeld(): boolean;
  /** Of the log: its creation time. */
  incarnation: string;
}

export class Term<State> {
  readonly #context: TermContext<State>;
  readonly #writer: LogWriter<State>;
  readonly #time: BrokerTime;
  readonly #rate = new RefusalRate();
  readonly #sourceRate: SourceRate | undefined;
  readonly #requests: Requests;
  readonly #obligations: Obligations<State>;
  readonly #judge: IntakeJudge<State>;
  readonly #room: LogRoom<State>;
  readonly #turns: TurnLoop<State>;
  readonly #tokens: TokenOffice<State>;
  readonly #recovery: AppendRecovery;
  readonly #snapshots: SnapshotKeeper<State> | undefined;
  readonly #audit: AuditTrail | undefined;
  readonly #ended: Promise<TermEnd>;
  #end: (end: TermEnd) => void = () => {};
  #fatal: (error: unknown) => void = () => {};
  #state: "opening" | "open" | "recovering" | "closing" | "ended" = "opening";
  /** From the moment on at which messages are judged. */
  #intake: IntakeQueue | undefined;
  #live: Subscription | undefined;
  /** Settled when the recovery under way is over. */
  #recovered: Promise<void> = Promise.resolve();
  /** Settled when the fold may change again. */
  #frozen: Promise<void> = Promise.resolve();
  #onFirstAck: (() => void) | undefined;
  #onIdle: (() => void) | undefined;

  constructor(context: TermContext<State>) {
    const { options, fold, counters, alarms, releases } = context;
    this.#context = context;
    this.#time = new BrokerTime(options.clock);
    this.#room = new LogRoom(options, alarms);
    this.#ended = new Promise((resolve, fail) => {
      this.#end = resolve;
      this.#fatal = fail;
    });
    this.#ended.catch(() => {
      // Whoever awaits `ended` handles it; nobody may be waiting yet.
    });
    const { sourceLimits: limits } = options;
    if (limits !== undefined) {
      this.#sourceRate = new SourceRate(limits, (tenant, source) =>
        alarms.raise(`${source} of ${tenant} sends more than is judged`),
      );
    }
    const isOpen = (): boolean => this.#state === "open";
    const unfrozen = (): Promise<void> => this.#frozen;
    const intake = (): IntakeQueue | undefined => (isOpen() ? this.#intake : undefined);
    const decisionTime = new DecisionTime({
      options,
      fold,
      time: this.#time,
      intake,
      unfrozen,
    });
    if (options.audit !== undefined) {
      const { writer: bus, clock, domain } = options;
      this.#audit = new AuditTrail({ ...context, bus, clock, domain, position: fold.position });
    }
    this.#writer = new LogWriter({
      bus: options.writer,
      clock: options.clock,
      stream: logStream(options.domain),
      domain: options.domain,
      fold,
      onAcked: (acked) => this.#onAcked(acked),
      onWritten: (bytes) => this.#room.take(bytes),
      ...(this.#audit === undefined ? {} : { onStored: (entry) => this.#audit?.stored(entry) }),
      onFailure: (failure) => void this.#recover(failure).catch((error) => this.#stop(error)),
    });
    this.#recovery = new AppendRecovery({
      ...context,
      clock: options.clock,
      logger: options.logger,
      writer: this.#writer,
    });
    const { snapshots: spec } = options.decider;
    const { snapshots: store } = context;
    if (spec !== undefined && store !== undefined) {
      const now = (): Instant => this.now();
      this.#snapshots = new SnapshotKeeper({
        ...context,
        spec,
        store,
        now,
        note: () => this.#note(),
      });
    }
    this.#requests = new Requests({
      bus: options.writer,
      clock: options.clock,
      counters,
      alarms,
      whenStored: (send) => releases.add(this.#writer.last, send),
      onChange: () => this.wake(),
    });
    this.#obligations = new Obligations({
      options,
      fold,
      writer: this.#writer,
      requests: this.#requests,
      counters,
      alarms,
      failing: context.failing,
    });
    const guard = (work: () => void): boolean => this.#guardEvolve(undefined, work);
    this.#judge = new IntakeJudge({
      ...context,
      writer: this.#writer,
      time: this.#time,
      rate: this.#rate,
      obligations: this.#obligations,
      room: this.#room,
      verdicts: {
        answerer: options.answerer,
        releases,
        counters,
        replyPrefix: options.replyPrefix,
      },
      isOpen,
      guard: (seq, work) => this.#guardEvolve(seq, work),
    });
    this.#tokens = new TokenOffice({
      options,
      fold,
      writer: this.#writer,
      decisionTime,
      isOpen,
      unfrozen,
      now: () => this.now(),
      guard,
    });
    this.#turns = new TurnLoop({
      ...context,
      time: this.#time,
      writer: this.#writer,
      requests: this.#requests,
      obligations: this.#obligations,
      judge: this.#judge,
      looks: new ObservedLooks({
        ...context,
        onJudged: (domain, judged) => this.#requests.targetJudged(domain, judged),
      }),
      keeper: new PositionKeeper({
        clock: options.clock,
        fold,
        writer: this.#writer,
        rate: this.#rate,
      }),
      observations: new ObservationKeeper({
        options,
        fold,
        writer: this.#writer,
        alarms,
        isOpen,
        instant: () => decisionTime.now(),
      }),
      room: this.#room,
      displacement: new DisplacementWatch({ options, fold, writer: this.#writer, isOpen }),
      intake,
      isOpen,
      guard,
      takeSnapshot: () => this.#takeSnapshot(),
      onDisplaced: () => this.#finish({ reason: "displaced", isFoldIntact: false }),
      onFatal: (error) => this.#stop(error),
    });
  }

  /** Resolves with how it ended; rejects when the service must stop. */
  get ended(): Promise<TermEnd> {
    return this.#ended;
  }

  /** What it has folded may not be stored yet: answers that rest on it must wait. */
  get isOpen(): boolean {
    return this.#state !== "ended";
  }

  get acked(): number {
    return this.#writer.acked;
  }

  /** The newest folded position; answers that rest on it wait until it is stored. */
  get last(): number {
    return this.#writer.last;
  }

  /** Last intake position that was judged, logged or not. */
  get judged(): number {
    return this.#intake?.judged ?? 0;
  }

  /** The newest snapshot that this leadership has stored. */
  get snapshot(): KeptSnapshot | undefined {
    return this.#snapshots?.latest;
  }

  /** Everything that arrived is judged and stored, and nothing is due now. */
  get isSettled(): boolean {
    const owed = this.#obligations.next(this.#time.now());
    return (
      this.#state === "open" &&
      this.#intake?.isEmpty === true &&
      this.#writer.isIdle &&
      this.#requests.requests.size === 0 &&
      (owed === undefined || "wakeAt" in owed)
    );
  }

  now(): Instant {
    return Math.max(this.#time.now(), this.#context.fold.at);
  }

  /** Appends `epoch` and waits for it; until it is stored nothing is judged (section 6). */
  async open(body: Record<string, string | number | object>): Promise<boolean> {
    const { fold, options } = this.#context;
    const acked = new Promise<void>((resolve) => {
      this.#onFirstAck = resolve;
    });
    this.#writer.control({
      kind: "epoch",
      body: body as never,
      cause: { in: fold.intake },
      at: fold.at,
    });
    await Promise.race([acked, this.#ended]);
    await this.#recovered;
    if (this.#state !== "opening") return false;
    try {
      const entry = await options.writer.read(logStream(options.domain), this.#writer.last);
      if (entry !== undefined) this.#time.begin(entry.time, fold.at, this.#context.backlog);
    } catch (error) {
      options.logger.warn({ err: error }, "the bus fell silent at the take-over");
      this.#finish({ reason: "lease_lost", isFoldIntact: this.#isIntact });
      return false;
    }
    await this.#recovered;
    if (this.#state !== "opening") return false;
    this.#intake = new IntakeQueue({
      bus: options.writer,
      clock: options.clock,
      domain: options.domain,
      service: options.service,
      ...(this.#sourceRate === undefined ? {} : { rate: this.#sourceRate }),
      after: fold.intake,
      onReady: () => this.wake(),
    });
    this.#state = "open";
    this.#listen();
    this.wake();
    return true;
  }

  /** From now on sessions are heard, each with a full window ahead of it (spec 5.1). */
  #listen(): void {
    const { options, fold } = this.#context;
    const { decider, answerer } = options;
    if (decider.watches === undefined) return;
    const memory = new HeartbeatMemory(this.now());
    this.#requests.heartbeats = memory;
    this.#judge.heartbeats = memory;
    this.#live = listenForHeartbeats(answerer, (tenant, source, id) => {
      if (decider.watches?.(fold.state, tenant, source, id)) {
        memory.hear(tenant, source, id, this.now());
      }
    });
  }

  /** Something may have changed: look soon. */
  wake(): void {
    this.#turns.wake();
  }

  /** Runs a piece of a turn; an entry that cannot be folded is refused from now on and the fold rebuilt. */
  #guardEvolve(intake: number | undefined, work: () => void): boolean {
    try {
      work();
      return true;
    } catch (error) {
      if (!(error instanceof EvolveError)) throw error;
      this.#context.alarms.raise(`evolve failed: ${error.message}`, { intake });
      const { failing, poisoned } = this.#context;
      if (error.isSettlement) throw error.cause;
      if (error.obligation !== undefined) failing.add(error.obligation);
      else if (intake !== undefined) poisoned.set(intake, (poisoned.get(intake) ?? 0) + 1);
      this.#finish({ reason: "evolve_failed", isFoldIntact: false });
      return false;
    }
  }

  /** An entry that says how far everything is folded. False without room for it. */
  #note(): boolean {
    if (this.#writer.room < 2) return false;
    const { fold } = this.#context;
    const judged = Math.max(this.judged, fold.intake);
    const body = { intake: judged };
    this.#writer.control({ kind: "position", body, cause: { in: judged }, at: fold.at });
    return true;
  }

  /** Issues a token; nobody may get it before the entry at `position` is stored. Rejects as retryable while this replica cannot write. */
  issueToken(request: TokenRequest): Promise<{ position: number; result: JsonObject }> {
    return this.#tokens.issue(request);
  }

  #onAcked(acked: number): void {
    this.#onFirstAck?.();
    this.#onFirstAck = undefined;
    this.#context.releases.releaseUpTo(acked);
    if (this.#writer.isIdle) this.#onIdle?.();
    this.wake();
  }

  /** An append failed: nothing is assumed; the log says what is stored (section 6). */
  async #recover(failure: AppendFailure): Promise<void> {
    if (this.#state === "ended" || this.#state === "recovering") return;
    const before = this.#state;
    this.#state = "recovering";
    let onRecovered = (): void => {};
    this.#recovered = new Promise((resolve) => {
      onRecovered = resolve;
    });
    try {
      const outcome = await this.#recovery.run(failure);
      if (outcome !== "stands") this.#finish({ reason: outcome, isFoldIntact: false });
    } finally {
      // Whoever closed or ended it meanwhile has the last word.
      if (this.#state === "recovering") this.#state = before;
      onRecovered();
    }
    if (this.#state === "opening") this.#onFirstAckIfStored();
    this.wake();
  }

  #onFirstAckIfStored(): void {
    if (this.#writer.isIdle) this.#onAcked(this.#writer.acked);
  }

  /** The lease is gone: write nothing more. */
  loseLease(): void {
    this.#finish({ reason: "lease_lost", isFoldIntact: this.#isIntact });
  }

  /** The fold holds what is stored, and of the observed logs what that says (F3). */
  get #isIntact(): boolean {
    return this.#writer.isIdle && this.#context.fold.isNoted;
  }

  /** Judges no more, waits until what was written is stored (bounded), and ends. */
  async close(drainMs: number): Promise<void> {
    if (this.#state === "ended") return;
    const wasOpen = this.isOpen;
    this.#state = "closing";
    if (wasOpen && !this.#writer.isIdle) {
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve;
        this.#context.options.clock.after(drainMs, resolve);
      });
    }
    if (this.#writer.isIdle) await this.#lastSnapshot(drainMs);
    if (this.#context.options.writer.isConnected) await this.#audit?.close(drainMs);
    this.#finish({ reason: "closed", isFoldIntact: this.#isIntact });
  }

  /** Nothing is folded while it is written down: not by a turn, which waits, nor by whoever asks for a token. */
  async #takeSnapshot(): Promise<void> {
    if (this.#snapshots === undefined) return;
    const keeping = this.#snapshots.keep();
    this.#frozen = keeping;
    await keeping;
  }

  async #lastSnapshot(withinMs: number): Promise<void> {
    if (this.#snapshots === undefined) return;
    const { clock, writer } = this.#context.options;
    if (!writer.isConnected) return;
    const late = new Promise<void>((resolve) => clock.after(withinMs, resolve));
    await Promise.race([this.#snapshots.close(), late]);
  }

  #stop(error: unknown): void {
    if (this.#state === "ended") return;
    this.#release();
    this.#fatal(error);
  }

  #finish(end: TermEnd): void {
    if (this.#state === "ended") return;
    this.#release();
    this.#end(end);
  }

  #release(): void {
    this.#state = "ended";
    this.#turns.stop();
    this.#requests.close();
    this.#live?.close();
    this.#snapshots?.abandon();
    this.#audit?.abandon();
    this.#context.releases.clear();
    for (const closing of [this.#intake?.close(), this.#writer.close()]) {
      closing?.catch((error: unknown) =>
        this.#context.options.logger.warn({ err: error }, "closing failed"),
      );
    }
  }
}
