/**
 * The record of what leaves no entry in the log: questions, answered or refused. Written at most a second
 * later by the process that answered; what it cannot write it keeps within a bound and then counts as lost.
 * A batch whose acknowledgement was lost may be stored twice, under one `batch`.
 */
import { auditSubject, type Bus, type Clock } from "@harmovela/bus";
import type { Domain } from "@harmovela/envelope";
import { toHarmovelaError } from "@harmovela/failure";
import type { Alarms } from "../alarms.ts";
import type { Counters } from "../counters.ts";
import type { AuditRecord } from "./record.ts";

const FLUSH_MS = 1_000;
/** Records that wait to be written, of all tenants. */
const WAITING_MAX = 10_000;
/** Records in one message: with the longest names they fit into what the stream takes. */
const MESSAGE_RECORDS_MAX = 200;

export interface AuditBookOptions {
  bus: Bus;
  clock: Clock;
  domain: Domain;
  instance: string;
  alarms: Alarms;
  counters: Counters;
}

/** Written again as it is until it is known to be stored. */
interface Batch {
  tenant: string;
  batch: string;
  records: readonly AuditRecord[];
}

export class AuditBook {
  readonly #options: AuditBookOptions;
  readonly #waiting = new Map<string, AuditRecord[]>();
  #underWay: Batch | undefined;
  #count = 0;
  #batches = 0;
  #lost = 0;
  #isClosed = false;
  #cancel: (() => void) | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(options: AuditBookOptions) {
    this.#options = options;
  }

  add(tenant: string, record: AuditRecord): void {
    if (this.#isClosed) return;
    if (this.#count >= WAITING_MAX) {
      this.lose(1);
      if (!this.#takesPlaceOfAnother(tenant)) return;
    }
    const waiting = this.#waiting.get(tenant) ?? [];
    if (waiting.length === 0) this.#waiting.set(tenant, waiting);
    waiting.push(record);
    this.#count += 1;
    this.#schedule();
  }

  /** The tenant with most records gives one up; false when that is the asking one, or all are under way. */
  #takesPlaceOfAnother(tenant: string): boolean {
    let largest = this.#waiting.get(tenant) ?? [];
    for (const waiting of this.#waiting.values())
      if (waiting.length > largest.length) largest = waiting;
    if (largest === this.#waiting.get(tenant) || largest.length === 0) return false;
    largest.pop();
    this.#count -= 1;
    return true;
  }

  /** So many will never be written. */
  lose(count: number): void {
    this.#lost += count;
    this.#options.counters.add("audit_lost", count);
    this.#schedule();
  }

  /** Writes what is there, once. */
  async close(): Promise<void> {
    this.#cancel?.();
    await this.#writing;
    await this.#flush();
    this.#isClosed = true;
  }

  #schedule(): void {
    this.#cancel ??= this.#options.clock.after(FLUSH_MS, () => {
      this.#writing = this.#flush().finally(() => {
        this.#cancel = undefined;
        if (this.#count + this.#lost > 0 && !this.#isClosed) this.#schedule();
      });
    });
  }

  async #flush(): Promise<void> {
    const { alarms } = this.#options;
    if (this.#lost > 0) {
      alarms.raise("the audit has lost records of questions", { lost: this.#lost });
      this.#lost = 0;
    }
    for (;;) {
      this.#underWay ??= this.#cut();
      if (this.#underWay === undefined) return;
      try {
        await this.#write(this.#underWay);
      } catch (error) {
        const { category, retry, message } = toHarmovelaError(error);
        if (category === "dependency" && retry !== "never") return;
        // Nor will it be taken next time; what comes after it must not wait for it.
        alarms.raise(`the audit cannot be written: ${message}`);
        this.lose(this.#underWay.records.length);
      }
      this.#count -= this.#underWay.records.length;
      this.#underWay = undefined;
    }
  }

  #cut(): Batch | undefined {
    for (const [tenant, waiting] of this.#waiting) {
      const records = waiting.splice(0, MESSAGE_RECORDS_MAX);
      // Tenants take turns.
      this.#waiting.delete(tenant);
      if (waiting.length > 0) this.#waiting.set(tenant, waiting);
      this.#batches += 1;
      return { tenant, batch: `${this.#options.instance}:${this.#batches}`, records };
    }
    return undefined;
  }

  async #write(batch: Batch): Promise<void> {
    const { bus, domain, counters } = this.#options;
    const subject = auditSubject(batch.tenant, domain, "asked");
    await bus.store(subject, {}, Buffer.from(JSON.stringify(batch)));
    counters.add("audited", batch.records.length);
  }
}
