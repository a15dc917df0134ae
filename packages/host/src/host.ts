/**
 * Runs one decider as a service: standby, leader, standby again, until closed (architecture, section 6).
 * Every replica folds the log and answers reads; the lease decides who tries to lead, the log who does.
 */
import {
  auditStreamSpec,
  intakeStream,
  intakeStreamSpec,
  type Lease,
  logStream,
  logStreamSpec,
  type Reader,
  type StoredMessage,
  type StreamState,
} from "@harmovela/bus";
import type { Instant } from "@harmovela/envelope";
import { HarmovelaError, type JsonObject, toHarmovelaError } from "@harmovela/failure";
import { Alarms } from "./alarms.ts";
import { AuditBook } from "./audit/book.ts";
import { Counters } from "./counters.ts";
import { Fold, FoldError } from "./fold.ts";
import type { HostStatus } from "./host-status.ts";
import { LateWork } from "./late-work.ts";
import { ObservedLog } from "./observed-log.ts";
import type { HostOptions } from "./options.ts";
import { Answerer, type View } from "./reads/answerer.ts";
import { Releases } from "./releases.ts";
import { assertSameStream } from "./same-streams.ts";
import { threadPacking } from "./snapshot/format.ts";

import { SnapshotStore } from "./snapshot/store.ts";
import { Term } from "./term/term.ts";

/** Entries folded in one loop turn while following; reads are answered in between. */
const FOLD_PER_TURN = 1_000;
/** Acknowledgements still awaited when the service is asked to stop. */
const DRAIN_MS_MAX = 5_000;
/** Pause before another try when the bus does not answer. */
const RETRY_MS = 250;

export interface Host<State = unknown> {
  status(): HostStatus;
  /** The state as the leader has folded it, the broker's time and its epoch; undefined while another process leads. */
  leading(): { state: State; now: Instant; epoch: number } | undefined;
  /** Resolves when the service leads and has acknowledged its epoch. Rejects when it stops before. */
  untilLeading(): Promise<void>;
  /** Resolves when it is closed; rejects with the reason when it must stop by itself. */
  readonly done: Promise<void>;
  /** Stops judging, waits for what is in flight, gives up the lease. */
  close(): Promise<void>;
}

/** Provisions the domain's streams and starts the service. The buses stay the caller's. */
export async function openHost<State>(options: HostOptions<State>): Promise<Host<State>> {
  const { writer, domain, replicas } = options;
  await writer.provision(intakeStreamSpec(domain, { replicas }));
  await writer.provision(logStreamSpec(domain, { replicas }));
  for (const observed of options.observes) {
    await writer.provision(logStreamSpec(observed, { replicas }));
  }
  if (options.audit !== undefined) {
    await writer.provision(auditStreamSpec({ replicas, ...options.audit }));
  }
  const { snapshots: spec } = options.decider;
  const snapshots =
    spec === undefined
      ? undefined
      : new SnapshotStore({
          blobs: writer.openBlobs({ replicas }),
          domain,
          spec,
          packing: options.packing ?? threadPacking,
        });
  await snapshots?.registerObserver(options.observes);
  const host = new RunningHost(options, snapshots);
  host.start();
  return host;
}

class RunningHost<State> implements Host<State> {
  readonly #options: HostOptions<State>;
  readonly #counters: Counters;
  readonly #alarms: Alarms;
  readonly #releases = new Releases();
  readonly #poisoned = new Map<number, number>();
  readonly #failing = new Set<string>();
  readonly #lateWork: LateWork;
  readonly #answerer: Answerer<State>;
  readonly #audit: AuditBook | undefined;
  readonly #leading: Promise<void>;
  #onLeading: () => void = () => {};
  #onNeverLeading: (error: unknown) => void = () => {};
  #done: Promise<void> = Promise.resolve();
  readonly #snapshots: SnapshotStore<State> | undefined;
  #fold: Fold<State>;
  #observed: ObservedLog<State>[] = [];
  #term: Term<State> | undefined;
  #lease: Lease | undefined;
  #role: HostStatus["role"] = "starting";
  #isCaughtUp = false;
  #isClosing = false;
  #failure: string | undefined;
  /** Why no lease can ever be had. */
  #leaseError: unknown;
  #signal: () => void = () => {};

  constructor(options: HostOptions<State>, snapshots: SnapshotStore<State> | undefined) {
    this.#options = options;
    this.#snapshots = snapshots;
    this.#counters = new Counters(options.domain);
    this.#alarms = new Alarms(options.logger, this.#counters);
    this.#lateWork = new LateWork(this.#counters, this.#alarms);
    this.#fold = new Fold(options.decider);
    options.grants?.listen(({ message }) =>
      this.#alarms.raise(`the grants stay as they were: ${message}`),
    );
    const { writer: bus, clock, domain, instance, audit } = options;
    if (audit !== undefined) {
      const [counters, alarms] = [this.#counters, this.#alarms];
      this.#audit = new AuditBook({ bus, clock, domain, instance, counters, alarms });
    }
    this.#leading = new Promise((resolve, fail) => {
      this.#onLeading = resolve;
      this.#onNeverLeading = fail;
    });
    this.#leading.catch(() => {
      // Whoever asked `untilLeading` handles it.
    });
    this.#answerer = new Answerer({
      options,
      counters: this.#counters,
      audit: this.#audit,
      view: () => this.#view(this.#term?.isOpen ? this.#term.last : this.#fold.position),
      isServing: () => this.#isCaughtUp && this.#failure === undefined,
      whenStored: ({ position, source }, answer, drop) => {
        if (source !== this.#fold) drop();
        else if (this.#term?.isOpen) this.#releases.add(position, answer, drop);
        else if (position <= (this.#term?.acked ?? position)) answer();
        else drop();
      },
      issueToken: (request) => this.#issueToken(request),
      leading: () => this.leading(),
      status: () => this.status(),
    });
  }

  start(): void {
    const { writer, domain, instance, leaseTtlMs } = this.#options;
    this.#answerer.open();
    this.#lease = writer.openLease({
      key: domain,
      holder: instance,
      ttlMs: leaseTtlMs,
      replicas: this.#options.replicas,
      onError: (error) => {
        this.#leaseError = error;
        this.#signal();
      },
      onAcquired: () => this.#signal(),
      onLost: () => {
        this.#term?.loseLease();
        this.#signal();
      },
    });
    this.#done = this.#run().catch(async (error: unknown) => {
      this.#role = "stopped";
      this.#failure = error instanceof Error ? error.message : String(error);
      this.#options.logger.fatal({ err: error }, "service stopped");
      this.#onNeverLeading(error);
      await this.#release();
      throw error;
    });
    this.#done.catch(() => {
      // `done` is for whoever runs the service; it may be looked at later.
    });
  }

  get done(): Promise<void> {
    return this.#done;
  }

  untilLeading(): Promise<void> {
    return this.#leading;
  }

  #view(position: number): View<State> {
    const now = this.#term?.isOpen ? this.#term.now() : this.#fold.at;
    return { state: this.#fold.state, position, now, source: this.#fold };
  }

  /** Undefined when it is another replica's to answer. What it rests on last is its own entry. */
  async #issueToken(
    request: Parameters<Term<State>["issueToken"]>[0],
  ): Promise<{ view: View<State>; result: JsonObject } | undefined> {
    if (this.#term?.isOpen !== true) return undefined;
    const source = this.#fold;
    const { position, result } = await this.#term.issueToken(request);
    return { view: { ...this.#view(position), source }, result };
  }

  leading(): { state: State; now: Instant; epoch: number } | undefined {
    const term = this.#term;
    if (this.#role !== "leader" || !term?.isOpen) return undefined;
    return { state: this.#fold.state, now: term.now(), epoch: this.#fold.epoch };
  }

  status(): HostStatus {
    const { domain, service, instance } = this.#options;
    const term = this.#term?.isOpen ? this.#term : undefined;
    return {
      domain,
      service,
      instance,
      role: this.#role,
      isReady: this.#isCaughtUp && this.#failure === undefined,
      position: this.#fold.position,
      acked: term?.acked ?? this.#fold.position,
      intake: Math.max(term?.judged ?? 0, this.#fold.intake),
      isSettled: term?.isSettled ?? false,
      epoch: this.#fold.epoch,
      seen: { ...this.#fold.seen },
      foreign: this.#fold.foreign,
      counters: this.#counters.all(),
      alarms: this.#alarms.all(),
      ...(term?.snapshot === undefined ? {} : { snapshot: term.snapshot }),
      ...(this.#failure === undefined ? {} : { failure: this.#failure }),
    };
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    await this.#term?.close(DRAIN_MS_MAX);
    this.#signal();
    await this.#done.catch(() => {
      // The failure is in the status and in `done`.
    });
    await this.#release();
  }

  async #release(): Promise<void> {
    this.#answerer.close();
    if (this.#options.writer.isConnected) await this.#audit?.close();
    for (const log of this.#observed.splice(0)) await log.close();
    await this.#lease?.close();
  }

  async #run(): Promise<void> {
    while (!this.#isClosing) {
      await this.#retrying(() => this.#follow());
      if (this.#isClosing) break;
      const isIntact = await this.#lead().catch((error: unknown) => {
        // A bus that falls silent at the take-over ends the attempt, not the service.
        if (toHarmovelaError(error).category !== "dependency") throw error;
        return false;
      });
      if (!isIntact) this.#startOver();
      // Not before: until the state is built anew, only the term knows how much of it is stored.
      this.#term = undefined;
    }
    this.#role = "stopped";
    this.#onNeverLeading(new HarmovelaError("internal_error", "the service was closed"));
  }

  /** Tries again while the bus does not answer; every other failure ends the service. */
  async #retrying(work: () => Promise<void>): Promise<void> {
    for (;;) {
      try {
        await work();
        return;
      } catch (error) {
        if (error instanceof FoldError || this.#isClosing) throw error;
        const known = toHarmovelaError(error);
        if (known.category !== "dependency") throw error;
        this.#options.logger.warn({ err: error }, "the bus does not answer");
        await new Promise<void>((resolve) => this.#options.clock.after(RETRY_MS, resolve));
      }
    }
  }

  #startOver(): void {
    this.#counters.add("refolds");
    this.#isCaughtUp = false;
    this.#fold = new Fold(this.#options.decider);
    for (const log of this.#observed.splice(0)) {
      log.close().catch((error: unknown) => this.#options.logger.warn({ err: error }, "closing"));
    }
  }

  /** Folds what is stored, until this replica holds the lease and has reached the end, or is closed. */
  async #follow(): Promise<void> {
    const { writer, clock, domain, observes } = this.#options;
    const stream = logStream(domain);
    if (this.#role === "leader") this.#role = "standby";
    if (this.#fold.position === 0) await this.#restore(stream);
    if (this.#observed.length === 0) {
      const onNews = (): void => this.#term?.wake();
      this.#observed = observes.map(
        (observed) =>
          new ObservedLog(writer, clock, observed, this.#fold.observedUpTo(observed), onNews),
      );
    }
    const reader = writer.openReader(stream, {
      after: this.#fold.position,
      onReady: () => this.#signal(),
    });
    try {
      for (;;) {
        const arrival = this.#arrival();
        await this.#foldArrived(reader);
        if (this.#isClosing) return;
        if (this.#leaseError !== undefined) throw this.#leaseError;
        if (reader.buffered > 0) continue;
        if (!this.#isCaughtUp || this.#lease?.isHeld) {
          const state = await this.#stateOf(stream);
          if (this.#fold.position >= state.lastSeq) {
            this.#isCaughtUp = true;
            if (this.#role === "starting") this.#role = "standby";
            if (this.#lease?.isHeld) return;
          }
        }
        if (reader.buffered === 0) await arrival;
      }
    } finally {
      await reader.close();
    }
  }

  /** Begins with the newest usable snapshot; refuses a log whose beginning is missing. */
  async #restore(stream: string): Promise<void> {
    const { decider, logger } = this.#options;
    const newest = await this.#snapshots?.newest();
    for (const reason of newest?.unusable ?? []) this.#alarms.raise(`unusable snapshot ${reason}`);
    if (newest?.found !== undefined) {
      const { title, record } = newest.found;
      logger.info({ position: title.position }, "going on from a snapshot");
      this.#fold = new Fold(decider, record);
    }
    const { leadership, position } = this.#fold;
    const state = await this.#stateOf(stream);
    assertSameStream("log", state, leadership, position);
    if (state.firstSeq > position + 1) {
      throw new HarmovelaError(
        "internal_error",
        `${stream} begins with ${state.firstSeq}, and no usable snapshot holds what was before it (${position})`,
      );
    }
  }

  /** Resolves at the next message, lease change or close; looks again by itself after a while. */
  #arrival(): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#options.clock.after(RETRY_MS, resolve);
      this.#signal = () => {
        cancel();
        resolve();
      };
    });
  }

  async #foldArrived(reader: Reader): Promise<void> {
    const messages = reader.take(FOLD_PER_TURN);
    for (const message of messages) {
      await this.#foldObserved(message);
      this.#guardFold(message, () => this.#fold.read(message));
    }
    if (messages.length > 0) {
      await new Promise<void>((resolve) => this.#options.clock.soon(resolve));
    }
  }

  /** Fold rule F3, for entries of ours only: a foreign one may name any position. */
  async #foldObserved(message: StoredMessage): Promise<void> {
    if (this.#observed.length === 0) return;
    const seen = this.#guardFold(message, () => this.#fold.look(message)?.frame.seen ?? {});
    for (const log of this.#observed) await log.foldUpTo(this.#fold, seen[log.domain] ?? 0);
  }

  /** Whatever goes wrong with a stored entry is about the log, never about the bus. */
  #guardFold<T>(message: StoredMessage, work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw new FoldError(logStream(this.#options.domain), message.seq, error);
    }
  }

  async #stateOf(stream: string): Promise<StreamState> {
    const state = await this.#options.writer.streamState(stream);
    if (state !== undefined) return state;
    throw new HarmovelaError("internal_error", `stream ${stream} is gone`, {
      category: "internal",
    });
  }

  /** Leads until something ends it. True when the fold still holds exactly what is stored. */
  async #lead(): Promise<boolean> {
    const options = this.#options;
    const { domain, instance, version, settings } = options;
    const log = await this.#stateOf(logStream(domain));
    const intake = await this.#stateOf(intakeStream(domain));
    const { leadership, position, intake: judged } = this.#fold;
    assertSameStream("log", log, leadership, position);
    assertSameStream("intake", intake, leadership, judged);
    // Whoever closes from here on finds the term.
    if (this.#isClosing) return true;
    const term = new Term({
      options,
      fold: this.#fold,
      observed: this.#observed,
      releases: this.#releases,
      counters: this.#counters,
      alarms: this.#alarms,
      backlog: intake.lastSeq,
      poisoned: this.#poisoned,
      failing: this.#failing,
      lateWork: this.#lateWork,
      snapshots: this.#snapshots,
      isLeaseHeld: () => this.#lease?.isHeld === true,
      incarnation: log.created,
    });
    const streams = { log: log.created, intake: intake.created };
    this.#term = term;
    if (await term.open({ instance, version, settings, streams })) {
      this.#role = "leader";
      this.#counters.add("leaderships");
      options.logger.info({ epoch: this.#fold.epoch, position: this.#fold.position }, "leading");
      this.#onLeading();
      // It may have been lost before the term could be told.
      if (this.#lease?.isHeld !== true) term.loseLease();
    }
    const end = await term.ended;
    this.#role = "standby";
    options.logger.info({ end }, "leadership ended");
    return end.isFoldIntact;
  }
}
