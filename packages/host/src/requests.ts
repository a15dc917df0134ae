/**
 * Requests to other domains, through their intakes (architecture, section 2): sent once by a leader,
 * and again only when the target has judged past the request without an outcome.
 */
import { type Bus, intakeSubject } from "@harmovela/bus";
import type { Domain, Owed, UnderWay } from "@harmovela/envelope";
import type { Alarms } from "./alarms.ts";
import type { Counters } from "./counters.ts";

type OwedRequest = Extract<Owed, { request: unknown }>;

/** Requests sent and not settled; beyond it the others wait for their turn. */
const UNDER_WAY_MAX = 1_000;

const encoder = new TextEncoder();

export class Requests implements UnderWay {
  readonly requests = new Set<string>();
  readonly #sent = new Map<string, { to: Domain; intake: number }>();
  readonly #bus: Bus;
  readonly #counters: Counters;
  readonly #alarms: Alarms;
  readonly #onChange: () => void;
  #isClosed = false;

  constructor(bus: Bus, counters: Counters, alarms: Alarms, onChange: () => void) {
    this.#bus = bus;
    this.#counters = counters;
    this.#alarms = alarms;
    this.#onChange = onChange;
  }

  /** False when it is under way already or too many are: then look again after the next change. */
  send({ request, tenant, to }: OwedRequest): boolean {
    if (this.requests.has(request.id) || this.requests.size >= UNDER_WAY_MAX) return false;
    this.requests.add(request.id);
    this.#counters.add("requests");
    const subject = intakeSubject({
      tenant,
      domain: to,
      source: request.source,
      type: request.type,
    });
    this.#bus.store(subject, {}, encoder.encode(JSON.stringify(request))).then(
      ({ seq }) => this.#sent.set(request.id, { to, intake: seq }),
      (error: unknown) => {
        this.#alarms.raise(`request ${request.type} to ${to} was not stored`, { err: error });
        this.#retry(request.id);
      },
    );
    return true;
  }

  /**
   * The target's log has settled everything of its intake up to `intake`: requests at or before it
   * that are still owed may be sent again; settled ones are no longer owed by anybody.
   */
  targetJudged(to: Domain, intake: number): void {
    for (const [id, sent] of this.#sent) {
      if (sent.to === to && sent.intake <= intake) this.#retry(id);
    }
  }

  #retry(id: string): void {
    this.#sent.delete(id);
    this.requests.delete(id);
    if (!this.#isClosed) this.#onChange();
  }

  close(): void {
    this.#isClosed = true;
    this.requests.clear();
    this.#sent.clear();
  }
}
