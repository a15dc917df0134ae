/**
 * Ordered readers that replays keep between two pages, each under the name of one agent and one filter.
 *
 * K1 Bounded: for each agent, altogether, and in the time that nobody asks. Who has too many loses the one
 *    that was used longest ago, of all together the tenant that has most; when all are in use there is none, and the page is read without.
 * K2 A reader is only a short way to what the log says: where it is gone, another one begins at the cursor
 *    that is asked for.
 */
import type { Bus, Clock, Reader, StoredMessage } from "@harmovela/bus";

/** Filters of one agent that are read on quickly. */
export const READERS_PER_AGENT_MAX = 8;
/** At most so many times 768 KiB are read ahead. */
const READERS_MAX = 64;
/** As long as the server keeps a consumer that nobody pulls from. */
const IDLE_MS = 30_000;
/** Entries read ahead: one page. */
const BUFFERED_MAX = 256;
const TAKEN_MAX = 64;
/** Reading over more than this costs more than a new reader. */
const SKIPPED_MAX = 4_096;

/** Whose it is, and what it reads. */
export interface ReaderName {
  tenant: string;
  agent: string;
  filter: string;
}

export class KeptReader {
  readonly name: ReaderName;
  readonly #reader: Reader;
  readonly #clock: Clock;
  #ahead: StoredMessage[] = [];
  #wake: () => void = () => {};
  /** Everything up to here was handed out or passed over. */
  position: number;
  isBusy = true;
  cancelIdle: () => void = () => {};

  constructor(bus: Bus, clock: Clock, stream: string, name: ReaderName, after: number) {
    this.name = name;
    this.position = after;
    this.#clock = clock;
    this.#reader = bus.openReader(stream, {
      after,
      filter: name.filter,
      maxBuffered: BUFFERED_MAX,
      onReady: () => this.#wake(),
    });
  }

  /** The first that has arrived above a position. */
  peek(after: number): StoredMessage | undefined {
    for (;;) {
      if (this.#ahead.length === 0) this.#ahead = this.#reader.take(TAKEN_MAX);
      const [first] = this.#ahead;
      if (first === undefined || first.seq > after) return first;
      this.#ahead.shift();
    }
  }

  /** Resolves when something may have arrived, at the latest after so long. */
  arrival(ms: number): Promise<void> {
    if (this.#ahead.length > 0 || this.#reader.buffered > 0) return Promise.resolve();
    return new Promise((resolve) => {
      const cancel = this.#clock.after(ms, resolve);
      this.#wake = () => {
        cancel();
        resolve();
      };
    });
  }

  close(): void {
    this.cancelIdle();
    this.#wake();
    void this.#reader.close();
  }
}

export class KeptReaders {
  readonly #bus: Bus;
  readonly #clock: Clock;
  readonly #stream: string;
  /** Used longest ago first. */
  readonly #readers = new Map<string, KeptReader>();

  constructor(bus: Bus, clock: Clock, stream: string) {
    this.#bus = bus;
    this.#clock = clock;
    this.#stream = stream;
  }

  get size(): number {
    return this.#readers.size;
  }

  /** One that goes on after this position, if it is kept and nobody uses it. */
  find(name: ReaderName, after: number): KeptReader | undefined {
    const kept = this.#readers.get(keyOf(name));
    if (kept === undefined || kept.isBusy) return undefined;
    const skipped = after - kept.position;
    if (skipped < 0 || skipped > SKIPPED_MAX) {
      this.drop(kept);
      return undefined;
    }
    kept.cancelIdle();
    kept.isBusy = true;
    return kept;
  }

  /** A new one; undefined when there can be no more now (K1). */
  open(name: ReaderName, after: number): KeptReader | undefined {
    const key = keyOf(name);
    const isRoom =
      !this.#readers.has(key) &&
      this.#makeRoomOfAll(name.tenant) &&
      this.#makeRoom(READERS_PER_AGENT_MAX, (other) => isSameAgent(other, name));
    if (!isRoom) return undefined;
    const opened = new KeptReader(this.#bus, this.#clock, this.#stream, name, after);
    this.#readers.set(key, opened);
    return opened;
  }

  /** Nobody uses it until the next page is asked for. */
  release(kept: KeptReader, position: number): void {
    const key = keyOf(kept.name);
    if (this.#readers.get(key) !== kept) return;
    this.#readers.delete(key);
    this.#readers.set(key, kept);
    kept.position = position;
    kept.isBusy = false;
    kept.cancelIdle = this.#clock.after(IDLE_MS, () => this.drop(kept));
  }

  drop(kept: KeptReader): void {
    const key = keyOf(kept.name);
    if (this.#readers.get(key) === kept) this.#readers.delete(key);
    kept.close();
  }

  close(): void {
    for (const kept of [...this.#readers.values()]) this.drop(kept);
  }

  /** Of equal tenants the one that asks gives way. */
  #makeRoomOfAll(tenant: string): boolean {
    if (this.#readers.size < READERS_MAX) return true;
    const counts = new Map<string, number>([[tenant, 0]]);
    for (const { name } of this.#readers.values())
      counts.set(name.tenant, (counts.get(name.tenant) ?? 0) + 1);
    const most = Math.max(...counts.values());
    const largest =
      counts.get(tenant) === most ? tenant : [...counts].find(([, count]) => count === most)?.[0];
    return this.#makeRoom(0, (other) => other.tenant === largest);
  }

  /** Whether one more of these may be opened; the one that was used longest ago gives way. */
  #makeRoom(max: number, isMeant: (name: ReaderName) => boolean): boolean {
    const meant = [...this.#readers.values()].filter(({ name }) => isMeant(name));
    if (meant.length < max) return true;
    const oldest = meant.find(({ isBusy }) => !isBusy);
    if (oldest) this.drop(oldest);
    return oldest !== undefined;
  }
}

function isSameAgent(one: ReaderName, other: ReaderName): boolean {
  return one.tenant === other.tenant && one.agent === other.agent;
}

function keyOf({ tenant, agent, filter }: ReaderName): string {
  return JSON.stringify([tenant, agent, filter]);
}
