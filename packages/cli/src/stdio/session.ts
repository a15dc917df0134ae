/**
 * One tenant's NDJSON conversation with the real intake (spec 9.11).
 *
 * S1 Lines are published strictly in order; the next one only when the one before has come to rest.
 * S2 Each log entry is handed on once, in log order; a line's verdict follows the entries it speaks of.
 */
import { type Bus, HEADER, type Subscription } from "@harmovela/bus";
import type { Domain, Envelope } from "@harmovela/envelope";
import { reject, toHarmovelaError } from "@harmovela/failure";
import { addressOf, STAND_IN } from "./address.ts";
import { LogTap, type TappedEntry } from "./log-tap.ts";
import { refusalHere } from "./refusal-here.ts";
import { untilAtRest } from "./settling.ts";

/** So long without any progress, and the stack is given up. */
const STALL_MS_MAX = 30_000;

export interface SessionOptions {
  tenant: string;
  /** Positions after which entries are shown. */
  from: ReadonlyMap<Domain, number>;
  /** An entry as logged, or a verdict that is not one. */
  onOutput: (bytes: Uint8Array, envelope: Envelope) => void;
  /** A rejection that cannot go out (spec 9.11). */
  onRefusedHere: (rejection: Envelope) => void;
  /** False while what was handed on has not gone out. Default always. */
  hasRoom?: () => boolean;
}

/** What became of a line. */
export interface LineOutcome {
  /** The service's answer; undefined for families that get none. */
  verdict: Envelope | undefined;
}

export class IntakeSession {
  readonly #bus: Bus;
  readonly #options: SessionOptions;
  readonly #tap: LogTap;
  readonly #inbox: string;
  readonly #verdicts: Subscription;
  #line = 0;
  #verdict: { bytes: Uint8Array; envelope: Envelope } | undefined;
  /** Ids of the rejections that were handed on since the line was published. */
  readonly #rejections = new Set<string>();

  constructor(bus: Bus, options: SessionOptions) {
    this.#bus = bus;
    this.#options = options;
    this.#inbox = bus.newInbox();
    this.#verdicts = bus.subscribe(`${this.#inbox}.*`, ({ subject, data }) => {
      if (subject !== `${this.#inbox}.${this.#line}`) return;
      this.#verdict = { bytes: data, envelope: JSON.parse(new TextDecoder().decode(data)) };
    });
    this.#tap = new LogTap(bus, {
      tenant: options.tenant,
      from: options.from,
      hasRoom: options.hasRoom ?? (() => true),
      onEntry: (tapped) => this.#onEntry(tapped),
    });
  }

  /** Resolves when the line, whose value is `value`, is judged and what follows from it is handed on. */
  async feed(bytes: Uint8Array, value: unknown): Promise<LineOutcome> {
    const { subject, domain } = addressOf(value, this.#options.tenant);
    this.#line += 1;
    this.#verdict = undefined;
    this.#rejections.clear();
    try {
      const reply = `${this.#inbox}.${this.#line}`;
      await this.#bus.store(subject, { [HEADER.replyTo]: reply }, bytes, STALL_MS_MAX);
    } catch (error) {
      const known = toHarmovelaError(error);
      if (known.code !== "no_service") throw error;
      const absent = reject("internal_error", `nobody judges ${domain}`, { domain });
      const rejection = refusalHere(absent, value);
      this.#options.onRefusedHere(rejection);
      return { verdict: rejection };
    }
    await this.settle();
    return this.#answer();
  }

  /** Resolves when nothing is left to be judged, stored, done now or handed on. */
  async settle(): Promise<void> {
    const { tenant, from } = this.#options;
    const source = STAND_IN;
    const ends = await untilAtRest(this.#bus, { tenant, source }, [...from.keys()], STALL_MS_MAX);
    await this.#tap.reach(ends, STALL_MS_MAX);
  }

  /** There is room again for what is handed on. */
  resume(): void {
    this.#tap.resume();
  }

  async close(): Promise<void> {
    this.#verdicts.close();
    await this.#tap.close();
  }

  #onEntry({ entry, message }: TappedEntry): void {
    const { envelope } = entry;
    if (envelope.type.endsWith(".rejected")) this.#rejections.add(envelope.id);
    this.#options.onOutput(message.data, envelope);
  }

  /** S2: an answer that is no entry of its own is handed on after the entries. */
  #answer(): LineOutcome {
    const verdict = this.#verdict;
    if (verdict === undefined) return { verdict: undefined };
    if (!this.#rejections.has(verdict.envelope.id)) {
      this.#options.onOutput(verdict.bytes, verdict.envelope);
    }
    return { verdict: verdict.envelope };
  }
}
