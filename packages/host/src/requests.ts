/**
 * Requests to other domains, through their intakes (architecture, section 2): sent once by a leader,
 * and again only when the target has judged past the request without an outcome. It leaves when the
 * entry that owes it is stored.
 */
import { type Bus, type Clock, intakeSubject } from "@harmovela/bus";
import type { Domain, HeartbeatMemory, Owed, UnderWay } from "@harmovela/envelope";
import type { Alarms } from "./alarms.ts";
import type { Counters } from "./counters.ts";

type OwedRequest = Extract<Owed, { request: unknown }>;

/** Requests sent and not settled; beyond it the others wait for their turn. */
const UNDER_WAY_MAX = 1_000;

/** While nobody stores it: first and longest pause between two tries. */
const RETRY_MS_MIN = 1_000;
const RETRY_MS_MAX = 300_000;

export interface RequestsContext {
  bus: Bus;
  clock: Clock;
  counters: Counters;
  alarms: Alarms;
  /** Calls `send` when everything that is folded now is stored. */
  whenStored(send: () => void): void;
  /** One may be owed again. */
  onChange(): void;
}

export class Requests implements UnderWay {
  readonly requests = new Set<string>();
  /** When sessions were heard under this leadership (spec 5.1). */
  heartbeats?: HeartbeatMemory;
  readonly #sent = new Map<string, { to: Domain; intake: number }>();
  readonly #context: RequestsContext;
  /** How often each was not stored in a row. */
  readonly #failures = new Map<string, number>();
  #isClosed = false;

  constructor(context: RequestsContext) {
    this.#context = context;
  }

  get isFull(): boolean {
    return this.requests.size >= UNDER_WAY_MAX;
  }

  /** False when it is under way already or too many are: then look again after the next change. */
  send(owed: OwedRequest): boolean {
    if (this.requests.has(owed.request.id) || this.isFull) return false;
    this.requests.add(owed.request.id);
    this.#context.whenStored(() => this.#store(owed));
    return true;
  }

  #store({ request, tenant, to }: OwedRequest): void {
    if (this.#isClosed) return;
    const { bus, clock, counters, alarms } = this.#context;
    counters.add("requests");
    const subject = intakeSubject({
      tenant,
      domain: to,
      source: request.source,
      type: request.type,
    });
    bus.store(subject, {}, Buffer.from(JSON.stringify(request))).then(
      ({ seq }) => {
        this.#failures.delete(request.id);
        if (!this.#isClosed) this.#sent.set(request.id, { to, intake: seq });
      },
      (error: unknown) => {
        alarms.raise(`request ${request.type} to ${to} was not stored`, { err: error });
        const failures = (this.#failures.get(request.id) ?? 0) + 1;
        this.#failures.set(request.id, failures);
        const pause = Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** Math.min(failures - 1, 20));
        clock.after(pause, () => this.#retry(request.id));
      },
    );
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
    if (!this.#isClosed) this.#context.onChange();
  }

  close(): void {
    this.#isClosed = true;
    this.requests.clear();
    this.#sent.clear();
    this.#failures.clear();
  }
}
