/** What the cases of the bus contract are written with. Every wait is for an event and has a deadline. */
import type {
  Appender,
  AppendFailure,
  Bus,
  Lease,
  Reader,
  ReaderOptions,
  StoredMessage,
  StreamSpec,
} from "@harmovela/bus";

export const DEADLINE_MS = 30_000;

/** One adapter with its server, seen from the cases. */
export interface BusUnderTest extends AsyncDisposable {
  connect(name: string): Promise<Bus>;
  /** Kills the server and starts it again on what it had stored. Resolves when the clients are back. */
  restart(): Promise<void>;
  /** Removes every message with that subject. */
  purge(stream: string, subject: string): Promise<void>;
  trim(stream: string, firstSeq: number): Promise<void>;
  /** Takes the lease away from whoever holds it. */
  displace(key: string): Promise<void>;
}

/** Fails, naming what was waited for, when it does not come in time. */
export async function within<T>(what: string, promise: Promise<T>, ms = DEADLINE_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${ms} ms: ${what}`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Something that changes, and can be waited for. */
export class Watched<T> {
  readonly value: T;
  readonly #waiting = new Set<() => void>();

  constructor(value: T) {
    this.value = value;
  }

  changed(): void {
    for (const fn of [...this.#waiting]) fn();
  }

  until(what: string, isTrue: (value: T) => boolean): Promise<void> {
    if (isTrue(this.value)) return Promise.resolve();
    const reached = new Promise<void>((resolve) => {
      const look = (): void => {
        if (!isTrue(this.value)) return;
        this.#waiting.delete(look);
        resolve();
      };
      this.#waiting.add(look);
    });
    return within(what, reached);
  }
}

let serial = 0;

/** A stream of its own for a case: entries under `<name>.log`, shown under `<name>.ev`, others under `<name>.ctl`. */
export function freshSpec(more: Partial<StreamSpec> = {}): StreamSpec {
  serial += 1;
  const name = `CASE_${process.pid}_${serial}`;
  return {
    name,
    subjects: [`${name}.log.>`, `${name}.ctl.>`],
    maxAgeMs: 0,
    maxBytes: -1,
    maxMessageBytes: 10_000,
    replicas: 1,
    republish: { src: `${name}.log.>`, dest: `${name}.ev.>` },
    ...more,
  };
}

export const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
export const text = (data: Uint8Array): string => new TextDecoder().decode(data);

/** A reader whose messages are taken as they come. */
export function collect(
  bus: Bus,
  stream: string,
  options: Omit<ReaderOptions, "onReady"> & { takeMax?: number },
): { reader: Reader; taken: Watched<StoredMessage[]> } {
  const taken = new Watched<StoredMessage[]>([]);
  let isDue = false;
  const takeSome = (): void => {
    isDue = false;
    taken.value.push(...reader.take(options.takeMax ?? 256));
    taken.changed();
    if (reader.buffered > 0) soon();
  };
  const soon = (): void => {
    if (isDue) return;
    isDue = true;
    setImmediate(takeSome);
  };
  const reader = bus.openReader(stream, { ...options, onReady: soon });
  return { reader, taken };
}

/** An appender with what it reports. */
export function appending(
  bus: Bus,
  options: { stream: string; last: number; maxInFlight?: number; ackTimeoutMs?: number },
): { appender: Appender; reported: Watched<{ acked: number; failures: AppendFailure[] }> } {
  const reported = new Watched<{ acked: number; failures: AppendFailure[] }>({
    acked: options.last,
    failures: [],
  });
  const appender = bus.openAppender({
    ...options,
    onAcked: (acked) => {
      reported.value.acked = acked;
      reported.changed();
    },
    onFailure: (failure) => {
      reported.value.failures.push(failure);
      reported.changed();
    },
  });
  return { appender, reported };
}

/** A lease with what it reports. */
export function leasing(
  bus: Bus,
  options: { key: string; holder: string; ttlMs: number },
): { lease: Lease; heard: Watched<string[]> } {
  const heard = new Watched<string[]>([]);
  const hear = (word: string) => (): void => {
    heard.value.push(word);
    heard.changed();
  };
  const lease = bus.openLease({
    ...options,
    onAcquired: hear("acquired"),
    onLost: hear("lost"),
    onError: (error) => hear(`${error.code}: ${error.message}`)(),
  });
  return { lease, heard };
}

export const sequences = (messages: readonly { seq: number }[]): number[] =>
  messages.map((message) => message.seq);

export const range = (from: number, to: number): number[] =>
  Array.from({ length: Math.max(0, to - from + 1) }, (_, index) => from + index);
