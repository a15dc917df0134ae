/**
 * Where the record of one domain's log is put: messages of the audit stream that say how far they go.
 *
 * H1 A message names the newest one of its subject, and the server refuses it when there is a newer one:
 *    whoever writes has seen how far its tenant is recorded.
 * H2 What is recorded of another incarnation of the log says nothing about this one.
 */
import {
  AUDIT_STREAM,
  auditSubject,
  type Bus,
  logStream,
  type StoredMessage,
} from "@harmovela/bus";
import type { Domain } from "@harmovela/envelope";
import type { Counters } from "../counters.ts";

/** One message with records, characters, of three bytes at most: the stream takes 640 KiB. */
const MESSAGE_CHARS_MAX = 200 * 1024;
/** Tenants whose last message is remembered; of the others it is asked for. */
const TENANTS_MAX = 10_000;

/** The record of one entry as it is written, and the entry's position. */
export interface Pending {
  position: number;
  text: string;
}

/** An entry of ours, and the leadership in force there. */
export interface Link {
  seq: number;
  epoch: number;
}

interface Written {
  /** Of the newest message of its subject, 0 when there is none. */
  seq: number;
  /** It is recorded up to here. */
  to: number;
}

export interface AuditShelfOptions {
  bus: Bus;
  domain: Domain;
  /** Of the log: its creation time. */
  incarnation: string;
  counters: Counters;
}

export class AuditShelf {
  readonly #options: AuditShelfOptions;
  readonly #written = new Map<string, Written>();
  #marker: Written = { seq: 0, to: 0 };

  constructor(options: AuditShelfOptions) {
    this.#options = options;
  }

  /** How far the domain is recorded at least; undefined when nothing says so. */
  async begin(): Promise<Link | undefined> {
    const { bus } = this.#options;
    const stored = await bus.lastOn(AUDIT_STREAM, this.#markerSubject);
    if (stored === undefined) return undefined;
    this.#marker = { seq: stored.seq, to: this.#endOf(stored) };
    const { epoch } = bodyOf(stored);
    return this.#marker.to === 0 ? undefined : { seq: this.#marker.to, epoch };
  }

  /** Writes what is not recorded yet of these (H1). Throws `append_conflict` when somebody else has written meanwhile. */
  async write(tenant: string, records: readonly Pending[]): Promise<void> {
    const { domain, counters, incarnation } = this.#options;
    const subject = auditSubject(tenant, domain, "judged");
    const known = this.#written.get(tenant) ?? (await this.#lookUp(subject));
    const fresh = records.filter(({ position }) => position > known.to);
    const [first, last] = [fresh[0], fresh.at(-1)];
    if (first === undefined || last === undefined) return;
    const to = last.position;
    const head = { tenant, log: logStream(domain), incarnation, from: first.position, to };
    const texts = fresh.map(({ text }) => text).join(",");
    const data = `${JSON.stringify(head).slice(0, -1)},"records":[${texts}]}`;
    // Not known until the server has answered; then it is looked up.
    this.#written.delete(tenant);
    const seq = await this.#append(subject, data, known.seq);
    if (this.#written.size >= TENANTS_MAX) this.#written.clear();
    this.#written.set(tenant, { seq, to });
    counters.add("audited", fresh.length);
  }

  /** Everything up to here is recorded, so that the next leader need not begin at the beginning. */
  async mark({ seq: to, epoch }: Link): Promise<void> {
    if (to <= this.#marker.to) return;
    const { incarnation } = this.#options;
    try {
      const data = JSON.stringify({ to, epoch, incarnation });
      const seq = await this.#append(this.#markerSubject, data, this.#marker.seq);
      this.#marker = { seq, to };
    } catch (error) {
      this.#marker = await this.#lookUp(this.#markerSubject);
      if (this.#marker.to < to) throw error;
    }
  }

  get #markerSubject(): string {
    return auditSubject(undefined, this.#options.domain, "upto");
  }

  async #lookUp(subject: string): Promise<Written> {
    const stored = await this.#options.bus.lastOn(AUDIT_STREAM, subject);
    return stored === undefined ? { seq: 0, to: 0 } : { seq: stored.seq, to: this.#endOf(stored) };
  }

  /** H2. */
  #endOf(stored: StoredMessage): number {
    const { to, incarnation } = bodyOf(stored);
    return incarnation === this.#options.incarnation ? to : 0;
  }

  async #append(subject: string, data: string, after: number): Promise<number> {
    const headers = { "Nats-Expected-Last-Subject-Sequence": String(after) };
    const { seq } = await this.#options.bus.store(subject, headers, Buffer.from(data));
    return seq;
  }
}

/** Messages of a bounded size; records of one entry stand in one. */
export function* partsOf(records: readonly Pending[]): Generator<readonly Pending[]> {
  let from = 0;
  let chars = 0;
  for (const [at, { position, text }] of records.entries()) {
    const isOfAnother = position !== records[at - 1]?.position;
    if (at > from && isOfAnother && chars + text.length > MESSAGE_CHARS_MAX) {
      yield records.slice(from, at);
      from = at;
      chars = 0;
    }
    chars += text.length;
  }
  if (from < records.length) yield records.slice(from);
}

function bodyOf({ data }: StoredMessage): { to: number; epoch: number; incarnation: string } {
  return JSON.parse(new TextDecoder().decode(data));
}
