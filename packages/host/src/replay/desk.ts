/**
 * The read `replay`: pages of a log for who has no right to read streams (architecture, section 3).
 *
 * R1 What is asked for is reached by a filter that the desk builds: events of the asker's tenant in this
 *    domain, in log order. Nobody else's entries and no control entries lie in it.
 * R2 A page says how far it is whole (`next`). That nothing more was there is the word of the stream's
 *    leader, never the silence of a reader.
 * R3 What was trimmed before it could be read is told (`gap`), and the page goes on behind it: it is looked
 *    at after the page was read.
 * R4 The desk reads over a connection that answers nobody. Of what an agent says nothing gets there but
 *    escaped names in a filter and a number.
 */
import {
  type Bus,
  type Clock,
  entryFilter,
  HEADER,
  logStream,
  type StoredMessage,
  type StreamState,
} from "@harmovela/bus";
import type { Domain, Instant } from "@harmovela/envelope";
import { HarmovelaError, type JsonObject } from "@harmovela/failure";
import { type KeptReader, KeptReaders, type ReaderName } from "./kept-readers.ts";
import { ReplayPage } from "./page.ts";
import { parseReplayQuestion, type ReplayQuestion } from "./question.ts";
import { Turns } from "./turns.ts";

/** Pages put together at a time; each holds a megabyte or two. */
const PAGES_AT_ONCE = 4;
/** Questions under way: what waits is small. */
const REPLAYS_MAX = 1_000;
/** Questions of one agent under way: one for each of its observations, and some. */
export const REPLAYS_PER_AGENT_MAX = 16;
/** Entries that are asked for one by one before a reader is opened: most pages hold what was just logged. */
const SINGLE_MAX = 2;
/** And where there can be no reader. */
const SINGLE_ONLY_MAX = 16;
/** A reader that does not bring what is stored within this time is of no use. */
const ARRIVAL_MS = 1_000;
const DIGITS = /^(?:0|[1-9]\d{0,15})$/;

export interface ReplayDeskContext {
  /** Reads streams, and answers nobody. */
  bus: Bus;
  clock: Clock;
  domain: Domain;
}

export class ReplayDesk {
  readonly #bus: Bus;
  readonly #domain: Domain;
  readonly #stream: string;
  readonly #readers: KeptReaders;
  readonly #turns = new Turns({
    atOnce: PAGES_AT_ONCE,
    each: REPLAYS_PER_AGENT_MAX,
    all: REPLAYS_MAX,
    reserved: REPLAYS_PER_AGENT_MAX,
  });

  constructor({ bus, clock, domain }: ReplayDeskContext) {
    this.#bus = bus;
    this.#domain = domain;
    this.#stream = logStream(domain);
    this.#readers = new KeptReaders(bus, clock, this.#stream);
  }

  /** Readers that are kept for further pages. */
  get readers(): number {
    return this.#readers.size;
  }

  /** A page. Throws `invalid_query`, a retryable error when too much is asked at a time, and what the bus throws. */
  async answer(
    { tenant, source }: { tenant: string; source: string },
    params: JsonObject,
  ): Promise<JsonObject> {
    const question = parseReplayQuestion(params, this.#stream);
    const filter = entryFilter("log", { tenant, domain: this.#domain }, question.selection);
    const name = { tenant, agent: source, filter };
    return this.#turns.run({ tenant, source }, () => this.#page(name, question));
  }

  close(): void {
    this.#readers.close();
  }

  async #page(name: ReaderName, { from, max }: ReplayQuestion): Promise<JsonObject> {
    const log = await this.#extent();
    const after = await this.#startOf(from, log);
    if (after > log.last) {
      throw new HarmovelaError("invalid_query", "the log does not go so far", {
        details: { end: this.#cursor(log.last), first: this.#cursor(log.first) },
      });
    }
    const page = new ReplayPage(max);
    const start = Math.max(after, log.first - 1);
    const reached = max === 0 ? after : await this.#read(page, name, start, log.last);
    // Where every position is an entry of the page nothing can be missing.
    const isWhole = page.size === reached - after;
    const { first } = isWhole ? log : await this.#extent();
    const next = reached > after ? Math.max(reached, first - 1) : reached;
    const answer: JsonObject = {
      entries: page.entriesFrom(first),
      next: this.#cursor(next),
      end: this.#cursor(Math.max(log.last, next)),
      first: this.#cursor(first),
    };
    if (next > after && first > after + 1) answer.gap = { from: after + 1, to: first - 1 };
    return answer;
  }

  /** Fills the page; the result: up to where it is whole. */
  async #read(page: ReplayPage, name: ReaderName, start: number, end: number): Promise<number> {
    if (start >= end) return end;
    let at = start;
    let kept = this.#readers.find(name, start);
    if (kept === undefined) {
      const single = await this.#readSingle(page, name, at, end, SINGLE_MAX);
      if (!single.isMore) return single.at;
      at = single.at;
      kept = this.#readers.open(name, at);
    }
    if (kept === undefined)
      return (await this.#readSingle(page, name, at, end, SINGLE_ONLY_MAX)).at;
    try {
      at = await this.#readOn(page, kept, at, end);
    } catch (error) {
      this.#readers.drop(kept);
      throw error;
    }
    this.#readers.release(kept, at);
    return at;
  }

  /** One by one, at most `max`. `isMore`: there was room for more, and there may be more. */
  async #readSingle(
    page: ReplayPage,
    { filter }: ReaderName,
    start: number,
    end: number,
    max: number,
  ): Promise<{ at: number; isMore: boolean }> {
    let at = start;
    for (let count = 0; count < max; count++) {
      const found = await this.#bus.next(this.#stream, at, filter);
      if (found === undefined || found.seq > end) return { at: end, isMore: false };
      if (!page.add(found)) return { at, isMore: false };
      at = found.seq;
      if (page.isFull || at === end) return { at, isMore: false };
    }
    return { at, isMore: true };
  }

  async #readOn(page: ReplayPage, kept: KeptReader, start: number, end: number): Promise<number> {
    for (let at = start; ; ) {
      const message = kept.peek(at);
      if (message !== undefined) {
        if (message.seq > end) return end;
        if (!page.add(message)) return at;
        at = message.seq;
        if (page.isFull || at === end) return at;
        continue;
      }
      const found = await this.#bus.next(this.#stream, at, kept.name.filter);
      if (found === undefined || found.seq > end) return end;
      await kept.arrival(ARRIVAL_MS);
      if (kept.peek(at) !== undefined) continue;
      // It is stored, and the reader does not bring it: another one will.
      this.#readers.drop(kept);
      return page.add(found) ? found.seq : at;
    }
  }

  async #extent(): Promise<{ first: number; last: number }> {
    const state = await this.#bus.streamState(this.#stream);
    if (state === undefined)
      throw new HarmovelaError("internal_error", "there is no log", { category: "dependency" });
    return extentOf(state);
  }

  /** The position after which the page begins. */
  async #startOf(
    from: ReplayQuestion["from"],
    { first, last }: { first: number; last: number },
  ): Promise<number> {
    if (from === "start") return first - 1;
    if (from === "end") return last;
    return typeof from === "number" ? from : this.#before(from.at, first, last);
  }

  /** The last position that was logged before a time; times in a log never go back. */
  async #before(time: Instant, first: number, last: number): Promise<number> {
    let [low, high] = [first - 1, last];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      const found = await this.#bus.read(this.#stream, middle);
      // What is trimmed meanwhile is older than anything that is left.
      if (found === undefined || timeOf(found) < time) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  #cursor(seq: number): string {
    return `${this.#stream}:${seq}`;
  }
}

/** An empty log begins behind its end. */
function extentOf({ firstSeq, lastSeq, messages }: StreamState): { first: number; last: number } {
  return { first: messages === 0 ? lastSeq + 1 : firstSeq, last: lastSeq };
}

/** By the entry itself; what is no entry has the time at which it was stored. */
function timeOf(message: StoredMessage): Instant {
  const at = message.header(HEADER.at);
  return DIGITS.test(at) ? (Number(at) as Instant) : message.time;
}
