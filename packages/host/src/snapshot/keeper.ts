/**
 * When a leader takes snapshots, and what it trims (architecture, section 6).
 *
 * K1 A snapshot is written down between two entries, and stored when all that is in it is stored in the log.
 * K2 One at a time; one that fails costs nothing but itself.
 * K3 While it is written down nothing is judged (leases are renewed, acknowledgements and reads go on): it
 *    may take a fiftieth of the time at most.
 * K4 The log says how far the observed logs are in it, or another fold could not go on from it.
 */
import { type Bus, type Clock, logStream } from "@harmovela/bus";
import type { Instant, SnapshotSpec } from "@harmovela/envelope";
import { HarmovelaError } from "@harmovela/failure";
import type { Logger } from "pino";
import type { Alarms } from "../alarms.ts";
import type { Counters } from "../counters.ts";
import type { Fold } from "../fold.ts";
import type { HostOptions } from "../options.ts";
import type { Releases } from "../releases.ts";
import { type Cut, cut } from "./format.ts";
import type { SnapshotStore } from "./store.ts";

/** So many entries are folded again within seconds. */
const ENTRIES = 50_000;
/** Where less is logged: at the latest after this long, once something was. */
const EVERY_MS = 3_600_000;
/** K3. */
const PAUSE_SHARE = 50;
/** After one that failed. */
const RETRY_MS = 60_000;

/** What a leader says of its newest snapshot. */
export interface KeptSnapshot {
  position: number;
  bytes: number;
  /** How long the service stood still while it was written down. */
  pauseMs: number;
}

export interface SnapshotKeeperContext<State> {
  options: HostOptions<State>;
  spec: SnapshotSpec<State>;
  store: SnapshotStore<State>;
  fold: Fold<State>;
  releases: Releases;
  counters: Counters;
  alarms: Alarms;
  now(): Instant;
  /** Writes an entry, which says how far the observed logs are folded. False when it cannot now. */
  note(): boolean;
}

export class SnapshotKeeper<State> {
  readonly #context: SnapshotKeeperContext<State>;
  readonly #clock: Clock;
  readonly #logger: Logger;
  /** The newest position that a snapshot was taken of, or that this leadership began with. */
  #position: number;
  /** Entries folded by then, those of observed logs with them. */
  #folded: number;
  #takenAt: number;
  #notBefore = 0;
  #underWay: Promise<void> | undefined;
  #latest: KeptSnapshot | undefined;
  #isClosed = false;

  constructor(context: SnapshotKeeperContext<State>) {
    this.#context = context;
    this.#clock = context.options.clock;
    this.#logger = context.options.logger;
    this.#position = context.fold.position;
    this.#folded = foldedBy(context.fold);
    this.#takenAt = this.#clock.monotonic();
  }

  /** The newest one of this leadership that counts. */
  get latest(): KeptSnapshot | undefined {
    return this.#latest;
  }

  /** Takes one when it is time. Called now and then, between entries; until it resolves nothing may be folded. */
  async keep(): Promise<void> {
    const now = this.#clock.monotonic();
    const entries = this.#context.fold.position - this.#position;
    const { snapshotEntries = ENTRIES } = this.#context.options;
    // Where only others write: they keep what this service has not seen, and a start reads it all.
    const isMuch = foldedBy(this.#context.fold) - this.#folded >= snapshotEntries;
    const isDue = isMuch || (entries > 0 && now - this.#takenAt >= EVERY_MS);
    if (isDue && now >= this.#notBefore && this.#underWay === undefined) await this.#take();
  }

  /** At a clean stop: a last one, so that the next start is quick. Bounded by whoever awaits it. */
  async close(): Promise<void> {
    await this.#underWay;
    if (!this.#isClosed && this.#context.fold.position > this.#position) await this.#take();
    await this.#underWay;
  }

  /** The leadership is over: nothing more is written, stored or trimmed. */
  abandon(): void {
    this.#isClosed = true;
  }

  async #take(): Promise<void> {
    const { options, fold, spec, alarms } = this.#context;
    const begun = this.#clock.monotonic();
    let taken: Cut | undefined;
    // K4.
    if (!fold.isNoted && !this.#context.note()) return;
    try {
      taken = await cut(options.domain, fold, spec, () => this.#breathe());
    } catch (error) {
      alarms.raise(`no snapshot: ${error instanceof Error ? error.message : error}`);
      this.#notBefore = begun + EVERY_MS;
      return;
    }
    if (taken === undefined) return;
    const now = this.#clock.monotonic();
    const pauseMs = Math.round(now - begun);
    this.#position = fold.position;
    this.#folded = foldedBy(fold);
    this.#takenAt = now;
    this.#notBefore = now + PAUSE_SHARE * pauseMs;
    this.#underWay = this.#store(taken, pauseMs).finally(() => {
      this.#underWay = undefined;
    });
  }

  /** Lets everything else that waits have a turn. False when the leadership has ended meanwhile. */
  async #breathe(): Promise<boolean> {
    await new Promise<void>((resolve) => this.#clock.soon(resolve));
    return !this.#isClosed;
  }

  async #store(taken: Cut, pauseMs: number): Promise<void> {
    const { store, counters, alarms } = this.#context;
    if (!(await this.#isStored(taken.title.position))) return;
    try {
      const latest = await store.put(taken);
      if (this.#isClosed) return;
      this.#latest = { position: latest.title.position, bytes: latest.bytes, pauseMs };
      counters.add("snapshots");
      const { position } = latest.title;
      this.#logger.info({ position, bytes: latest.bytes, pauseMs }, "snapshot stored");
      await store.prune();
      await this.#trim();
    } catch (error) {
      // A bus that is silent is a warning like elsewhere; anything else is for an operator.
      const reason = error instanceof Error ? error.message : String(error);
      if (error instanceof HarmovelaError && error.category === "dependency") {
        this.#logger.warn({ err: error }, "no snapshot now");
      } else alarms.raise(`no snapshot: ${reason}`);
      this.#notBefore = this.#clock.monotonic() + RETRY_MS;
    }
  }

  /** K1. False when the leadership ended before. */
  #isStored(position: number): Promise<boolean> {
    return new Promise((resolve) => {
      this.#context.releases.add(
        position,
        () => resolve(true),
        () => resolve(false),
      );
    });
  }

  async #trim(): Promise<void> {
    const { options, store, now } = this.#context;
    const { writer, domain, retentionMs } = options;
    const stream = logStream(domain);
    const needless = await store.needless();
    const state = await writer.streamState(stream);
    if (state === undefined || needless <= state.firstSeq) return;
    const range = { from: state.firstSeq, to: Math.min(needless, state.lastSeq) };
    const first = await firstStoredAfter(writer, stream, range, now() - retentionMs);
    if (first <= state.firstSeq || this.#isClosed) return;
    await writer.trim(stream, first);
    this.#logger.info({ from: state.firstSeq, to: first - 1 }, "log trimmed");
  }
}

/** Positions of the own log and of the observed ones; no more than a measure of how much there was to fold. */
function foldedBy<State>({ position, seen }: Fold<State>): number {
  return Object.values(seen).reduce((sum, at) => sum + at, position);
}

/** The first position in the range that was stored after `instant`, else its end. */
async function firstStoredAfter(
  bus: Bus,
  stream: string,
  { from, to }: { from: number; to: number },
  instant: Instant,
): Promise<number> {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const message = await bus.read(stream, middle);
    if (message === undefined || message.time <= instant) low = middle + 1;
    else high = middle;
  }
  return low;
}
