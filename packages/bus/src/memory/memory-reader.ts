/** The ordered reader of the memory bus: one question to the server at a time, answered when there is something. */
import { callOut } from "../call-out.ts";
import type { Reader, ReaderOptions, StoredMessage } from "../port.ts";
import type { Link } from "./link.ts";
import type { MemoryServer } from "./memory-server.ts";
import type { MemoryMessage } from "./memory-stream.ts";

const BUFFERED_DEFAULT = 1_024;
const NO_STREAM_RETRY_MS = 100;

export class MemoryReader implements Reader {
  readonly #server: MemoryServer;
  readonly #link: Link;
  readonly #stream: string;
  readonly #options: ReaderOptions;
  readonly #maxBuffered: number;
  readonly #onClose: () => void;
  #buffer: StoredMessage[] = [];
  #position: number;
  #received: number;
  #isAnnounced = false;
  #isClosed = false;
  /** Counts questions: an answer to an earlier one than the latest is stale. */
  #question = 0;
  #isAsking = false;
  #cancelWait: (() => void) | undefined;

  constructor(
    parts: { server: MemoryServer; link: Link; onClose: () => void },
    stream: string,
    options: ReaderOptions,
  ) {
    this.#server = parts.server;
    this.#link = parts.link;
    this.#onClose = parts.onClose;
    this.#stream = stream;
    this.#options = options;
    this.#maxBuffered = options.maxBuffered ?? BUFFERED_DEFAULT;
    this.#position = options.after;
    this.#received = options.after;
    this.#ask();
  }

  get position(): number {
    return this.#position;
  }
  get buffered(): number {
    return this.#buffer.length;
  }

  take(max: number): StoredMessage[] {
    this.#isAnnounced = false;
    const taken = this.#buffer.splice(0, max);
    this.#position = taken.at(-1)?.seq ?? this.#position;
    this.#ask();
    return taken;
  }

  close(): Promise<void> {
    this.#isClosed = true;
    this.#question += 1;
    this.#cancelWait?.();
    this.#buffer = [];
    this.#onClose();
    return Promise.resolve();
  }

  /** The link was cut: what was asked is not answered any more. */
  disconnected(): void {
    this.#question += 1;
    this.#isAsking = false;
    this.#cancelWait?.();
  }

  reconnected(): void {
    this.#ask();
  }

  #ask(): void {
    const free = this.#maxBuffered - this.#buffer.length;
    if (this.#isClosed || this.#isAsking || free <= 0 || !this.#link.isUp) return;
    this.#isAsking = true;
    this.#question += 1;
    const question = this.#question;
    const after = this.#received;
    this.#link.toServer(() => this.#serve(question, after, free));
  }

  /** On the server. */
  #serve(question: number, after: number, max: number): void {
    if (question !== this.#question) return;
    const again = (): void => this.#serve(question, after, max);
    const stream = this.#server.stream(this.#stream);
    if (!stream) {
      this.#cancelWait = this.#server.clock.after(NO_STREAM_RETRY_MS, again);
      return;
    }
    const found = stream.after(after, max, this.#options.filter);
    if (found.length === 0) {
      this.#cancelWait = stream.onceAppended(again);
      return;
    }
    this.#link.toClient(() => this.#receive(question, found));
  }

  #receive(question: number, found: MemoryMessage[]): void {
    if (question !== this.#question) return;
    this.#isAsking = false;
    this.#buffer.push(...found);
    this.#received = found.at(-1)?.seq ?? this.#received;
    if (!this.#isAnnounced) {
      this.#isAnnounced = true;
      callOut(this.#options.onReady);
    }
    this.#ask();
  }
}
