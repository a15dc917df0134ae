/**
 * The leader's pen: stamps, folds and appends, with many appends in flight, and finds out what is
 * stored when one of them fails (architecture, section 6).
 *
 * W1 Folded before it is published; published in the order it was folded.
 * W2 What is not acknowledged is remembered byte for byte until it is.
 * W3 After a failure nothing is assumed: the log is read from the last acknowledged position.
 */
import {
  type Appender,
  type AppendFailure,
  type Bus,
  type Clock,
  controlSubject,
  encodeControlBody,
  encodeFrame,
  HEADER,
  type Headers,
  logSubject,
  NO_TENANT,
  type StoredMessage,
} from "@harmovela/bus";
import {
  type Cause,
  type Domain,
  type EntryFrame,
  type Envelope,
  type EventEntry,
  type HostEntry,
  type Instant,
  type LogEntry,
  type ObservedEntry,
  type Plan,
  stampDelivery,
  type TokenIssue,
} from "@harmovela/envelope";
import { HarmovelaError, type JsonObject } from "@harmovela/failure";
import type { Fold } from "./fold.ts";
import { obligationKey } from "./obligation-key.ts";

/** Room for appends of unknown fate; what recovery has to compare one by one. */
export const IN_FLIGHT_MAX = 1_024;
/** The stored form of one entry; an accepted envelope of 512 KiB with its stamps fits. */
const ENTRY_BYTES_MAX = 600_000;
/** What a plan's last event may gain by its stamps when it is logged in the end. */
const STAMPS_BYTES_MAX = 1_024;

/** About what an entry takes beside its data: subject, headers, the server's own record. */
const FRAME_BYTES = 400;

/** The fold refused an entry that is not stored: the state is spoilt, the log is not. */
export class EvolveError extends Error {
  override name = "EvolveError";
  /** The obligation (`obligationKey`) whose entry it was; undefined for an entry caused by an intake message. */
  readonly obligation: string | undefined;
  /** It was itself the entry that settles a failed obligation: there is nothing left to fall back on. */
  readonly isSettlement: boolean;
  constructor(entry: LogEntry, cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
    this.isSettlement = entry.kind === "obligation_failed";
    if (!("owed" in entry.cause)) return;
    const { tenant } = entry;
    if (entry.kind === "event") this.obligation = obligationKey(tenant, entry.envelope.id);
    if (entry.kind === "begun") this.obligation = obligationKey(tenant, entry.plan.id);
  }
}

/** A derived entry that can never be stored. */
export class UnappendableError extends Error {
  override name = "UnappendableError";
}

interface InFlight {
  entry: LogEntry;
  subject: string;
  headers: Headers;
  data: Uint8Array;
}

/** What a draft says of its frame; the writer knows the rest. */
interface Framing {
  cause: Cause;
  at: Instant;
  digest?: string;
  verdict?: JsonObject;
  about?: EntryFrame["about"];
}

export interface EventDraft extends Framing {
  tenant: string;
  envelope: Envelope;
  /** The bytes as they arrived, when the envelope is logged as it was sent. */
  bytes?: Uint8Array;
  traceparent?: string;
}

/** A control entry without its frame. */
export type ControlDraft =
  | { kind: "begun"; plan: Plan }
  | { kind: "obligation_failed"; id: string; reason: string }
  | { kind: "token_issued"; body: TokenIssue }
  | { kind: "observed"; first: ObservedEntry["first"] }
  | { kind: HostEntry["kind"]; body: JsonObject };

export interface LogWriterOptions<State> {
  bus: Bus;
  clock: Clock;
  stream: string;
  domain: Domain;
  fold: Fold<State>;
  onAcked(acked: number): void;
  /** An entry of about so many bytes is appended. */
  onWritten?(bytes: number): void;
  /** An entry of ours is stored; called for each, in order. */
  onStored?(entry: LogEntry): void;
  /** An append failed; nothing can be written until `reconcile` says that the state stands. */
  onFailure(failure: AppendFailure): void;
}

export class LogWriter<State> {
  readonly #options: LogWriterOptions<State>;
  #appender: Appender;
  #inFlight: InFlight[] = [];
  #acked: number;
  #isClosed = false;
  /** Leadership under which entries are written; set by the `epoch` entry. */
  #epoch = 0;

  constructor(options: LogWriterOptions<State>) {
    this.#options = options;
    this.#acked = options.fold.position;
    this.#appender = this.#openAppender(options.fold.position);
  }

  #openAppender(last: number): Appender {
    const { bus, stream, onFailure } = this.#options;
    return bus.openAppender({
      stream,
      last,
      maxInFlight: IN_FLIGHT_MAX,
      onAcked: (acked) => this.#onAcked(acked),
      onFailure,
    });
  }

  #onAcked(acked: number): void {
    this.#acked = acked;
    let done = 0;
    while (done < this.#inFlight.length && (this.#inFlight[done]?.entry.seq ?? 0) <= acked)
      done += 1;
    if (done > 0) this.#settle(this.#inFlight.splice(0, done));
    this.#options.onAcked(acked);
  }

  #settle(written: readonly InFlight[]): void {
    const { onStored } = this.#options;
    if (onStored !== undefined) for (const { entry } of written) onStored(entry);
  }

  /** Position of the newest entry, stored or not. */
  get last(): number {
    return this.#appender.last;
  }

  get acked(): number {
    return this.#acked;
  }

  /** How many entries can be written now. */
  get room(): number {
    return this.#appender.isDead ? 0 : IN_FLIGHT_MAX - this.#appender.inFlight;
  }

  get isIdle(): boolean {
    return this.#inFlight.length === 0;
  }

  /** An entry that is written and not acknowledged yet. */
  unacked(seq: number): LogEntry | undefined {
    const first = this.#inFlight[0]?.entry.seq;
    return first === undefined ? undefined : this.#inFlight[seq - first]?.entry;
  }

  /** Writes an event. Throws UnappendableError and EvolveError; then nothing was published. */
  event(draft: EventDraft): EventEntry {
    const { stream, domain, fold } = this.#options;
    const { tenant, envelope } = draft;
    const seq = this.#appender.last + 1;
    const cursor = `${stream}:${seq}`;
    const sequence = fold.nextSequence(tenant);
    const data =
      draft.bytes === undefined
        ? Buffer.from(
            JSON.stringify({ ...envelope, delivery: { ...envelope.delivery, cursor, sequence } }),
          )
        : stampDelivery(draft.bytes, envelope, cursor, sequence);
    const { cause, at, digest, verdict, about } = draft;
    const entry: EventEntry = {
      kind: "event",
      seq,
      tenant,
      cause,
      at,
      epoch: this.#epoch,
      prev: fold.seq,
      seen: fold.seen,
      envelope,
    };
    if (digest !== undefined) entry.digest = digest;
    if (verdict !== undefined) entry.verdict = verdict;
    if (about !== undefined) entry.about = about;
    const { source, target, type } = envelope;
    const subject = logSubject({ tenant, domain, source, target, type });
    this.#write(entry, subject, data, draft.traceparent);
    return entry;
  }

  /** Writes a control entry; observers do not see it. */
  control(draft: ControlDraft & Framing & { tenant?: string }): LogEntry {
    const { tenant = NO_TENANT, cause: _c, at: _a, digest: _d, verdict: _v, ...body } = draft;
    const seq = this.#appender.last + 1;
    if (body.kind === "epoch") {
      this.#epoch = seq;
      body.body = { ...body.body, epoch: seq };
    }
    const entry: LogEntry = { ...this.#frame(draft, seq, tenant), ...body };
    const data = encodeControlBody(entry as Exclude<LogEntry, { kind: "event" }>);
    if (entry.kind === "begun" && data.length > ENTRY_BYTES_MAX - STAMPS_BYTES_MAX) {
      throw new UnappendableError("the plan's last event would not fit");
    }
    const owner = tenant === NO_TENANT ? undefined : tenant;
    this.#write(entry, controlSubject(owner, this.#options.domain, entry.kind), data);
    return entry;
  }

  #frame(draft: Framing, seq: number, tenant: string): Omit<EventEntry, "kind" | "envelope"> {
    const { cause, at, digest, verdict } = draft;
    const { seq: prev, seen } = this.#options.fold;
    const frame: EntryFrame = { seq, tenant, cause, at, epoch: this.#epoch, prev, seen };
    if (digest !== undefined) frame.digest = digest;
    if (verdict !== undefined) frame.verdict = verdict;
    return frame;
  }

  /** W1, W2. */
  #write(entry: LogEntry, subject: string, data: Uint8Array, traceparent = ""): void {
    if (data.length > ENTRY_BYTES_MAX) {
      throw new UnappendableError(`an entry of ${data.length} bytes exceeds ${ENTRY_BYTES_MAX}`);
    }
    const headers = encodeFrame(entry);
    if (traceparent !== "") headers[HEADER.traceparent] = traceparent;
    try {
      this.#options.fold.apply(entry);
    } catch (cause) {
      throw new EvolveError(entry, cause);
    }
    this.#inFlight.push({ entry, subject, headers, data });
    this.#appender.append(subject, headers, data);
    this.#options.onWritten?.(data.length + FRAME_BYTES);
  }

  /**
   * W3: reads the log where appends are of unknown fate. True: it holds exactly what was folded, the
   * rest was sent again, and writing may go on. False: somebody else wrote; the fold must be rebuilt.
   */
  async reconcile(): Promise<boolean> {
    const { bus, stream } = this.#options;
    await this.#appender.close();
    if (this.#isClosed) return false;
    const pending = [...this.#inFlight];
    let last = this.#acked;
    for (const written of pending) {
      const stored = await bus.read(stream, written.entry.seq);
      if (stored === undefined) break;
      if (!isSame(stored, written)) return false;
      last = written.entry.seq;
    }
    const state = await bus.streamState(stream);
    if (this.#isClosed) return false;
    if (state === undefined || state.lastSeq < last) {
      throw new HarmovelaError("internal_error", `${stream} is shorter than what it acknowledged`);
    }
    if (state.lastSeq > last) return false;
    const lost = pending.filter((written) => written.entry.seq > last);
    this.#appender = this.#openAppender(last);
    this.#inFlight = lost;
    if (last > this.#acked) {
      this.#settle(pending.filter(({ entry }) => entry.seq <= last));
      this.#acked = last;
      this.#options.onAcked(last);
    }
    for (const { subject, headers, data } of lost) this.#appender.append(subject, headers, data);
    return true;
  }

  /** Nothing is written after it, also not by a `reconcile` under way. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#appender.close();
  }
}

function isSame(stored: StoredMessage, written: InFlight): boolean {
  return (
    stored.subject === written.subject &&
    Buffer.compare(stored.data, written.data) === 0 &&
    Object.entries(written.headers).every(([name, value]) => stored.header(name) === value)
  );
}
