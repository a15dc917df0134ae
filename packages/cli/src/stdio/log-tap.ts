/**
 * The logs of all domains as one sequence of events: each entry once, each log in its order, and no
 * entry before one that it had seen (`Hv-Seen`). Control and foreign entries are passed over.
 */
import { type Bus, decodeEntry, logStream, type Reader, type StoredMessage } from "@harmovela/bus";
import type { Domain, EventEntry } from "@harmovela/envelope";
import { HarmovelaError } from "@harmovela/failure";

export interface TappedEntry {
  domain: Domain;
  entry: EventEntry;
  message: StoredMessage;
}

export interface LogTapOptions {
  tenant: string;
  /** Exclusive start in each log that is read. */
  from: ReadonlyMap<Domain, number>;
  onEntry: (entry: TappedEntry) => void;
  /** False stops reading until `resume`. */
  hasRoom: () => boolean;
}

const TAKEN_MAX = 256;

interface Tapped {
  reader: Reader;
  queue: StoredMessage[];
  position: number;
}

export class LogTap {
  readonly #options: LogTapOptions;
  readonly #logs = new Map<Domain, Tapped>();
  readonly #waiting = new Set<() => void>();
  #isDraining = false;

  constructor(bus: Bus, options: LogTapOptions) {
    this.#options = options;
    for (const [domain, after] of options.from) {
      const reader = bus.openReader(logStream(domain), { after, onReady: () => this.resume() });
      this.#logs.set(domain, { reader, queue: [], position: after });
    }
  }

  /** Everything up to here has been handed on. */
  position(domain: Domain): number {
    return this.#logs.get(domain)?.position ?? 0;
  }

  /** Resolves when everything up to these positions has been handed on; throws after `ms` without progress. */
  async reach(wanted: ReadonlyMap<Domain, number>, ms: number): Promise<void> {
    const isThere = (): boolean =>
      [...wanted].every(([domain, seq]) => !this.#logs.has(domain) || this.position(domain) >= seq);
    while (!isThere()) await this.#progress(ms);
  }

  /** Hands on what has arrived. */
  resume(): void {
    if (this.#isDraining) return;
    this.#isDraining = true;
    try {
      let isMoved = false;
      while (this.#options.hasRoom() && this.#next()) isMoved = true;
      if (isMoved) for (const wake of [...this.#waiting]) wake();
    } finally {
      this.#isDraining = false;
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#logs.values()].map(({ reader }) => reader.close()));
  }

  #progress(ms: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const wake = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(wake);
        resolve();
      };
      const giveUp = (): void => {
        // Whoever takes the entries may take his time.
        if (!this.#options.hasRoom()) timer = setTimeout(giveUp, ms);
        else {
          this.#waiting.delete(wake);
          reject(new HarmovelaError("timeout", "the logs cannot be read to their end"));
        }
      };
      let timer = setTimeout(giveUp, ms);
      this.#waiting.add(wake);
      this.resume();
    });
  }

  /** Takes the oldest entry whose predecessors have all been handed on. */
  #next(): boolean {
    let best: Tapped | undefined;
    let bestDomain: Domain | undefined;
    for (const [domain, log] of this.#logs) {
      if (log.queue.length === 0) log.queue = log.reader.take(TAKEN_MAX);
      const head = log.queue[0];
      if (head === undefined || !this.#isFree(head)) continue;
      if (best?.queue[0] === undefined || head.time < best.queue[0].time) {
        best = log;
        bestDomain = domain;
      }
    }
    const message = best?.queue.shift();
    if (best === undefined || bestDomain === undefined || message === undefined) return false;
    best.position = message.seq;
    const entry = readable(message);
    if (entry?.kind === "event" && entry.tenant === this.#options.tenant) {
      this.#options.onEntry({ domain: bestDomain, entry, message });
    }
    return true;
  }

  #isFree(message: StoredMessage): boolean {
    const seen = message.header("Hv-Seen");
    if (seen === "") return true;
    return seen.split(",").every((pair) => {
      const colon = pair.indexOf(":");
      const log = this.#logs.get(pair.slice(0, colon) as Domain);
      return log === undefined || log.position >= Number(pair.slice(colon + 1));
    });
  }
}

function readable(message: StoredMessage): ReturnType<typeof decodeEntry> {
  try {
    return decodeEntry(message);
  } catch {
    // A foreign entry whose body is no JSON: nobody folds it, and nobody is shown it.
    return undefined;
  }
}
