import { contentDigest, type Domain, isService, parseInstant } from "@harmovela/envelope";
import { type DomainEvent, payloadText } from "../domain-event.ts";

/** An event that stands in a log that was seen. */
export interface SeenEvent {
  readonly id: string;
  readonly domain: Domain;
  readonly seq: number;
  readonly subject: string;
  readonly at: number;
  readonly source: string;
  readonly createdAt: number;
  readonly digest: string;
  /** Ids of what it rests on: its chain, else its cause. */
  readonly links: readonly string[];
  /** Two logs hold different events under its id: nobody can say which is meant. */
  isAmbiguous: boolean;
}

/** The events of one tenant, whichever log they stand in, by their ids. */
export class EventBook {
  readonly #events = new Map<string, SeenEvent>();
  /** Events and links. */
  weight = 0;
  /** Something may be known to the service that stands here no longer. */
  isForgetful = false;

  /** The answer to an envelope that was refused is no event that anybody speaks of. */
  add(domain: Domain, { envelope, frame }: DomainEvent): void {
    const isRefusal =
      envelope.type.endsWith(".rejected") &&
      isService(envelope.source) &&
      payloadText(envelope, "acknowledged_event_id") !== undefined;
    if (isRefusal) return;
    const before = this.#events.get(envelope.id);
    if (before !== undefined) {
      before.isAmbiguous = true;
      return;
    }
    const { evidence_chain: chain, causation_id: cause } = envelope;
    const links = chain?.map(({ id }) => id) ?? (cause === undefined ? [] : [cause]);
    this.#events.set(envelope.id, {
      id: envelope.id,
      domain,
      seq: frame.seq,
      subject: frame.subject,
      at: frame.at,
      source: envelope.source,
      createdAt: parseInstant(envelope.created_at),
      digest: contentDigest(envelope),
      links,
      isAmbiguous: false,
    });
    this.weight += 1 + links.length;
  }

  get(id: string | undefined): SeenEvent | undefined {
    return this.#events.get(id ?? "");
  }

  all(): Iterable<SeenEvent> {
    return this.#events.values();
  }

  /** What came before a time, the oldest first. */
  forget(before: number): void {
    for (const [id, event] of this.#events) {
      if (event.at >= before) break;
      this.#events.delete(id);
      this.weight -= 1 + event.links.length;
      this.isForgetful = true;
    }
  }
}
