/** Several logs read together: each entry is judged by what it had seen of the others (architecture, section 2). */
import type { Domain } from "@harmovela/envelope";
import { type Checker, type CheckOptions, createChecker } from "./checker.ts";
import { readSeen } from "./headers.ts";
import type { StoredRecord } from "./record.ts";
import type { Report } from "./report.ts";

type Records = AsyncIterable<StoredRecord> | Iterable<StoredRecord>;

export interface LogToCheck {
  domain: Domain;
  stream: string;
  /** It begins in the middle: what came before its first entry is taken as it is. */
  lenient?: boolean;
  /** The log from its beginning, each time anew. */
  read(): Records;
  /** The same, as far as another log may have seen it. Default `read`. */
  readSeen?(): Records;
  /** Told of each entry when the log is read for itself; what it returns is waited for. */
  onRecord?(record: StoredRecord): Promise<void> | void;
}

/** Whose log the rules of a domain look at. */
const OBSERVES: Readonly<Record<Domain, readonly Domain[]>> = {
  tasks: ["interruptions"],
  interruptions: ["tasks"],
  beliefs: [],
  provenance: ["tasks", "beliefs", "interruptions"],
};

/** Checks logs of one system, one after the other; those that are not there are not asked for. */
export async function checkLogs(
  logs: readonly LogToCheck[],
  options: Pick<CheckOptions, "settled" | "maxFindings"> = {},
): Promise<Map<Domain, Report>> {
  const reports = new Map<Domain, Report>();
  for (const log of logs) {
    const observed = logs.filter(({ domain }) => OBSERVES[log.domain].includes(domain));
    reports.set(log.domain, await checkOne(log, observed, options));
  }
  return reports;
}

async function checkOne(
  { domain, stream, lenient = false, read, onRecord }: LogToCheck,
  observed: readonly LogToCheck[],
  options: Pick<CheckOptions, "settled" | "maxFindings">,
): Promise<Report> {
  const checker = createChecker({ ...options, domain, stream, lenient, observed });
  const followers = observed.map((log) => new Follower(checker, log));
  try {
    for await (const record of read()) {
      const seen = new Map(readSeen(record.headers));
      for (const follower of followers) {
        await follower.readTo(seen.get(follower.domain) ?? 0);
      }
      checker.push(record);
      await onRecord?.(record);
    }
    // At rest each has seen everything.
    if (options.settled) for (const follower of followers) await follower.readTo();
    checker.end();
    return checker.report;
  } finally {
    for (const follower of followers) await follower.close();
  }
}

/** Reads an observed log as far as it was seen. */
class Follower {
  readonly domain: Domain;
  readonly #checker: Checker;
  readonly #records: AsyncIterator<StoredRecord> | Iterator<StoredRecord>;
  /** Read, and not seen yet. */
  #next: StoredRecord | undefined;
  #isAtEnd = false;

  constructor(checker: Checker, { domain, read, readSeen = read }: LogToCheck) {
    const records = readSeen();
    this.domain = domain;
    this.#checker = checker;
    this.#records =
      Symbol.asyncIterator in records
        ? records[Symbol.asyncIterator]()
        : records[Symbol.iterator]();
  }

  /** Up to a position, or to the end. */
  async readTo(position = Number.POSITIVE_INFINITY): Promise<void> {
    for (;;) {
      if (position === 0 || this.#isAtEnd) return;
      this.#next ??= await this.#read();
      if (this.#next === undefined || this.#next.seq > position) return;
      this.#checker.observe(this.domain, this.#next);
      this.#next = undefined;
    }
  }

  async #read(): Promise<StoredRecord | undefined> {
    const { value, done } = await this.#records.next();
    if (!done) return value;
    this.#isAtEnd = true;
    return undefined;
  }

  async close(): Promise<void> {
    await this.#records.return?.();
  }
}
