/** What an observer iterates over: history from a start on, then live, until closed. */
import type { Clock } from "@harmovela/bus";
import type { Domain } from "@harmovela/envelope";
import { HarmovelaError } from "@harmovela/failure";
import { formatCursor, toPosition } from "./cursor.ts";
import type { Filter } from "./filter.ts";
import { Matcher } from "./filter.ts";
import { type Gap, Lane, type LaneStart, type Observed } from "./lane.ts";
import type { Logs } from "./logs.ts";

/**
 * Where an observation starts. "start": with the oldest entry there is. "now": with what is stored from
 * now on. Cursors: after these (exclusive, spec 11, C18), domains that none names from now on.
 * "last": after what the last observation of this agent with the same filter has handed out, else now.
 */
export type From = "start" | "now" | "last" | string | readonly string[];

export interface ObserveOptions extends Filter {
  /** Default "last". */
  from?: From;
  /** Read-ahead bound for each domain, entries. Default 256. */
  maxBuffered?: number;
  /** Called when entries were trimmed before they could be read; the next entry names them too. */
  onGap?: (gap: Gap) => void;
}

export interface ObservationContext {
  logs: Logs;
  clock: Clock;
  /** Where the last observation of that filter stood. */
  lastOf(key: string): readonly string[] | undefined;
  onClosed(observation: Observation): void;
}

const BUFFERED_DEFAULT = 256;
/** Entries taken from one domain before the next has its turn. */
const CHUNK = 64;

/**
 * Entries of one domain come in log order; between domains there is no order. A domain whose log does
 * not exist yet is silent until it does. Breaking out of the loop closes it; so does the agent.
 */
export class Observation implements AsyncIterableIterator<Observed, undefined> {
  /** Resolves when the start is fixed: nothing stored after that is missed. */
  readonly ready: Promise<void>;
  readonly key: string;
  readonly #context: ObservationContext;
  readonly #lanes: readonly Lane[];
  readonly #entries: AsyncGenerator<Observed, undefined>;
  #isOpen = false;
  #isClosed = false;
  #isAwake = false;
  #wake: (() => void) | undefined;

  /** Throws `invalid_argument` for a filter or a start that cannot be meant. */
  constructor(context: ObservationContext, options: ObserveOptions) {
    const matcher = new Matcher(options);
    const starts = startsOf(options.from ?? "last", matcher, context.lastOf(matcher.key));
    this.key = matcher.key;
    this.#context = context;
    const { logs, clock } = context;
    const { maxBuffered = BUFFERED_DEFAULT, onGap = () => {} } = options;
    const onReady = () => this.#rouse();
    const lane = { logs, clock, matcher, maxBuffered, onReady, onGap };
    this.#lanes = matcher.domains.map((domain) => new Lane(lane, domain));
    this.ready = Promise.all(
      this.#lanes.map((opening) => opening.open(starts(opening.domain))),
    ).then(() => {
      this.#isOpen = true;
    });
    // Whoever iterates gets the error there; nobody has to wait for `ready`.
    this.ready.catch(() => undefined);
    this.#entries = this.#read();
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** One cursor for each domain: where to go on after what was handed out. None before `ready`. */
  get cursors(): string[] {
    if (!this.#isOpen) return [];
    return this.#lanes.map(({ domain, position }) => formatCursor({ domain, seq: position }));
  }

  next(): Promise<IteratorResult<Observed, undefined>> {
    return this.#entries.next();
  }

  async return(): Promise<IteratorResult<Observed, undefined>> {
    await this.close();
    return { done: true, value: undefined };
  }

  /** Ends the iteration, also of one that waits. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#rouse();
    this.#context.onClosed(this);
    await Promise.all(this.#lanes.map((lane) => lane.close()));
  }

  onReconnected(): void {
    for (const lane of this.#lanes) lane.onReconnected();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async *#read(): AsyncGenerator<Observed, undefined> {
    try {
      await this.ready;
      while (!this.#isClosed) {
        let isIdle = true;
        for (const lane of this.#lanes) {
          const messages = await lane.take(CHUNK);
          if (!messages) continue;
          isIdle = false;
          for (const message of messages) {
            if (this.#isClosed) return undefined;
            const observed = lane.read(message);
            if (observed) yield observed;
          }
        }
        if (isIdle) await this.#sleep();
      }
    } catch (error) {
      // Closing while the start is being looked up ends the iteration like closing later does.
      if (!this.#isClosed) throw error;
    } finally {
      await this.close();
    }
    return undefined;
  }

  #rouse(): void {
    this.#isAwake = true;
    this.#wake?.();
  }

  async #sleep(): Promise<void> {
    if (!this.#isAwake && !this.#isClosed)
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    this.#wake = undefined;
    this.#isAwake = false;
  }
}

function startsOf(
  from: From,
  matcher: Matcher,
  last: readonly string[] | undefined,
): (domain: Domain) => LaneStart {
  if (from === "now") return () => "now";
  if (from === "start") return () => 0;
  const cursors = from === "last" ? (last ?? []) : typeof from === "string" ? [from] : from;
  const positions = new Map<Domain, number>();
  for (const { domain, seq } of cursors.map(toPosition)) {
    if (!matcher.domains.includes(domain))
      throw new HarmovelaError("invalid_argument", "a cursor is of a domain that is not observed");
    if (positions.has(domain))
      throw new HarmovelaError("invalid_argument", "two cursors are of one domain");
    positions.set(domain, seq);
  }
  return (domain) => positions.get(domain) ?? "now";
}
