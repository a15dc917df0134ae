/**
 * The log that a conforming service would have written for the lines of a file, and what the checker
 * finds when one more entry is put behind it. Nothing here comes from a service.
 *
 * L1 An entry stays only when it breaks no rule: the log keeps every rule on every prefix.
 * L2 No time passes: what is due later is not done, what is due at once is.
 */
import { controlSubject, HEADER, logStream, logSubject } from "@harmovela/bus";
import { type Checker, createChecker, type RuleId, type StoredRecord } from "@harmovela/check";
import { type Domain, deriveId, type Envelope } from "@harmovela/envelope";

const SERVICE = "service:conformance";

/** An entry that is tried. */
export type Draft =
  | { cause: string; envelope: Envelope; digest?: string }
  | { cause: string; begun: Envelope };

/** Tasks that nobody submitted may be interrupted, as the services of a run have it (C40). */
const SETTINGS = { externalTasks: true };

export class FixtureLog {
  readonly domain: Domain;
  readonly #tenant: string;
  readonly #at: number;
  /** The logs that this one observes, all of them. */
  #observed: readonly FixtureLog[] = [];
  /** For each entry how much of each it had seen. */
  readonly #seen: number[][] = [];
  readonly #records: StoredRecord[] = [];
  /** Events so far. */
  #events = 0;
  #intake = 0;

  /** `at`: when everything is said, ms since the epoch. */
  constructor(domain: Domain, tenant: string, at: number) {
    this.domain = domain;
    this.#tenant = tenant;
    this.#at = at;
    this.#control(undefined, "epoch", "owed:epoch", { epoch: 1, settings: SETTINGS });
  }

  /** From now on it has seen of these what they hold. */
  observe(...logs: readonly FixtureLog[]): void {
    this.#observed = [...this.#observed, ...logs];
  }

  /** The cause of the next line. */
  nextLine(): string {
    this.#intake += 1;
    return `in:${this.#intake}`;
  }

  /** Position of the newest entry. */
  get last(): number {
    return this.#records.length;
  }

  /** Whether a time has passed when everything is said. */
  isPast(instant: string | undefined): boolean {
    return instant !== undefined && Date.parse(instant) <= this.#at;
  }

  /** The rules that the entry breaks; when there are none it stays (L1). */
  add(draft: Draft): RuleId[] {
    const before = this.#events;
    this.#push(this.#recordOf(draft));
    const broken = this.#check(false).at(-1) ?? [];
    if (broken.length > 0) {
      this.#records.pop();
      this.#seen.pop();
      this.#events = before;
    }
    return broken;
  }

  /** Something that the service says by itself because of the event `of`; the rules that it breaks. */
  owe(
    of: string,
    index: string,
    event: Pick<Envelope, "type" | "payload"> & Partial<Envelope>,
  ): RuleId[] {
    const envelope: Envelope = {
      spec_version: "0.2",
      id: this.idOf(of, index),
      source: SERVICE,
      created_at: new Date(this.#at).toISOString(),
      ...event,
    };
    return this.add({ cause: owedBy(of), envelope });
  }

  /** The id of what is owed by an event. */
  idOf(of: string, index: string): string {
    return deriveId(this.#tenant, of, index, this.#at);
  }

  /** The id of a refused envelope is taken (spec 1.4). */
  refuse({ id, source, task_id }: Envelope, cause: string, code: string): void {
    const error = { code, message: "refused", retryable: false };
    const envelope: Envelope = {
      spec_version: "0.2",
      id: this.idOf(cause, "rejected"),
      type: "event.rejected",
      source: SERVICE,
      target: source,
      created_at: new Date(this.#at).toISOString(),
      ...(task_id === undefined ? {} : { task_id }),
      causation_id: id,
      payload: { error, acknowledged_event_id: id },
    };
    this.add({ cause, envelope, digest: "refused" });
  }

  /** Positions of requests that are still open `ms` later. */
  openRequests(ms: number): number[] {
    const body = { intake: this.#intake };
    const { checker } = this.#read(true);
    checker.push(this.#controlRecord(undefined, "position", `in:${this.#intake}`, body, ms));
    return checker.end().flatMap(({ rule, seq }) => (rule === "exchange-open" ? [seq] : []));
  }

  /** The rules that each entry breaks. */
  #check(settled: boolean): RuleId[][] {
    return this.#read(settled).broken;
  }

  #read(settled: boolean): { checker: Checker; broken: RuleId[][] } {
    const { domain } = this;
    const others = this.#observed;
    const observed = others.map((other) => ({
      domain: other.domain,
      stream: logStream(other.domain),
    }));
    const checker = createChecker({ domain, stream: logStream(domain), settled, observed });
    const read = others.map(() => 0);
    const broken = this.#records.map((record, index) => {
      others.forEach((other, at) => {
        const upTo = this.#seen[index]?.[at] ?? 0;
        for (const one of other.#records.slice(read[at], upTo)) checker.observe(other.domain, one);
        read[at] = Math.max(read[at] ?? 0, upTo);
      });
      return checker.push(record).map(({ rule }) => rule);
    });
    return { checker, broken };
  }

  #push(record: StoredRecord): void {
    this.#records.push(record);
    this.#seen.push(this.#observed.map(({ last }) => last));
  }

  #recordOf(draft: Draft): StoredRecord {
    const { cause } = draft;
    const tenant = this.#tenant;
    if ("begun" in draft) {
      const { begun: envelope } = draft;
      const plan = { id: envelope.id, kind: envelope.type, envelope };
      return this.#controlRecord(tenant, "begun", cause, { plan });
    }
    const { domain } = this;
    const { envelope, digest } = draft;
    this.#events += 1;
    const sequence = this.#events;
    const cursor = `${logStream(domain)}:${this.last + 1}`;
    const stamped = { ...envelope, delivery: { ...envelope.delivery, cursor, sequence } };
    const { source, target, type } = envelope;
    const to = { tenant, domain, source, type, ...(target === undefined ? {} : { target }) };
    return this.#record(logSubject(to), cause, JSON.stringify(stamped), { digest });
  }

  #control(tenant: string | undefined, kind: string, cause: string, body: object): void {
    this.#push(this.#controlRecord(tenant, kind, cause, body));
  }

  #controlRecord(
    tenant: string | undefined,
    kind: string,
    cause: string,
    body: object,
    laterMs = 0,
  ): StoredRecord {
    const subject = controlSubject(tenant, this.domain, kind);
    return this.#record(subject, cause, JSON.stringify(body), { laterMs });
  }

  #record(
    subject: string,
    cause: string,
    data: string,
    { digest, laterMs = 0 }: { digest?: string | undefined; laterMs?: number } = {},
  ): StoredRecord {
    const seq = this.last + 1;
    const time = this.#at + laterMs;
    const headers = {
      [HEADER.epoch]: "1",
      [HEADER.prev]: String(this.last),
      [HEADER.at]: String(time),
      [HEADER.cause]: cause,
      [HEADER.seen]: this.#observed.map(({ domain, last }) => `${domain}:${last}`).join(","),
      ...(digest === undefined ? {} : { [HEADER.digest]: digest }),
    };
    return { seq, time, subject, headers, data };
  }
}

/** The cause of what is owed by an event. */
export function owedBy(id: string): string {
  return `owed:${encodeURIComponent(id)}`;
}
