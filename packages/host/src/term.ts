/**
 * One leadership: from the acknowledged `epoch` entry until the lease, the log or the process ends it.
 *
 * T1 Messages are judged in intake order; before one is judged, every timer due at or before its
 *    store time has been written (architecture, section 5).
 * T2 A timer due while the intake is silent is written only after the intake was seen to hold
 *    nothing that was stored before.
 * T3 One turn: due timers, at most 64 steps of plans, at most 256 messages (section 2, fairness).
 * T4 A leader that was displaced notices within a third of the lease even when it has nothing to write.
 */
import {
  type AppendFailure,
  intakeStream,
  logStream,
  type StreamState,
  type Subscription,
} from "@harmovela/bus";
import { HeartbeatMemory, type Instant, type LogEntry, type TokenIssue } from "@harmovela/envelope";
import { HarmovelaError, type JsonObject } from "@harmovela/failure";
import type { Alarms } from "./alarms.ts";
import { AppendRecovery } from "./append-recovery.ts";
import { AuditTrail } from "./audit/trail.ts";
import { lookAtSignatures, lookAtTokens, readOutcomes } from "./before-judging.ts";
import { BrokerTime } from "./broker-time.ts";
import type { Counters } from "./counters.ts";
import type { Fold } from "./fold.ts";
import { IntakeQueue } from "./intake-queue.ts";
import { type Arrived, type JudgeContext, judge } from "./judge.ts";
import type { LateWork } from "./late-work.ts";
import { listenForHeartbeats } from "./live-heartbeats.ts";
import { EvolveError, LogWriter } from "./log-writer.ts";
import { Obligations } from "./obligations.ts";
import { ObservationKeeper } from "./observation-keeper.ts";
import type { ObservedEnd, ObservedLog } from "./observed-log.ts";
import type { HostOptions } from "./options.ts";
import { PositionKeeper } from "./position-keeper.ts";
import { RefusalRate } from "./refusal-rate.ts";
import type { Releases } from "./releases.ts";
import { Requests } from "./requests.ts";
import { assertSameStream } from "./same-streams.ts";
import { type KeptSnapshot, SnapshotKeeper } from "./snapshot/keeper.ts";
import type { SnapshotStore } from "./snapshot/store.ts";
import { SourceRate } from "./source-rate.ts";

const STEPS_PER_TURN = 64;
const MESSAGES_PER_TURN = 256;
/** A single wait; longer ones are made of several (timers beyond 2^31-1 ms fire at once). */
const WAIT_MS_MAX = 3_600_000;
/** Pause before another turn when the bus does not answer. */
const RETRY_MS = 500;

/** A message that is stored reaches us within this; then whoever wants to decide something tries again. */
const BETWEEN_ATTEMPTS_MAX = 100;
const BETWEEN_WAIT_MS = 10;

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

/** The ends of the observed logs, asked for when so many messages had arrived. */
interface Look<State> {
  arrived: number;
  ends: readonly { log: ObservedLog<State>; end: ObservedEnd }[];
}

function noTokensNow(): HarmovelaError {
  return new HarmovelaError("internal_error", "no tokens now", { category: "dependency" });
}

export class Term<State> {
  readonly #context: TermContext<State>;
  readonly #writer: LogWriter<State>;
  readonly #time: BrokerTime;
  readonly #rate = new RefusalRate();
  readonly #sourceRate: SourceRate | undefined;
  readonly #requests: Requests;
  readonly #obligations: Obligations<State>;
  readonly #judging: JudgeContext<State>;
  readonly #recovery: AppendRecovery;
  readonly #keeper: PositionKeeper<State>;
  readonly #observations: ObservationKeeper<State>;
  readonly #snapshots: SnapshotKeeper<State> | undefined;
  readonly #audit: AuditTrail | undefined;
  #read: ReadonlyMap<number, LogEntry> = new Map();
  readonly #ended: Promise<TermEnd>;
  #end: (end: TermEnd) => void = () => {};
  #fatal: (error: unknown) => void = () => {};
  #state: "opening" | "open" | "recovering" | "closing" | "ended" = "opening";
  /** From the moment on at which messages are judged. */
  #intake: IntakeQueue | undefined;
  #live: Subscription | undefined;
  #lookedAt = 0;
  /** Messages that had arrived when the observed logs were last looked at. */
  #lookedUpTo = 0;
  /** Settled when the recovery under way is over. */
  #recovered: Promise<void> = Promise.resolve();
  #isTurning = false;
  /** Settled when the fold may change again. */
  #frozen: Promise<void> = Promise.resolve();
  #asking: Promise<{ now: Instant; state: StreamState | undefined }> | undefined;
  #isScheduled = false;
  #cancelWait: () => void = () => {};
  #onFirstAck: (() => void) | undefined;
  #onIdle: (() => void) | undefined;

  constructor(context: TermContext<State>) {
    const { options, fold, counters, alarms, releases } = context;
    this.#context = context;
    this.#time = new BrokerTime(options.clock);
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
    const stream = logStream(options.domain);
    if (options.audit !== undefined) {
      const { writer: bus, clock, domain } = options;
      this.#audit = new AuditTrail({ ...context, bus, clock, domain, position: fold.position });
    }
    this.#writer = new LogWriter({
      bus: options.writer,
      clock: options.clock,
      stream,
      domain: options.domain,
      fold,
      onAcked: (acked) => this.#onAcked(acked),
      ...(this.#audit === undefined ? {} : { onStored: (entry) => this.#audit?.stored(entry) }),
      onFailure: (failure) => void this.#recover(failure).catch((error) => this.#stop(error)),
    });
    this.#recovery = new AppendRecovery({
      ...context,
      clock: options.clock,
      logger: options.logger,
      writer: this.#writer,
    });
    this.#keeper = new PositionKeeper({
      clock: options.clock,
      fold,
      writer: this.#writer,
      rate: this.#rate,
    });
    this.#observations = new ObservationKeeper({
      options,
      fold,
      writer: this.#writer,
      alarms,
      isOpen: () => this.#state === "open",
      instant: () => this.#instantNow(),
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
    this.#judging = {
      options,
      fold,
      writer: this.#writer,
      rate: this.#rate,
      counters,
      verdicts: {
        answerer: options.answerer,
        releases,
        counters,
        replyPrefix: options.replyPrefix,
      },
      stream,
      poisoned: context.poisoned,
      lateWork: context.lateWork,
      isBlind: false,
      heartbeats: undefined,
      entryAt: (seq) => this.#writer.unacked(seq) ?? this.#read.get(seq),
      onDecideError: (error) =>
        alarms.raise(`decide failed: ${error instanceof Error ? error.message : error}`),
    };
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
    this.#lookedAt = options.clock.monotonic();
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
    this.#judging.heartbeats = memory;
    this.#live = listenForHeartbeats(answerer, (tenant, source, id) => {
      if (decider.watches?.(fold.state, tenant, source, id)) {
        memory.hear(tenant, source, id, this.now());
      }
    });
  }

  /** Something may have changed: look soon. */
  wake(): void {
    if (this.#isScheduled || this.#state !== "open") return;
    this.#isScheduled = true;
    this.#context.options.clock.soon(() => {
      this.#isScheduled = false;
      if (this.#isTurning || this.#state !== "open") return;
      this.#isTurning = true;
      this.#turn().then(
        () => this.#afterTurn(),
        (error) => this.#onTurnError(error),
      );
    });
  }

  #onTurnError(error: unknown): void {
    this.#isTurning = false;
    if (this.#state !== "open") return;
    if (error instanceof HarmovelaError && error.category === "dependency") {
      this.#context.options.logger.warn({ err: error }, "the bus does not answer");
      this.#wait(RETRY_MS);
    } else if (!(error instanceof EvolveError)) {
      this.#stop(error);
    }
  }

  async #turn(): Promise<void> {
    // Fetched first: what was acknowledged elsewhere before these were stored is folded before they are judged.
    const intake = this.#intake;
    if (intake === undefined) return;
    const max = Math.min(MESSAGES_PER_TURN, this.#writer.room);
    intake.fetch(max);
    // Under way while they are validated.
    const look = this.#lookAtObserved(intake);
    intake.validate(max);
    if (look !== undefined) await this.#catchUpObserved(look);
    if (this.#state !== "open") return;
    await this.#workOffIdleTimers(intake);
    if (this.#state !== "open") return;
    this.#guardEvolve(undefined, () => this.#obligations.workOffSteps(STEPS_PER_TURN));
    if (this.#state !== "open") return;
    this.#obligations.sendDue(this.#time.now());
    await this.#judgeBatch(intake);
    if (this.#state !== "open") return;
    if (this.#writer.room >= 4) this.#keeper.keep(intake.judged);
    await this.#observations.keep();
    if (this.#state !== "open") return;
    await this.#takeSnapshot();
    if (this.#state !== "open") return;
    await this.#noticeDisplacement(intake);
  }

  /** T2. */
  async #workOffIdleTimers(intake: IntakeQueue): Promise<void> {
    const { options } = this.#context;
    if (!intake.isEmpty) return;
    const now = this.#time.now();
    const owed = this.#obligations.next(now);
    if (owed === undefined || !("urgency" in owed) || owed.urgency !== "timer") return;
    const state = await options.writer.streamState(intakeStream(options.domain));
    if (this.#state !== "open") return;
    if (state === undefined) throw new HarmovelaError("internal_error", "the intake is gone");
    if (intake.isDrained(state)) {
      this.#guardEvolve(undefined, () => this.#obligations.workOffTimers(now));
    }
  }

  /** T1, T3. */
  async #judgeBatch(intake: IntakeQueue): Promise<void> {
    const { waiting } = intake;
    if (waiting.length === 0) return;
    const { options, fold } = this.#context;
    this.#read = await readOutcomes(waiting, fold, {
      bus: options.writer,
      stream: logStream(options.domain),
      isAtHand: (seq) => this.#writer.unacked(seq) !== undefined,
    });
    await lookAtTokens(waiting, options.tokens);
    await lookAtSignatures(waiting, options.agentKeys);
    if (this.#state !== "open") return;
    let done = 0;
    for (const arrived of waiting) {
      if (done >= MESSAGES_PER_TURN || !this.#judgeOne(intake, arrived)) break;
      done += 1;
    }
    intake.shift(done);
    this.#read = new Map();
  }

  /** False when it must wait for room, for a read, or when the term is over. */
  #judgeOne(intake: IntakeQueue, arrived: Arrived): boolean {
    const { message } = arrived;
    let isDone = false;
    const isFine = this.#guardEvolve(message.seq, () => {
      arrived.at ??= this.#time.instantOf(message, this.#context.fold.at);
      if (message.seq > intake.judged + 1) this.#recordGap(intake, message.seq - 1);
      if (!this.#obligations.workOffTimers(arrived.at)) return;
      if (this.#writer.room < 2) return;
      isDone = judge(this.#judging, arrived, arrived.at) === "done";
    });
    if (!isFine || !isDone) return false;
    intake.judged = message.seq;
    return true;
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

  /** What the intake held up to here was removed before it was judged. */
  #recordGap(intake: IntakeQueue, to: number): void {
    const { counters, alarms, fold } = this.#context;
    const from = intake.judged + 1;
    counters.add("intake_gaps");
    alarms.raise(`the intake lost the messages ${from} to ${to}`);
    this.#writer.control({
      kind: "intake_gap",
      body: { from, to },
      cause: { in: to },
      at: fold.at,
    });
    intake.judged = to;
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

  /**
   * Asks for the ends of the observed logs. One look is enough for all messages that had arrived by then: a
   * question takes as long as judging many of them.
   */
  #lookAtObserved(intake: IntakeQueue): Look<State> | undefined {
    const { fetched, arrived } = intake;
    if (fetched > intake.shifted && fetched <= this.#lookedUpTo) return undefined;
    const ends = this.#context.observed.map((log) => ({ log, end: log.askEnd() }));
    return { arrived, ends };
  }

  /** What was acknowledged anywhere before these messages were stored is known before they are judged. */
  async #catchUpObserved({ arrived, ends }: Look<State>): Promise<void> {
    const { fold, alarms } = this.#context;
    this.#judging.isBlind = false;
    for (const { log, end } of ends) {
      try {
        await log.catchUp(fold, end);
      } catch (error) {
        if (!(error instanceof HarmovelaError) || error.category !== "dependency") throw error;
        alarms.raise(`cannot catch up with ${log.domain}: ${error.message}`);
        this.#judging.isBlind = true;
      }
      this.#requests.targetJudged(log.domain, log.intake);
    }
    this.#lookedUpTo = this.#judging.isBlind ? 0 : arrived;
  }

  /** T4: appends find out by themselves; a leader with nothing to write looks now and then. */
  async #noticeDisplacement(intake: IntakeQueue): Promise<void> {
    const { options } = this.#context;
    const now = options.clock.monotonic();
    if (!this.#writer.isIdle) this.#lookedAt = now;
    if (now - this.#lookedAt < this.#lookEveryMs) return;
    this.#lookedAt = now;
    // Taken first: a token may be recorded while the questions are under way.
    const { acked } = this.#writer;
    const stored = await options.writer.streamState(logStream(options.domain));
    const asked = await options.writer.streamState(intakeStream(options.domain));
    if (this.#state !== "open" || !this.#writer.isIdle) return;
    const { leadership } = this.#context.fold;
    assertSameStream("log", stored, leadership, acked);
    assertSameStream("intake", asked, leadership, this.judged);
    if ((stored?.lastSeq ?? 0) > this.#writer.acked) {
      this.#finish({ reason: "displaced", isFoldIntact: false });
    } else if (asked !== undefined && intake.isDrained(asked) && asked.lastSeq > intake.judged) {
      // No later message will show that these are missing.
      this.#recordGap(intake, asked.lastSeq);
    }
  }

  get #lookEveryMs(): number {
    return this.#context.options.leaseTtlMs / 3;
  }

  /**
   * Issues a token: its entry is appended at `position`, the token follows. Nobody may get it before the
   * entry is stored. Rejects as retryable while this replica cannot write.
   */
  async issueToken(request: {
    tenant: string;
    source: string;
    params: JsonObject;
  }): Promise<{ position: number; result: JsonObject }> {
    const { issueToken, tokens } = this.#context.options;
    if (issueToken === undefined || tokens === undefined) {
      throw new HarmovelaError("invalid_query", "no tokens are issued here");
    }
    const { fold } = this.#context;
    const { tenant, source: asker, params } = request;
    const decide = (now: Instant): TokenIssue => {
      const answer = issueToken(fold.state, { tenant, asker, params, now });
      if ("issue" in answer) return answer.issue;
      const { code, message, details = {} } = answer.refused;
      throw new HarmovelaError(code, message, { details });
    };
    // Whoever would get none need not wait.
    decide(this.now());
    await this.#frozen;
    const now = await this.#instantBetween();
    if (this.#state !== "open" || this.#writer.room < 4) throw noTokensNow();
    const at = Math.max(now, fold.at);
    const issue = decide(at);
    const cause = { owed: `token:${issue.jti}` };
    const isWritten = this.#guardEvolve(undefined, () => {
      this.#writer.control({ kind: "token_issued", body: issue, tenant, cause, at });
    });
    if (!isWritten) throw new HarmovelaError("internal_error", "the token could not be recorded");
    const position = this.#writer.last;
    const result = { token: await tokens.sign(issue), jti: issue.jti, exp: issue.exp };
    return { position, result };
  }

  /**
   * The time of what is decided between messages: not after one that is stored and not judged, or that
   * one would be judged too late (T2). The fold may change when it resolves.
   */
  async #instantBetween(): Promise<Instant> {
    const { options, fold } = this.#context;
    for (let attempt = 0; attempt < BETWEEN_ATTEMPTS_MAX; attempt += 1) {
      const intake = this.#intake;
      if (this.#state !== "open" || intake === undefined) break;
      const next = intake.peek();
      if (next !== undefined) return this.#time.instantBefore(next.time, fold.at);
      const { now, state } = await this.#askIntake();
      await this.#frozen;
      if (state !== undefined && intake.isDrained(state)) return now;
      // It is on its way to us.
      await new Promise<void>((resolve) => options.clock.after(BETWEEN_WAIT_MS, resolve));
      await this.#frozen;
    }
    throw noTokensNow();
  }

  /** The same for what need not wait for it; undefined while a message is on its way. */
  async #instantNow(): Promise<Instant | undefined> {
    const { fold } = this.#context;
    const next = this.#intake?.peek();
    if (next !== undefined) return this.#time.instantBefore(next.time, fold.at);
    const { now, state } = await this.#askIntake();
    const isAll = state !== undefined && this.#intake?.isDrained(state) === true;
    return isAll ? Math.max(now, fold.at) : undefined;
  }

  /** What the intake holds, and a time up to which that is all of it; whoever asks meanwhile shares the answer. */
  #askIntake(): Promise<{ now: Instant; state: StreamState | undefined }> {
    const now = this.#time.now();
    this.#asking ??= this.#context.options.writer
      .streamState(intakeStream(this.#context.options.domain))
      .then((state) => ({ now, state }))
      .finally(() => {
        this.#asking = undefined;
      });
    return this.#asking;
  }

  /** Looks again at once when there is work and room, else at the next due time. */
  #afterTurn(): void {
    this.#isTurning = false;
    if (this.#state !== "open") return;
    if (this.#writer.room < 2) return;
    const hasInput =
      this.#intake?.isEmpty === false || this.#context.observed.some((log) => log.hasNews);
    const now = this.#time.now();
    const owed = this.#obligations.next(now);
    const hasStep = owed !== undefined && "urgency" in owed && owed.urgency === "step";
    const hasRequest = owed !== undefined && "request" in owed && !this.#requests.isFull;
    if (hasInput || hasStep || hasRequest) {
      this.wake();
      return;
    }
    const waits = [
      WAIT_MS_MAX,
      this.#lookEveryMs,
      ...this.#keeper.waits,
      ...this.#observations.waits,
    ];
    if (this.#obligations.pauseMs > 0) waits.push(this.#obligations.pauseMs);
    if (owed !== undefined && "wakeAt" in owed) waits.push(Math.max(1, owed.wakeAt - now));
    else if (owed !== undefined && "urgency" in owed) {
      waits.push(this.#intake?.isUncertain === true ? RETRY_MS : 1);
    }
    this.#wait(Math.min(...waits));
  }

  #wait(ms: number): void {
    this.#cancelWait();
    this.#cancelWait = this.#context.options.clock.after(ms, () => this.wake());
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
    this.#cancelWait();
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
