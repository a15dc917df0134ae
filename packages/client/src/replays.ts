/**
 * Logs by pages that the services answer: for a connection that may not read streams.
 *
 * P1 What is handed out comes from pages alone, each of which goes on where the one before ended: in order,
 *    nothing lost, nothing twice, whoever answers.
 * P2 What is heard as it is logged only says that there is something to ask for. That is not promised to
 *    arrive, so the service is also asked after a reconnect, and every few seconds.
 */
import { type Clock, entryFilter, type StoredMessage, type Subscription } from "@harmovela/bus";
import type { Domain } from "@harmovela/envelope";
import { HarmovelaError, type JsonObject, toHarmovelaError } from "@harmovela/failure";
import { formatCursor } from "./cursor.ts";
import type { LogExtent, LogReader, LogReaderOptions, Logs } from "./logs.ts";
import { askService, type ReadContext } from "./reads.ts";
import { PAGE_ENTRIES_MAX, type ReplayPage, toReplayPage } from "./replay-page.ts";

/** Within the time in which a page that waits for its turn is answered; then another replica may be there. */
const TIMEOUT_MS = 3_000;
/** So late is at most what was not heard. */
const LOOK_MS = 5_000;
const RETRY_MS_MIN = 100;
const RETRY_MS_MAX = 2_000;

export class ReplayLogs implements Logs {
  readonly #context: ReadContext;

  constructor(context: Omit<ReadContext, "noServiceMs">) {
    // Who opens a log tries again itself.
    this.#context = { ...context, noServiceMs: 0 };
  }

  /** Throws `timeout` or `no_service`, which name the domain, when none of its services answers. */
  async extent(domain: Domain): Promise<LogExtent> {
    try {
      const { end, first } = await this.#ask(domain, { from: "end", max: 0 }, 0);
      return { firstSeq: first, lastSeq: end };
    } catch (caught) {
      const { code } = toHarmovelaError(caught);
      if (code !== "timeout" && code !== "no_service") throw caught;
      const message = `no service answers for the domain ${domain}`;
      throw new HarmovelaError(code, message, { details: { domain }, cause: caught });
    }
  }

  open(domain: Domain, options: LogReaderOptions): LogReader {
    const { bus, clock, tenant } = this.#context;
    const { selection } = options;
    const wanted: JsonObject = { filter: { ...selection } };
    return new ReplayReader(
      {
        clock,
        ask: (after, max) =>
          this.#ask(domain, { ...wanted, from: formatCursor({ domain, seq: after }), max }, after),
        listen: (onNews) => bus.subscribe(entryFilter("ev", { tenant, domain }, selection), onNews),
      },
      options,
    );
  }

  async #ask(domain: Domain, params: JsonObject, after: number): Promise<ReplayPage> {
    const options = { timeoutMs: TIMEOUT_MS };
    const { result } = await askService(this.#context, domain, "replay", params, options);
    return toReplayPage(result, domain, after);
  }
}

interface ReplaySource {
  clock: Clock;
  ask(after: number, max: number): Promise<ReplayPage>;
  listen(onNews: () => void): Subscription;
}

class ReplayReader implements LogReader {
  readonly #source: ReplaySource;
  readonly #maxBuffered: number;
  readonly #onReady: () => void;
  readonly #news: Subscription;
  #pages: { messages: StoredMessage[]; trimmedTo: number }[] = [];
  #buffered = 0;
  #position: number;
  /** The next page begins after this. */
  #asked: number;
  #trimmedTo = 0;
  #isAsking = false;
  /** Something was heard since the page under way was asked for. */
  #hasNews = true;
  #retryMs = RETRY_MS_MIN;
  #cancelLook: () => void = () => {};
  #failure: HarmovelaError | undefined;
  #isClosed = false;

  constructor(source: ReplaySource, { after, maxBuffered, onReady }: LogReaderOptions) {
    this.#source = source;
    this.#maxBuffered = maxBuffered;
    this.#onReady = onReady;
    this.#position = after;
    this.#asked = after;
    this.#news = source.listen(() => this.#look());
    this.#ask();
  }

  get position(): number {
    return this.#position;
  }
  get buffered(): number {
    return this.#buffered;
  }
  get trimmedTo(): number {
    return this.#trimmedTo;
  }

  /** Of one page at a time, so that it is known what was gone before which entry. */
  take(max: number): StoredMessage[] {
    if (this.#failure) throw this.#failure;
    const [page] = this.#pages;
    if (page === undefined) return [];
    const taken = page.messages.splice(0, max);
    if (page.messages.length === 0) this.#pages.shift();
    this.#trimmedTo = Math.max(this.#trimmedTo, page.trimmedTo);
    this.#buffered -= taken.length;
    this.#position = taken.at(-1)?.seq ?? this.#position;
    this.#ask();
    return taken;
  }

  onReconnected(): void {
    this.#look();
  }

  close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelLook();
    this.#news.close();
    this.#pages = [];
    this.#buffered = 0;
    return Promise.resolve();
  }

  #look(): void {
    this.#hasNews = true;
    this.#ask();
  }

  /** For the next page, when there may be one and at least half of the read-ahead is free. */
  #ask(): void {
    const free = Math.min(PAGE_ENTRIES_MAX, this.#maxBuffered - this.#buffered);
    const isRoom = free > 0 && free * 2 >= Math.min(PAGE_ENTRIES_MAX, this.#maxBuffered);
    if (this.#isClosed || this.#failure || this.#isAsking || !this.#hasNews || !isRoom) return;
    this.#isAsking = true;
    this.#hasNews = false;
    this.#cancelLook();
    this.#source.ask(this.#asked, free).then(
      (page) => this.#onPage(page),
      (error: unknown) => this.#onError(toHarmovelaError(error)),
    );
  }

  #onPage({ messages, next, end, trimmedTo }: ReplayPage): void {
    this.#isAsking = false;
    if (this.#isClosed) return;
    this.#retryMs = RETRY_MS_MIN;
    this.#asked = next;
    if (next < end) this.#hasNews = true;
    this.#cancelLook = this.#source.clock.after(LOOK_MS, () => this.#look());
    if (messages.length > 0 || trimmedTo > 0) {
      this.#pages.push({ messages, trimmedTo });
      this.#buffered += messages.length;
      this.#onReady();
    }
    this.#ask();
  }

  #onError(error: HarmovelaError): void {
    this.#isAsking = false;
    if (this.#isClosed) return;
    if (error.retry === "never") {
      this.#failure = toFailure(error);
      this.#onReady();
      return;
    }
    this.#cancelLook = this.#source.clock.after(this.#retryMs, () => this.#look());
    this.#retryMs = Math.min(RETRY_MS_MAX, this.#retryMs * 2);
  }
}

/** Where a log ends before what was read of it, it is another log. */
function toFailure(error: HarmovelaError): HarmovelaError {
  const { details } = error;
  if (error.code !== "invalid_query" || details?.end === undefined) return error;
  const message = "the log is shorter than what was read of it";
  return new HarmovelaError("stream_mismatch", message, { details, cause: error });
}
