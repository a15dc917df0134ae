/**
 * How an observer gets at the logs: by reading streams, or, where it has no right to, by asking the services
 * for pages (architecture, section 3).
 */
import { type Bus, type EntrySelection, entryFilter, logStream, type Reader } from "@harmovela/bus";
import type { Domain } from "@harmovela/envelope";

/** Where a log begins and ends. */
export interface LogExtent {
  firstSeq: number;
  /** 0 when nothing was ever stored. */
  lastSeq: number;
}

/** As a reader of the bus; `take` may throw what can never be mended by asking again. */
export interface LogReader extends Reader {
  /** Positions up to here were gone before what was taken last could be read. */
  readonly trimmedTo?: number;
  /** The connection is back: what was sent meanwhile may be lost. */
  onReconnected?(): void;
}

export interface LogReaderOptions {
  /** Exclusive start. */
  after: number;
  selection: EntrySelection;
  maxBuffered: number;
  onReady: () => void;
}

export interface Logs {
  /** Undefined when the log does not exist yet. */
  extent(domain: Domain): Promise<LogExtent | undefined>;
  open(domain: Domain, options: LogReaderOptions): LogReader;
}

/** By reading streams. */
export class StreamLogs implements Logs {
  readonly #bus: Bus;
  readonly #tenant: string;

  constructor(bus: Bus, tenant: string) {
    this.#bus = bus;
    this.#tenant = tenant;
  }

  extent(domain: Domain): Promise<LogExtent | undefined> {
    return this.#bus.streamState(logStream(domain));
  }

  open(domain: Domain, { after, selection, maxBuffered, onReady }: LogReaderOptions): LogReader {
    const filter = entryFilter("log", { tenant: this.#tenant, domain }, selection);
    return this.#bus.openReader(logStream(domain), { after, filter, maxBuffered, onReady });
  }
}
