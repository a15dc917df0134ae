/**
 * The one fold (architecture, section 1): leader, standby, restart and simulation put entries into
 * it in log order and get the same state.
 *
 * F1 An entry is applied once and in order.
 * F2 An entry without the current epoch, or that does not follow the entry folded last, is foreign:
 *    skipped and counted, it changes nothing. So a stale append that a replicated stream stored, or one
 *    of ours whose predecessor was lost, means nothing to anybody.
 *    A hole in the log is no foreign entry: it stops the service.
 * F3 Observed logs are applied exactly up to the positions that the entry says (`Hv-Seen`).
 */
import { decodeFrame, type FramedMessage, type StoredMessage } from "@harmovela/bus";
import type { Decider, Domain, Envelope, Instant, LogEntry } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import { type Generation, OutcomeMemory } from "./outcomes.ts";

/** An entry that is stored cannot be folded: the service must stop and name it. */
export class FoldError extends Error {
  override name = "FoldError";
  readonly seq: number;
  constructor(stream: string, seq: number, cause: unknown) {
    super(`cannot fold ${stream}:${seq}: ${cause instanceof Error ? cause.message : cause}`, {
      cause,
    });
    this.seq = seq;
  }
}

/** How far an observed log is folded, and what is needed to go on with it. */
export interface ObservedCursor {
  readonly position: number;
  /** The leadership in force there, and the last entry that was written under it (F2). */
  readonly epoch: number;
  readonly prev: number;
  /** Everything of the observed domain's intake up to here is settled. */
  readonly intake: number;
}

export const UNSEEN: ObservedCursor = { position: 0, epoch: 0, prev: 0, intake: 0 };

/** Everything that a fold knows, for a snapshot. */
export interface FoldRecord {
  position: number;
  seq: number;
  at: Instant;
  epoch: number;
  intake: number;
  foreign: number;
  leadership: JsonObject | undefined;
  observed: Partial<Record<Domain, ObservedCursor>>;
  sequences: Map<string, number>;
  outcomes: Generation[];
  state: object;
}

export class Fold<State> {
  readonly state: State;
  readonly outcomes: OutcomeMemory;
  readonly #decider: Decider<State>;
  readonly #sequences: Map<string, number>;
  /** Last log position read, foreign entries included. */
  position = 0;
  /** Position of the last entry that was folded. */
  seq = 0;
  /** `Hv-At` of the last entry. */
  at: Instant = 0;
  epoch = 0;
  /** Everything of the intake up to here is settled. */
  intake = 0;
  #seen: Readonly<Partial<Record<Domain, number>>> = {};
  /** What the entry folded last says of the observed logs. */
  #noted: Readonly<Partial<Record<Domain, number>>> = {};
  #observed: Readonly<Partial<Record<Domain, ObservedCursor>>> = {};
  foreign = 0;
  /** Body of the newest `epoch` entry. */
  leadership: JsonObject | undefined;

  /** From the beginning, or from what `record` said of another fold, which is then this one's own. */
  constructor(decider: Decider<State>, record?: FoldRecord) {
    this.#decider = decider;
    this.#sequences = record?.sequences ?? new Map();
    this.outcomes = new OutcomeMemory(record?.outcomes);
    if (record === undefined) {
      this.state = decider.initial();
      return;
    }
    this.state = record.state as State;
    decider.snapshots?.adopt?.(this.state);
    this.position = record.position;
    this.seq = record.seq;
    this.at = record.at;
    this.epoch = record.epoch;
    this.intake = record.intake;
    this.foreign = record.foreign;
    this.leadership = record.leadership;
    for (const [domain, cursor] of Object.entries(record.observed)) {
      this.sawUpTo(domain as Domain, cursor);
    }
    this.#noted = this.#seen;
  }

  /** What a snapshot keeps: no copy, so it must be written down before the fold goes on. */
  get record(): FoldRecord {
    return {
      position: this.position,
      seq: this.seq,
      at: this.at,
      epoch: this.epoch,
      intake: this.intake,
      foreign: this.foreign,
      leadership: this.leadership,
      observed: this.#observed,
      sequences: this.#sequences,
      outcomes: this.outcomes.generations,
      state: this.state as object,
    };
  }

  /** Folded positions of the observed logs: a value that is replaced, never changed, so entries may hold it. */
  get seen(): Readonly<Partial<Record<Domain, number>>> {
    return this.#seen;
  }

  /** An observed log is folded up to here. */
  sawUpTo(domain: Domain, cursor: ObservedCursor): void {
    this.#observed = { ...this.#observed, [domain]: cursor };
    this.#seen = { ...this.#seen, [domain]: cursor.position };
  }

  /** How far the observed logs are folded as the log says it. */
  get noted(): Readonly<Partial<Record<Domain, number>>> {
    return this.#noted;
  }

  /**
   * The log says how far the observed logs are folded. Where it does not, another fold may apply what was
   * observed since after entries that this one has not seen yet (F3).
   */
  get isNoted(): boolean {
    return Object.entries(this.#seen).every(([domain, at]) => this.#noted[domain as Domain] === at);
  }

  observedUpTo(domain: Domain): ObservedCursor {
    return this.#observed[domain] ?? UNSEEN;
  }

  /** The `delivery.sequence` that the tenant's next event gets. */
  nextSequence(tenant: string): number {
    return (this.#sequences.get(tenant) ?? 0) + 1;
  }

  /** F2: whether the entry was written under the leadership in force, right after what is folded. */
  isOurs({ frame, kind }: FramedMessage): boolean {
    if (frame.prev !== this.seq) return false;
    return kind === "epoch"
      ? frame.epoch === frame.seq
      : this.epoch > 0 && frame.epoch === this.epoch;
  }

  /** The next stored message, when it is an entry of ours; undefined when it is foreign. Throws at a hole. */
  look(message: StoredMessage): FramedMessage | undefined {
    if (message.seq !== this.position + 1) {
      throw new Error(`the log goes from ${this.position} to ${message.seq}`);
    }
    const framed = decodeFrame(message);
    return framed !== undefined && this.isOurs(framed) ? framed : undefined;
  }

  /** Reads the next stored message: applies it, or counts it as foreign. */
  read(message: StoredMessage): void {
    const entry = this.look(message)?.entry();
    if (entry === undefined) {
      this.foreign += 1;
      this.position = message.seq;
    } else this.apply(entry);
  }

  /** F1. Throws what the decider's `evolve` throws. */
  apply(entry: LogEntry): void {
    if (entry.seq <= this.seq) throw new Error(`entry ${entry.seq} after ${this.seq}`);
    switch (entry.kind) {
      case "event":
      case "begun":
      case "obligation_failed":
      case "token_issued":
      case "observed":
        this.#decider.evolve(this.state, entry);
        break;
      case "epoch":
        this.epoch = entry.epoch;
        this.leadership = entry.body;
        break;
      case "position":
      case "refused":
      case "intake_gap":
      case "skipped":
        break;
    }
    if (entry.kind === "event") this.#sequences.set(entry.tenant, this.nextSequence(entry.tenant));
    this.#occupy(entry);
    this.seq = entry.seq;
    this.#noted = entry.seen;
    this.position = Math.max(this.position, entry.seq);
    this.at = Math.max(this.at, entry.at);
    if ("in" in entry.cause) this.intake = Math.max(this.intake, entry.cause.in);
  }

  /** F3: an entry of an observed log. */
  observe(domain: Domain, entry: LogEntry): void {
    if (entry.kind === "event" || entry.kind === "begun" || entry.kind === "obligation_failed") {
      this.#decider.observe?.(this.state, domain, entry);
    }
  }

  /** Ids that an accepted envelope, a plan or a final refusal has taken (architecture, section 4). */
  #occupy(entry: LogEntry): void {
    if (entry.kind === "begun") {
      if ("in" in entry.cause) this.#take(entry, entry.plan.envelope.id);
    } else if (entry.kind === "event") {
      const refused = refusedId(entry.envelope);
      // The refusal in which a plan ends takes the id over from its begun entry: it has a digest too.
      if (refused === undefined) this.#take(entry, entry.envelope.id);
      else if (entry.digest !== undefined) this.#take(entry, refused);
    }
  }

  #take(entry: LogEntry, id: string): void {
    this.outcomes.set(entry.tenant, id, entry.seq, entry.at);
  }
}

/** The refused envelope's id, when the envelope is a refusal by a service. */
export function refusedId(envelope: Envelope): string | undefined {
  if (!envelope.type.endsWith(".rejected") || !envelope.source.startsWith("service:")) {
    return undefined;
  }
  const { payload } = envelope;
  if (payload === null || typeof payload !== "object" || Array.isArray(payload)) return undefined;
  const id = payload.acknowledged_event_id;
  return typeof id === "string" ? id : undefined;
}
