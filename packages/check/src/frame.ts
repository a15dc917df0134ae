import { HEADER } from "@harmovela/bus";
import type { FindingSink } from "./finding.ts";
import { type EntryCause, readCause, readInteger, readSeen, readVerdict } from "./headers.ts";
import type { StoredRecord } from "./record.ts";

/** What an entry says about itself, as far as it can be read. */
export interface Frame {
  seq: number;
  subject: string;
  at: number;
  cause: EntryCause | undefined;
  digest: string | undefined;
  /** What the verdict says besides, where it can be read. */
  verdict?: unknown;
  /** How far each observed log had been folded, by domain. */
  seen: ReadonlyMap<string, number>;
}

const NOTHING_SEEN: ReadonlyMap<string, number> = new Map();

/** The rules of the stream and of the headers: order, leadership, time, observed positions. */
export class FrameRules {
  readonly #sink: FindingSink;
  readonly #lenient: boolean;
  readonly #seen = new Map<string, number>();
  #lastSeq: number | undefined;
  #lastAt = 0;
  #epoch: number | undefined;
  /** Position of the last entry that was not foreign. */
  #lastOwn: number | undefined;
  /** Records are missing right before this one. */
  #isBroken = false;
  /** Highest intake position that has an entry or is passed by a `position`. */
  #judged = -1;
  epochs = 0;

  /** Time of the newest entry. */
  get lastAt(): number {
    return this.#lastAt;
  }

  constructor(sink: FindingSink, lenient: boolean) {
    this.#sink = sink;
    this.#lenient = lenient;
  }

  /** Every stored message, foreign ones included, holds its place. */
  place(seq: number): void {
    const expected = this.#lastSeq === undefined ? 1 : this.#lastSeq + 1;
    const isStart = this.#lastSeq === undefined && this.#lenient;
    if (seq !== expected && !isStart) {
      this.#sink.add("record-order", `sequence ${seq} where ${expected} was expected`);
      this.#isBroken = true;
    }
    if (seq > (this.#lastSeq ?? 0)) this.#lastSeq = seq;
  }

  /** Whether the entry was written under the current leadership; an `epoch` entry begins one. */
  isOurs(record: StoredRecord, isEpoch: boolean): boolean {
    const epoch = readInteger(record.headers[HEADER.epoch]);
    if (epoch === undefined || !this.#follows(record)) return false;
    if (isEpoch) {
      if (epoch !== record.seq) {
        this.#sink.add("epoch-position", `epoch entry at ${record.seq} carries epoch ${epoch}`);
        return false;
      }
      this.#epoch = epoch;
      this.epochs += 1;
      return true;
    }
    // A log read from its middle shows its epoch only in its entries, until the next one begins.
    if (this.#lenient && this.epochs === 0 && epoch < record.seq) {
      this.#epoch = Math.max(epoch, this.#epoch ?? 0);
    }
    return epoch === this.#epoch;
  }

  /** Whether the entry names the one before it; a log read from its middle begins anywhere. */
  #follows(record: StoredRecord): boolean {
    const prev = readInteger(record.headers[HEADER.prev]);
    if (prev === undefined) return false;
    // After a hole nobody can say what came before: the rest is still worth reading.
    if (this.#isBroken) return true;
    if (this.#lastOwn === undefined) return this.#lenient || prev === 0;
    return prev === this.#lastOwn;
  }

  read(record: StoredRecord): Frame {
    this.#lastOwn = record.seq;
    this.#isBroken = false;
    const cause = readCause(record.headers);
    if (cause === undefined) {
      this.#sink.add("cause-form", `cause ${show(record.headers[HEADER.cause])}`);
    }
    const at = readInteger(record.headers[HEADER.at]);
    if (at === undefined) this.#sink.add("at-form", `time ${show(record.headers[HEADER.at])}`);
    else if (at < this.#lastAt) {
      this.#sink.add("at-decreases", `time ${at} after ${this.#lastAt}`);
    } else this.#lastAt = at;
    const seen = this.#readSeen(record);
    return {
      seq: record.seq,
      subject: record.subject,
      at: at ?? this.#lastAt,
      cause,
      digest: record.headers[HEADER.digest],
      verdict: readVerdict(record.headers),
      seen,
    };
  }

  #readSeen(record: StoredRecord): ReadonlyMap<string, number> {
    const seen = readSeen(record.headers);
    if (seen === undefined) {
      this.#sink.add("seen-form", `observed positions ${show(record.headers[HEADER.seen])}`);
      return NOTHING_SEEN;
    }
    for (const [domain, position] of seen) {
      const before = this.#seen.get(domain) ?? 0;
      if (position < before) {
        this.#sink.add("seen-decreases", `${domain} seen to ${position} after ${before}`);
      } else this.#seen.set(domain, position);
    }
    return seen.length === 0 ? NOTHING_SEEN : new Map(seen);
  }

  /** An event or a begun plan that an intake message made. */
  judgedEntry(cause: EntryCause | undefined): void {
    if (cause === undefined || !("in" in cause)) return;
    if (cause.in < this.#judged) {
      this.#sink.add("intake-order", `intake ${cause.in} after ${this.#judged}`);
    } else if (cause.in === this.#judged) {
      this.#sink.add("intake-twice", `intake ${cause.in} has been judged before`);
    } else this.#judged = cause.in;
  }

  /** A `position` entry: the intake is judged up to here. */
  judgedUpTo(position: number): void {
    if (position < this.#judged) {
      this.#sink.add("intake-order", `position ${position} after ${this.#judged}`);
    } else this.#judged = position;
  }
}

/** A header's value for a message, bounded. */
function show(text: string | undefined): string {
  return text === undefined ? "is missing" : JSON.stringify(text.slice(0, 80));
}
