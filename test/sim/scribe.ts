/**
 * The logs that the attester observes, written entry by entry: that of beliefs by its real decider under
 * random talk, those of tasks and of interruptions by a hand that cites whatever any log holds.
 */
import {
  type Bus,
  controlSubject,
  encodeControlBody,
  encodeFrame,
  logSubject,
  NO_TENANT,
} from "@harmovela/bus";
import type { Domain, Envelope, EventEntry, LogEntry } from "@harmovela/envelope";
import type { SimRandom } from "@harmovela/testkit";
import { BeliefTraffic } from "./belief-traffic.ts";

export const SCRIBED = ["tasks", "beliefs", "interruptions"] as const;
type Scribed = (typeof SCRIBED)[number];

const SOURCES = ["agent:a", "agent:b", "agent:c"] as const;
const TYPES = { tasks: "task.output", interruptions: "interruption.acknowledged" } as const;

export interface ScribeParts {
  seed: number;
  random: SimRandom;
  /** Loses nothing: these logs are not under test. */
  bus: Bus;
  now(): number;
  /** Envelopes of beliefs, and events of the other two logs. */
  size: number;
}

export class Scribe {
  readonly tenant: string;
  /** Ids of events that stand in a log, the oldest first, with who sent each. */
  readonly said: { readonly id: string; readonly source: string }[] = [];
  /** Positions that each log has reached. */
  readonly last: Record<Scribed, number> = { tasks: 0, beliefs: 0, interruptions: 0 };
  readonly #parts: ScribeParts;
  readonly #beliefs: ReturnType<BeliefTraffic["records"]>;
  #left: number;
  #ids = 0;

  constructor(parts: ScribeParts) {
    this.#parts = parts;
    this.#left = parts.size;
    const traffic = new BeliefTraffic(parts.seed);
    traffic.run(parts.size);
    this.tenant = traffic.world.tenant;
    this.#beliefs = traffic.records();
  }

  get isDone(): boolean {
    return this.#left === 0 && this.last.beliefs === this.#beliefs.length;
  }

  /** An id that may stand in a log, now or later, or never. */
  anyId(): string {
    const { random } = this.#parts;
    const { length } = this.said;
    if (random.chance(0.15)) return `evt_${random.whole(1, this.#parts.size)}`;
    if (random.chance(0.05)) return `never_${random.whole(1, 3)}`;
    const back = random.pick([3, 10, length]);
    return this.said[Math.max(0, length - 1 - random.whole(0, back))]?.id ?? "evt_1";
  }

  sourceOf(id: string): string | undefined {
    return this.said.find((one) => one.id === id)?.source;
  }

  /** The next entry of one of the logs. */
  next(): void {
    const isBelief = this.#left === 0 || this.#parts.random.chance(0.6);
    if (isBelief && this.last.beliefs < this.#beliefs.length) this.#sayBelief();
    else if (this.#left > 0) this.#say(this.#parts.random.pick(["tasks", "interruptions"]));
  }

  #sayBelief(): void {
    const record = this.#beliefs[this.last.beliefs];
    if (record === undefined) return;
    this.last.beliefs += 1;
    this.#parts.bus.publish(record.subject, record.headers, Buffer.from(record.data));
    if (record.subject.split(".")[2] !== "log") return;
    const { id, source } = JSON.parse(String(record.data)) as Envelope;
    this.said.push({ id, source });
  }

  #say(domain: "tasks" | "interruptions"): void {
    const { random, now } = this.#parts;
    if (this.last[domain] === 0) this.#begin(domain);
    this.#left -= 1;
    this.#ids += 1;
    const source = random.pick(SOURCES);
    // Now and then under an id that another log uses as well.
    const id = random.chance(0.04) ? `evt_${random.whole(1, 20)}` : `${domain}_${this.#ids}`;
    const envelope: Envelope = {
      spec_version: "0.2",
      id,
      type: TYPES[domain],
      source,
      created_at: new Date(now()).toISOString(),
      task_id: "t",
      ...this.#grounds(),
      payload: { task_id: "t" },
    };
    const seq = this.last[domain] + 1;
    const { tenant } = this;
    const frame = { seq, tenant, cause: { in: seq }, at: now(), epoch: 1, prev: seq - 1 };
    const entry: EventEntry = { kind: "event", ...frame, seen: {}, envelope };
    const subject = logSubject({ tenant, domain, source, target: undefined, type: TYPES[domain] });
    this.#write(domain, entry, subject, Buffer.from(JSON.stringify(envelope)));
    this.said.push({ id, source });
  }

  #grounds(): Partial<Envelope> {
    const ids = Array.from({ length: this.#parts.random.whole(0, 2) }, () => this.anyId());
    const last = ids.at(-1);
    if (last === undefined) return {};
    const chain = ids.map((id) => ({ id, source: this.sourceOf(id) ?? "agent:a" }));
    return this.#parts.random.chance(0.3)
      ? { causation_id: last }
      : { evidence_chain: chain, causation_id: last };
  }

  #begin(domain: "tasks" | "interruptions"): void {
    const seq = 1;
    const frame = { seq, tenant: NO_TENANT, cause: { in: 0 }, at: this.#parts.now(), epoch: seq };
    const body = { epoch: seq, instance: "scribe" };
    const entry: LogEntry = { kind: "epoch", ...frame, prev: 0, seen: {}, body };
    this.#write(
      domain,
      entry,
      controlSubject(undefined, domain, "epoch"),
      encodeControlBody(entry),
    );
  }

  #write(domain: Scribed, entry: LogEntry, subject: string, data: Uint8Array): void {
    this.last[domain] += 1;
    this.#parts.bus.publish(subject, encodeFrame(entry), data);
  }
}

export function isScribed(domain: Domain): domain is Scribed {
  return SCRIBED.some((scribed) => scribed === domain);
}
