/** A stream of the memory server: what is stored, and whether one more message may be. */
import { API_ERROR, type ApiError } from "../api-error.ts";
import { headerValue } from "../header-block.ts";
import type { StoredMessage, StreamSpec, StreamState } from "../port.ts";
import { matchesSubject } from "./match.ts";

/** What the real server adds to each message in its file. */
const RECORD_BYTES = 30;

export class MemoryMessage implements StoredMessage {
  readonly seq: number;
  readonly time: number;
  readonly subject: string;
  readonly data: Uint8Array;
  /** Header lines, as in a header block. */
  readonly block: string;

  constructor(seq: number, time: number, subject: string, block: string, data: Uint8Array) {
    this.seq = seq;
    this.time = time;
    this.subject = subject;
    this.block = block;
    this.data = data;
  }

  header(name: string): string {
    return headerValue(this.block, name);
  }
  get bytes(): number {
    return RECORD_BYTES + this.subject.length + this.block.length + this.data.length;
  }
}

export class MemoryStream {
  readonly spec: StreamSpec & { maxBytes: number };
  readonly created: string;
  readonly #messages = new Map<number, MemoryMessage>();
  readonly #waiting = new Set<() => void>();
  #firstSeq = 1;
  #lastSeq = 0;
  #lastId = "";
  #bytes = 0;

  constructor(spec: StreamSpec, created: string) {
    this.spec = { maxBytes: -1, ...spec };
    this.created = created;
  }

  get lastSeq(): number {
    return this.#lastSeq;
  }

  state(): StreamState {
    return {
      name: this.spec.name,
      firstSeq: this.#lastSeq === 0 ? 0 : this.#firstSeq,
      lastSeq: this.#lastSeq,
      messages: this.#messages.size,
      bytes: this.#bytes,
      maxBytes: this.spec.maxBytes,
      created: this.created,
    };
  }

  takes(subject: string): boolean {
    return this.spec.subjects.some((filter) => matchesSubject(filter, subject));
  }

  /** Stores it, or says why not, in the order in which the real server checks. */
  append(
    time: number,
    subject: string,
    block: string,
    data: Uint8Array,
  ): { stored: MemoryMessage } | { error: ApiError } {
    const error = this.#refusal(subject, block, data);
    if (error) return { error };
    const stored = new MemoryMessage(this.#lastSeq + 1, time, subject, block, data.slice());
    this.#lastSeq = stored.seq;
    this.#lastId = stored.header("Nats-Msg-Id");
    this.#messages.set(stored.seq, stored);
    this.#bytes += stored.bytes;
    while (this.spec.maxBytes > 0 && this.#bytes > this.spec.maxBytes)
      this.#remove(this.#firstSeq++);
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const fn of waiting) fn();
    return { stored };
  }

  get(seq: number): MemoryMessage | undefined {
    return this.#messages.get(seq);
  }

  /** The newest message of a subject. */
  lastOn(subject: string): MemoryMessage | undefined {
    for (let seq = this.#lastSeq; seq >= this.#firstSeq; seq--) {
      const message = this.#messages.get(seq);
      if (message?.subject === subject) return message;
    }
    return undefined;
  }

  /** At most `max` messages above `after`, in order. */
  after(after: number, max: number, filter: string | undefined): MemoryMessage[] {
    const found: MemoryMessage[] = [];
    const from = Math.max(after + 1, this.#firstSeq);
    for (let seq = from; seq <= this.#lastSeq && found.length < max; seq++) {
      const message = this.#messages.get(seq);
      if (message && (filter === undefined || matchesSubject(filter, message.subject))) {
        found.push(message);
      }
    }
    return found;
  }

  /** Calls once at the next append; the result cancels it. */
  onceAppended(fn: () => void): () => void {
    this.#waiting.add(fn);
    return () => this.#waiting.delete(fn);
  }

  /** Removes everything below a sequence. */
  trim(firstSeq: number): void {
    const end = Math.min(firstSeq, this.#lastSeq + 1);
    for (let seq = this.#firstSeq; seq < end; seq++) this.#remove(seq);
    this.#firstSeq = Math.max(this.#firstSeq, end);
  }

  /** Removes every message whose subject lies in the filter. */
  purge(filter: string): void {
    for (const message of [...this.#messages.values()]) {
      if (matchesSubject(filter, message.subject)) this.#remove(message.seq);
    }
    while (this.#firstSeq <= this.#lastSeq && !this.#messages.has(this.#firstSeq)) this.#firstSeq++;
  }

  /** Removes what is older than the age limit. */
  expire(now: number): void {
    if (this.spec.maxAgeMs === 0) return;
    while (this.#firstSeq <= this.#lastSeq) {
      const first = this.#messages.get(this.#firstSeq);
      if (first && first.time > now - this.spec.maxAgeMs) return;
      this.#remove(this.#firstSeq++);
    }
  }

  #remove(seq: number): void {
    const message = this.#messages.get(seq);
    if (!message) return;
    this.#messages.delete(seq);
    this.#bytes -= message.bytes;
  }

  #refusal(subject: string, block: string, data: Uint8Array): ApiError | undefined {
    const expectedStream = headerValue(block, "Nats-Expected-Stream");
    if (expectedStream !== "" && expectedStream !== this.spec.name) {
      return refusal(API_ERROR.streamNotAsExpected, "expected stream does not match");
    }
    const expectedSeq = headerValue(block, "Nats-Expected-Last-Sequence");
    if (expectedSeq !== "" && Number(expectedSeq) !== this.#lastSeq) {
      return refusal(API_ERROR.wrongLastSequence, `wrong last sequence: ${this.#lastSeq}`);
    }
    const expectedOnSubject = headerValue(block, "Nats-Expected-Last-Subject-Sequence");
    const lastOn = expectedOnSubject === "" ? 0 : (this.lastOn(subject)?.seq ?? 0);
    if (expectedOnSubject !== "" && Number(expectedOnSubject) !== lastOn) {
      return refusal(API_ERROR.wrongLastSequence, `wrong last sequence: ${lastOn}`);
    }
    const expectedId = headerValue(block, "Nats-Expected-Last-Msg-Id");
    if (expectedId !== "" && expectedId !== this.#lastId) {
      return refusal(API_ERROR.wrongLastMessageId, `wrong last msg ID: ${this.#lastId}`);
    }
    if (block.length + data.length > this.spec.maxMessageBytes) {
      return refusal(API_ERROR.messageTooLarge, "message size exceeds maximum allowed");
    }
    const bytes = RECORD_BYTES + subject.length + block.length + data.length;
    const isFull = this.spec.maxBytes > 0 && this.#bytes + bytes > this.spec.maxBytes;
    if (isFull && this.spec.discard !== "old") {
      return { code: 503, err_code: API_ERROR.storeFailed, description: "maximum bytes exceeded" };
    }
    return undefined;
  }
}

function refusal(errCode: number, description: string): ApiError {
  return { code: 400, err_code: errCode, description };
}
