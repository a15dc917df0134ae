/** Delegations: offers, their answers, handoffs with tokens of the service, and escalations (spec 5.6, 7). */
import type { Clock } from "@harmovela/bus";
import { type Envelope, formatInstant, type Instant } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import type { SimRandom } from "@harmovela/testkit";
import type { SeenOffer } from "./dealings.ts";
import { AGENTS, type Draft, type Drafts, type SpeaksIn } from "./drafts.ts";
import type { SeenTask, View } from "./view.ts";

const DEADLINES = [-1_000, 0, 60, 500, 4_000] as const;
const KEYS = ["hotel", "flight"] as const;
/** The shortest that is issued runs out within a life. */
const TTLS = [1_000, 600_000] as const;

/** What the parties of one offer say of their own accord. */
const WORDS = [0, 2, 3, 5] as const;

export interface OfferTrafficParts {
  random: SimRandom;
  clock: Clock;
  drafts: Drafts;
  view: View;
  speaksIn: SpeaksIn;
  /** Keys that come back; not where what they stand for is forgotten within a life. */
  hasKeys: boolean;
  /** Broker time, as an agent may know it. */
  now(): Instant;
  /** Asks the service for a token. */
  askToken(offer: SeenOffer, ttlMs: number, got: (token: string) => void): void;
  send(draft: Draft): void;
}

export class OfferTraffic {
  readonly #parts: OfferTrafficParts;

  constructor(parts: OfferTrafficParts) {
    this.#parts = parts;
  }

  offer(tenant: string): Draft {
    const draft = this.#offer(tenant);
    this.#goOn(draft, this.#parts.random.pick(WORDS));
    return draft;
  }

  /** The parties answer each other, each some time after the other. */
  #goOn(draft: Draft, left: number): void {
    const { random, clock, view, send } = this.#parts;
    if (left === 0) return;
    clock.after(random.whole(1, random.pick([10, 60, 300])), () => {
      const { tenant, envelope } = draft;
      const offer = view.dealings.offer(tenant, envelope.task_id);
      const said = offer && this.#answerTo(offer);
      if (said !== undefined) send(said);
      this.#goOn(draft, left - 1);
    });
  }

  #offer(tenant: string): Draft {
    const { random, drafts, view } = this.#parts;
    // What is old has mostly been ended before anybody answers.
    const task = random.pick(random.chance(0.5) ? view.live.slice(-4) : view.live);
    if (task !== undefined && random.chance(0.2)) return this.#offerOf(task, task.id, task.parent);
    const id = `offer_${drafts.count}`;
    if (task === undefined || random.chance(0.3)) {
      return this.#request(tenant, random.pick(AGENTS), id, undefined);
    }
    return this.#offerOf(task, id, task);
  }

  #offerOf(by: SeenTask, id: string, parent: SeenTask | undefined): Draft {
    const { random } = this.#parts;
    const entitled = by.owner ?? by.submitter;
    const source = random.chance(0.9) ? entitled : random.pick(AGENTS);
    return this.#request(by.tenant, source, id, parent);
  }

  #request(tenant: string, source: string, task: string, parent: SeenTask | undefined): Draft {
    const { random, now, hasKeys } = this.#parts;
    const payload: JsonObject = { work_description: "a part" };
    if (random.chance(0.4)) payload.deadline = formatInstant(now() + random.pick(DEADLINES));
    if (random.chance(0.3) && hasKeys) payload.key = random.pick(KEYS);
    const to = random.pick(AGENTS);
    // One that names nobody is open to whoever accepts it first.
    const parties = random.chance(0.1) ? {} : { delegated_to: to };
    return this.#draft("requested", source, payload, {
      tenant,
      task,
      parent: parent?.id,
      more: { delegated_by: source, ...parties },
    });
  }

  #draft(
    name: string,
    source: string,
    payload: JsonObject,
    of: {
      tenant: string;
      task: string;
      parent: string | undefined;
      more?: Partial<Envelope>;
    },
  ): Draft {
    const { drafts, speaksIn, view } = this.#parts;
    const { tenant, task, parent } = of;
    const known = view.live.find((at) => at.id === task && at.tenant === tenant);
    const session = speaksIn(tenant, source, known?.owner === source ? known : undefined);
    const more: Partial<Envelope> = { task_id: task, ...of.more };
    if (parent !== undefined) more.parent_task_id = parent;
    return drafts.make(`delegation.${name}`, { tenant, source, session, payload, more });
  }

  /** What one of the parties, or somebody else, says next. Undefined: there is no offer to speak of. */
  answer(): Draft | undefined {
    const { random, view } = this.#parts;
    // What is new is spoken of most.
    const offer = random.pick(view.dealings.offers.slice(-6));
    return offer && this.#answerTo(offer);
  }

  #answerTo(offer: SeenOffer): Draft | undefined {
    switch (offer.state) {
      case "accepted":
        return this.#afterAcceptance(offer);
      case "handoff.completed":
        return this.#afterHandoff(offer);
      default:
        return this.#reply(offer);
    }
  }

  #reply(offer: SeenOffer): Draft {
    const { random } = this.#parts;
    const delegate = offer.to ?? random.pick(AGENTS);
    const source = random.chance(0.92) ? delegate : random.pick(AGENTS);
    const kind = random.weighted({ accepted: 65, rejected: 12, escalated: 10, handoff: 5 });
    switch (kind) {
      case "accepted":
        return this.#of(offer, "accepted", source);
      case "rejected":
        return this.#reject(offer, source);
      case "escalated":
        return this.#escalate(offer);
      case "handoff":
        return this.#handOff(offer, "too early");
    }
  }

  #afterAcceptance(offer: SeenOffer): Draft | undefined {
    const { random, askToken, send } = this.#parts;
    const kind = random.weighted({ handOff: 60, opaque: 8, escalated: 10, rejected: 10 });
    switch (kind) {
      case "handOff": {
        if (offer.token !== undefined) return this.#handOff(offer, offer.token);
        const isAtOnce = random.chance(0.7);
        askToken(offer, random.pick(TTLS), (token) => {
          offer.token = token;
          if (isAtOnce) send(this.#handOff(offer, token));
        });
        return undefined;
      }
      case "opaque":
        return this.#handOff(offer, random.chance(0.8) ? "ht_abc" : "sim.e30.forged");
      case "escalated":
        return this.#escalate(offer);
      case "rejected":
        return this.#reject(offer, offer.to ?? random.pick(AGENTS));
    }
  }

  /** Its token once more, a question that shows it, or the way on to somebody else. */
  #afterHandoff(offer: SeenOffer): Draft {
    const { random, drafts } = this.#parts;
    const { tenant, task, token, parent } = offer;
    const kind = random.weighted({ replay: 2, query: 4, escalated: 2 });
    if (kind === "escalated") return this.#escalate(offer);
    if (kind === "replay" || token === undefined) return this.#handOff(offer, token ?? "ht_abc");
    const source = random.chance(0.8) ? (offer.to ?? offer.by) : random.pick(AGENTS);
    const more = {
      task_id: task,
      target: offer.by,
      correlation_id: `corr_${drafts.count}`,
      handoff_token: token,
      ...(parent === undefined ? {} : { parent_task_id: parent }),
    };
    const payload = { query_scope: "status" };
    return drafts.make("query.requested", { tenant, source, payload, more });
  }

  #of(offer: SeenOffer, name: string, source: string, payload: JsonObject = {}): Draft {
    const { by, to } = offer;
    const more = { delegated_by: by, ...(to === undefined ? {} : { delegated_to: to }) };
    return this.#draft(name, source, payload, { ...offer, more });
  }

  #reject(offer: SeenOffer, source: string): Draft {
    const { random, now } = this.#parts;
    const payload: JsonObject = { reason: "busy" };
    if (random.chance(0.3)) payload.retry_after = formatInstant(now() + 300);
    return this.#of(offer, "rejected", source, payload);
  }

  #escalate(offer: SeenOffer): Draft {
    const { random } = this.#parts;
    const source = random.chance(0.5) ? offer.by : (offer.to ?? offer.by);
    const more = { delegated_by: source, delegated_to: random.pick(AGENTS) };
    const payload = { reason: "too hard" };
    return this.#draft("escalated", source, payload, { ...offer, more });
  }

  #handOff(offer: SeenOffer, token: string): Draft {
    const draft = this.#of(offer, "handoff.completed", offer.by);
    draft.envelope.handoff_token = token;
    return draft;
  }
}
