/**
 * One envelope on its way to a verdict.
 *
 * 1. Every send carries the same bytes and the same reply subject, so a verdict on any of them settles it.
 * 2. `#open` counts the sends that may have been stored. While it is above zero a definite "not stored"
 *    of another send decides nothing, and giving up is `effect_outcome_uncertain`.
 * 3. It settles once; timers are gone then.
 */
import { type Bus, type Clock, HEADER } from "@harmovela/bus";
import { HarmovelaError, toHarmovelaError } from "@harmovela/failure";
import { type RetryBounds, waitAfter } from "./retry.ts";
import { isAcknowledged, readVerdict, type Stored, type Verdict } from "./verdict.ts";

export type Outcome = Verdict | Stored | HarmovelaError;

export interface Message {
  id: string;
  type: string;
  subject: string;
  bytes: Uint8Array;
  traceparent?: string;
}

export interface PublicationContext {
  bus: Bus;
  clock: Clock;
  bounds: RetryBounds;
  random: () => number;
}

/** Pause before asking again where nobody listens or the server is busy, milliseconds. */
const BRIEF_MS = 150;
const BRIEF_MS_MAX = 5_000;

export class Publication {
  readonly #context: PublicationContext;
  readonly #message: Message;
  readonly #reply: string;
  readonly #onSettled: (outcome: Outcome) => void;
  readonly #startedAt: number;
  #attempts = 0;
  #open = 0;
  #briefs = 0;
  #lastRefusal: HarmovelaError | undefined;
  #cancelTimer: (() => void) | undefined;
  #isSettled = false;

  /** Sends at once. `onSettled` is never called from within the constructor. */
  constructor(
    context: PublicationContext,
    message: Message,
    reply: string,
    onSettled: (outcome: Outcome) => void,
  ) {
    this.#context = context;
    this.#message = message;
    this.#reply = reply;
    this.#onSettled = onSettled;
    this.#startedAt = context.clock.monotonic();
    this.#send();
  }

  /** A message on its reply subject. */
  onReply(bytes: Uint8Array): void {
    const outcome = readVerdict(bytes, this.#message.id);
    if (outcome) this.#settle(outcome);
  }

  /** What was in flight when the connection broke may be lost: asks again soon, not all at once. */
  onReconnected(): void {
    if (!this.#isSettled) this.#after(this.#context.random() * BRIEF_MS);
  }

  /** The agent closes: nothing more is sent. */
  abandon(): void {
    this.#settle(this.#failure(new HarmovelaError("closed", "the agent is closed")));
  }

  #send(): void {
    const { bus, clock, bounds, random } = this.#context;
    const elapsed = clock.monotonic() - this.#startedAt;
    if (elapsed >= bounds.giveUpMs) {
      const none = new HarmovelaError("connection_error", "no connection in all this time");
      this.#settle(this.#failure(this.#lastRefusal ?? none));
      return;
    }
    if (!bus.isConnected) {
      // What is published without a connection is dropped by the client.
      this.#after(BRIEF_MS);
      return;
    }
    this.#attempts += 1;
    this.#open += 1;
    const { subject, bytes, traceparent } = this.#message;
    const headers: Record<string, string> = { [HEADER.replyTo]: this.#reply };
    if (traceparent !== undefined) headers[HEADER.traceparent] = traceparent;
    this.#after(Math.min(waitAfter(this.#attempts, bounds, random()), bounds.giveUpMs - elapsed));
    bus.store(subject, headers, bytes, bounds.firstMs).then(
      () => this.#onStored(),
      (error: unknown) => this.#onNotStored(toHarmovelaError(error)),
    );
  }

  #onStored(): void {
    if (isAcknowledged(this.#message.type)) return;
    this.#settle({ id: this.#message.id, stored: true });
  }

  #onNotStored(error: HarmovelaError): void {
    if (this.#isSettled || !isDefinite(error)) return;
    this.#open -= 1;
    if (this.#open > 0) return;
    this.#lastRefusal = error;
    const elapsed = this.#context.clock.monotonic() - this.#startedAt;
    if (error.code === "no_service" && elapsed < this.#context.bounds.noServiceMs) {
      this.#after(BRIEF_MS);
    } else if (error.code === "append_refused" && error.retry !== "never") {
      this.#briefs += 1;
      this.#after(Math.min(BRIEF_MS_MAX, BRIEF_MS * 2 ** Math.min(this.#briefs, 10)));
    } else {
      this.#settle(error);
    }
  }

  /** Giving up says "uncertain" when a send may have been stored. */
  #failure(otherwise: HarmovelaError): HarmovelaError {
    if (this.#open === 0) return otherwise;
    return new HarmovelaError("effect_outcome_uncertain", "no verdict; it may have been accepted", {
      cause: otherwise,
      details: { id: this.#message.id, attempts: this.#attempts },
    });
  }

  #after(ms: number): void {
    this.#cancelTimer?.();
    this.#cancelTimer = this.#context.clock.after(Math.max(1, Math.ceil(ms)), () => this.#send());
  }

  #settle(outcome: Outcome): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.#cancelTimer?.();
    this.#onSettled(outcome);
  }
}

/** Whether the send was certainly not stored. */
function isDefinite({ code }: HarmovelaError): boolean {
  return (
    code === "no_service" ||
    code === "append_refused" ||
    code === "append_conflict" ||
    code === "unauthorized" ||
    code === "invalid_argument" ||
    code === "closed"
  );
}
