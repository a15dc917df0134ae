/**
 * The agents' side of the bus: sends what the traffic says, sends the same bytes again while there is
 * no verdict, and keeps every verdict. One plain observer of `hv.>` runs along.
 */
import { type Bus, type Clock, HEADER, intakeSubject, parseEvSubject } from "@harmovela/bus";
import type { Domain, Envelope } from "@harmovela/envelope";
import type { Draft } from "./drafts.ts";
import type { Shown } from "./oracle.ts";
import type { View } from "./view.ts";

const AGAIN_MS = 5_000;
const STORE_MS = 2_000;

export interface Sent {
  draft: Draft;
  subject: string;
  data: Uint8Array;
  attempts: number;
  isStored: boolean;
  verdicts: Envelope[];
}

export interface CrowdParts {
  /** Whose intake it speaks to. Default `tasks`. */
  domain?: Domain;
  agents: Bus;
  observer: Bus;
  clock: Clock;
  view: View;
  onVerdict(sent: Sent, verdict: Envelope): void;
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export class Crowd {
  readonly sent: Sent[] = [];
  readonly seen: Shown[] = [];
  readonly #bus: Bus;
  readonly #clock: Clock;
  readonly #inbox: string;
  readonly #domain: Domain;
  readonly #onVerdict: (sent: Sent, verdict: Envelope) => void;

  constructor(parts: CrowdParts) {
    const { agents, observer, view } = parts;
    this.#bus = agents;
    this.#domain = parts.domain ?? "tasks";
    this.#clock = parts.clock;
    this.#onVerdict = parts.onVerdict;
    this.#inbox = agents.newInbox();
    agents.subscribe(`${this.#inbox}.*`, ({ subject, data }) => {
      const sent = this.sent[Number(subject.slice(this.#inbox.length + 1))];
      if (sent !== undefined) this.#take(sent, JSON.parse(decoder.decode(data)) as Envelope);
    });
    observer.subscribe("hv.>", ({ subject, data }) => {
      const address = parseEvSubject(subject);
      if (subject.split(".")[2] !== "ev" || address?.domain !== this.#domain) return;
      const text = decoder.decode(data);
      this.seen.push({ subject, text });
      if (address !== undefined) view.see(address.tenant, JSON.parse(text) as Envelope);
    });
  }

  #take(sent: Sent, verdict: Envelope): void {
    sent.verdicts.push(verdict);
    this.#onVerdict(sent, verdict);
  }

  send(draft: Draft): void {
    const { tenant, envelope, text } = draft;
    const source = draft.subjectSource ?? envelope.source ?? "";
    const subject =
      draft.subject ?? intakeSubject({ tenant, domain: this.#domain, source, type: envelope.type });
    const data = encoder.encode(text ?? JSON.stringify(envelope));
    const sent = { draft, subject, data, attempts: 0, isStored: false, verdicts: [] };
    this.sent.push(sent);
    this.#post(sent, this.sent.length - 1);
  }

  #post(sent: Sent, index: number): void {
    sent.attempts += 1;
    const reply = sent.draft.reply ?? `${this.#inbox}.${index}`;
    this.#bus.store(sent.subject, { [HEADER.replyTo]: reply }, sent.data, STORE_MS).then(
      () => {
        sent.isStored = true;
      },
      () => {
        // Not stored, or not known to be: sent again with the others that wait.
      },
    );
    this.#clock.after(AGAIN_MS, () => {
      if (!isSettled(sent)) this.#post(sent, index);
    });
  }

  get waiting(): Sent[] {
    return this.sent.filter((sent) => !isSettled(sent));
  }
}

function isSettled({ draft, isStored, verdicts }: Sent): boolean {
  if (draft.wants === "storage") return isStored;
  return verdicts.some((verdict) => !isRetryable(verdict));
}

/** A refusal that leaves the envelope's fate open. */
export function isRetryable(verdict: Envelope): boolean {
  if (!verdict.type.endsWith(".rejected")) return false;
  const { error } = verdict.payload as { error: { retryable: boolean } };
  return error.retryable;
}
