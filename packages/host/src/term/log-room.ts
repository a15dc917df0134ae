/**
 * How much room there is left in the log, where it has a limit (architecture, section 4): from four fifths on
 * nothing new is begun, so that what was begun can end and what is owed can be written.
 */
import { logStream } from "@harmovela/bus";
import type { Alarms } from "../alarms.ts";
import type { HostOptions } from "../options.ts";

const SCARCE_SHARE = 0.8;
/** Trimming and operators make room without a word to the leader. */
const LOOK_EVERY_MS = 10_000;

export class LogRoom<State> {
  readonly #options: HostOptions<State>;
  readonly #alarms: Alarms;
  #lookedAt = Number.NEGATIVE_INFINITY;
  /** -1: no limit. */
  #maxBytes = -1;
  /** At the last look, and written since. */
  #bytes = 0;
  #isTold = false;

  constructor(options: HostOptions<State>, alarms: Alarms) {
    this.#options = options;
    this.#alarms = alarms;
  }

  /** When whoever is refused for want of room may try again, milliseconds. */
  readonly retryAfterMs = LOOK_EVERY_MS;

  get isScarce(): boolean {
    return this.#maxBytes > 0 && this.#bytes >= SCARCE_SHARE * this.#maxBytes;
  }

  /** So many bytes were appended. */
  take(bytes: number): void {
    this.#bytes += bytes;
    if (this.isScarce) this.#tell();
  }

  /** Asks how it stands, when it is time. Throws when the bus does not answer. */
  async look(): Promise<void> {
    const { clock, writer, domain } = this.#options;
    const now = clock.monotonic();
    if (now - this.#lookedAt < LOOK_EVERY_MS) return;
    const state = await writer.streamState(logStream(domain));
    if (state === undefined) return;
    this.#lookedAt = now;
    this.#maxBytes = state.maxBytes;
    this.#bytes = state.bytes;
    if (this.isScarce) this.#tell();
    else this.#isTold = false;
  }

  /** Once, until there is room again. */
  #tell(): void {
    if (this.#isTold) return;
    this.#isTold = true;
    const { domain } = this.#options;
    this.#alarms.raise(`${logStream(domain)} has little room left: nothing new is begun`, {
      bytes: this.#bytes,
      maxBytes: this.#maxBytes,
    });
  }
}
