/**
 * The record of what was judged: a function of the log, written by its leader (architecture, section 3).
 *
 * A1 What is stored in the log is recorded once: who writes knows how far its tenant is recorded, and the
 *    server refuses whoever knows it no longer. So neither a kill nor two leaders double or lose anything.
 * A2 Judging never waits for it. What it cannot take now it reads from the log later.
 * A3 A message holds records of one tenant, in the order of the log.
 */
import {
  type Bus,
  type Clock,
  decodeFrame,
  type FramedMessage,
  logStream,
  type StoredMessage,
} from "@harmovela/bus";
import type { Domain, LogEntry } from "@harmovela/envelope";
import { toHarmovelaError } from "@harmovela/failure";
import type { Alarms } from "../alarms.ts";
import type { Counters } from "../counters.ts";
import { recordsOf } from "./record.ts";
import { AuditShelf, type Link, type Pending, partsOf } from "./shelf.ts";

/** Records that wait are written when there are so many, … */
const BATCH_RECORDS = 2_000;
/** … or so long after the first of them. */
const BATCH_MS = 1_000;
const PENDING_MAX = 20_000;
/** Tenants that are written at once. */
const WRITERS_MAX = 16;
const READ_MAX = 1_000;
const RETRY_MS = 500;
/** So often in a row it is looked at once what another one has written. */
const CONFLICTS_MAX = 10;
/** A bus that is silent for so many attempts is no passing trouble. */
const SILENT_ATTEMPTS_MAX = 20;
/** A log that is not there up to where it is acknowledged is asked again after so long. */
const STALL_MS = 10_000;

export interface AuditTrailOptions {
  bus: Bus;
  clock: Clock;
  domain: Domain;
  /** Of the log: its creation time. */
  incarnation: string;
  /** The log is stored up to here; what is stored later comes by `stored`. */
  position: number;
  alarms: Alarms;
  counters: Counters;
  /** Records that it holds; beyond them the log keeps them. Default 20,000. */
  pendingMax?: number;
}

export class AuditTrail {
  readonly #options: AuditTrailOptions;
  readonly #shelf: AuditShelf;
  #pending = new Map<string, Pending[]>();
  #count = 0;
  /** Position of the newest entry that is stored. */
  #stored: number;
  /** The log has to be read: nothing is taken as it comes. */
  #isBehind = true;
  /** What was taken last, and what was recorded last; undefined before the first entry. */
  #chain: Link | undefined;
  #recorded: Link | undefined;
  #isClosed = false;
  #isHurried = false;
  #wake: () => void = () => {};
  readonly #done: Promise<void>;

  constructor(options: AuditTrailOptions) {
    this.#options = options;
    this.#shelf = new AuditShelf(options);
    this.#stored = options.position;
    this.#done = this.#run();
  }

  /** An entry of ours is stored; called for each in order. */
  stored(entry: LogEntry): void {
    this.#stored = entry.seq;
    if (this.#isBehind) return;
    if (this.#count >= (this.#options.pendingMax ?? PENDING_MAX)) {
      this.#isBehind = true;
      this.#take();
      return;
    }
    const isFirst = this.#count === 0;
    this.#add(entry);
    if (isFirst || this.#count === BATCH_RECORDS) this.#wake();
  }

  /** Writes what is there within a time, and ends. */
  async close(withinMs: number): Promise<void> {
    this.#isHurried = true;
    this.#wake();
    const late = new Promise<void>((resolve) => this.#options.clock.after(withinMs, resolve));
    await Promise.race([this.#done, late]);
    this.abandon();
  }

  /** Writes nothing more: whoever leads next goes on from what is stored. */
  abandon(): void {
    this.#isClosed = true;
    this.#wake();
  }

  async #run(): Promise<void> {
    await this.#insist(() => this.#begin());
    while (!this.#isClosed) {
      if (this.#isBehind) await this.#insist(() => this.#catchUp());
      else if (this.#count > 0) {
        await this.#gather();
        // What was given up meanwhile is read from the log, from what was recorded last.
        if (!this.#isBehind) await this.#write(this.#take(), this.#chain);
      } else if (this.#isHurried) return;
      else await this.#signal();
    }
  }

  /** Until it works or nobody wants it any more. */
  async #insist(work: () => Promise<void>): Promise<void> {
    const { clock, alarms } = this.#options;
    for (let attempts = 1; !this.#isClosed; attempts += 1) {
      try {
        await work();
        return;
      } catch (error) {
        const { category, code, retry, message } = toHarmovelaError(error);
        // Another leader has written; the next attempt looks what.
        if (code === "append_conflict" && attempts < CONFLICTS_MAX) continue;
        const isPassing =
          category !== "dependency" ? code === "append_conflict" : retry !== "never";
        if (!isPassing || attempts === SILENT_ATTEMPTS_MAX) {
          alarms.raise(`the audit cannot be written: ${message}`);
        }
        await new Promise<void>((resolve) => clock.after(RETRY_MS, resolve));
      }
    }
  }

  async #begin(): Promise<void> {
    this.#recorded = await this.#shelf.begin();
  }

  /** Reads what is stored and not recorded, until it has what `stored` goes on from. */
  async #catchUp(): Promise<void> {
    const { bus, domain } = this.#options;
    this.#chain = this.#recorded;
    let position = this.#recorded?.seq ?? 0;
    let arrived: () => void = () => {};
    const onReady = (): void => arrived();
    const reader = bus.openReader(logStream(domain), { after: position, onReady });
    try {
      while (!this.#isClosed && position < this.#stored) {
        // What is stored and not acknowledged may still be another's.
        const limit = this.#stored;
        const messages = reader.take(READ_MAX);
        const known = messages.filter(({ seq }) => seq <= limit);
        for (const message of known) {
          this.#read(message, position);
          position = message.seq;
        }
        if (known.length > 0) await this.#write(this.#take(), this.#chain);
        if (known.length < messages.length) position = limit;
        // The others are taken: to have them again the reading begins anew.
        if (known.length < messages.length && position < this.#stored) return;
        if (messages.length === 0) {
          await this.#within(STALL_MS, (resolve) => {
            arrived = resolve;
            if (reader.buffered > 0) resolve();
          });
        }
      }
      this.#isBehind = false;
    } finally {
      await reader.close();
    }
  }

  /** An entry as every fold takes it (fold rule F2): of the leadership in force, right after the one before. */
  #read(message: StoredMessage, after: number): void {
    if (message.seq !== after + 1 && this.#chain !== undefined) {
      const missing = `${after + 1} to ${message.seq - 1}`;
      this.#options.alarms.raise(
        `the audit lacks the entries ${missing}: they are gone from the log`,
      );
      this.#chain = undefined;
    }
    const framed = decodeFrame(message);
    if (framed === undefined || !this.#follows(framed)) return;
    const entry = framed.entry();
    if (entry !== undefined) this.#add(entry);
  }

  #follows({ frame, kind }: FramedMessage): boolean {
    // Where what was before is gone, the log begins here.
    if (this.#chain === undefined) return true;
    if (frame.prev !== this.#chain.seq) return false;
    return kind === "epoch" ? frame.epoch === frame.seq : frame.epoch === this.#chain.epoch;
  }

  #add(entry: LogEntry): void {
    this.#chain = { seq: entry.seq, epoch: entry.epoch };
    for (const { tenant, record } of recordsOf(entry)) {
      const pending = this.#pending.get(tenant) ?? [];
      if (pending.length === 0) this.#pending.set(tenant, pending);
      pending.push({ position: entry.seq, text: JSON.stringify(record) });
      this.#count += 1;
    }
  }

  #take(): Map<string, Pending[]> {
    const taken = this.#pending;
    this.#pending = new Map();
    this.#count = 0;
    return taken;
  }

  /** A1. Everything up to `to` is in `pending` or was recorded before. */
  async #write(pending: Map<string, Pending[]>, to: Link | undefined): Promise<void> {
    const tenants = [...pending];
    const next = async (): Promise<void> => {
      for (let one = tenants.pop(); one !== undefined; one = tenants.pop()) {
        const [tenant, records] = one;
        for (const part of partsOf(records)) {
          await this.#insist(() => this.#shelf.write(tenant, part));
        }
      }
    };
    await Promise.all(Array.from({ length: Math.min(WRITERS_MAX, tenants.length) }, next));
    if (to === undefined) return;
    await this.#insist(() => this.#shelf.mark(to));
    if (!this.#isClosed) this.#recorded = to;
  }

  /** A batch grows for a while, unless it is large or somebody is in a hurry. */
  async #gather(): Promise<void> {
    const { clock } = this.#options;
    const until = clock.monotonic() + BATCH_MS;
    while (this.#count < BATCH_RECORDS && !this.#isHurried && !this.#isClosed) {
      const left = until - clock.monotonic();
      if (left <= 0) return;
      await this.#within(left, (resolve) => {
        this.#wake = resolve;
      });
    }
  }

  #signal(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  #within(ms: number, arm: (resolve: () => void) => void): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#options.clock.after(ms, resolve);
      arm(() => {
        cancel();
        resolve();
      });
    });
  }
}
