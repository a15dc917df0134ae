/** What agents say beside tasks: sessions, offers, subscriptions, commands, queries and budgets. */
import type { JsonObject } from "@harmovela/failure";
import type { SimRandom } from "@harmovela/testkit";
import type { Dealings } from "./dealings.ts";
import { AGENTS, type Draft, Drafts, ERROR, type SpeaksIn } from "./drafts.ts";
import { OfferTraffic, type OfferTrafficParts } from "./offer-traffic.ts";
import { SessionTraffic, type SessionTrafficParts } from "./session-traffic.ts";

/** Nobody of this name ever speaks: requests to it end with their window. */
const UNHEARD = "agent:unheard";
const WINDOWS = [0, 1, 80, 900, undefined] as const;
const BUDGETS = ["budget_1", "budget_2"] as const;
const LIMITS = [0, 5, 40] as const;
const FILTERS: readonly [JsonObject, ...JsonObject[]] = [
  { types: ["task.*"] },
  { source: "agent:a" },
  { target: ["agent:b"] },
  {},
];

/** How often something is said beside what is said of tasks. */
const SPEAKING = 0.7;

const WEIGHTS = {
  open: 14,
  close: 6,
  intrude: 3,
  offer: 16,
  answer: 26,
  subscribe: 4,
  unsubscribe: 2,
  request: 7,
  respond: 12,
  budget: 2,
  spend: 4,
  again: 4,
} as const;

export type DealingTrafficParts = Omit<OfferTrafficParts, "drafts" | "speaksIn"> &
  Pick<SessionTrafficParts, "bus">;

export class DealingTraffic {
  readonly #random: SimRandom;
  readonly #dealings: Dealings;
  readonly #drafts: Drafts;
  readonly #sessions: SessionTraffic;
  readonly #offers: OfferTraffic;
  readonly #weights: Record<keyof typeof WEIGHTS, number>;
  readonly #said: Draft[] = [];

  constructor(parts: DealingTrafficParts) {
    const { random, view, clock, bus, send } = parts;
    this.#random = random;
    this.#dealings = view.dealings;
    this.#drafts = new Drafts(random);
    const [dealings, drafts] = [this.#dealings, this.#drafts];
    this.#sessions = new SessionTraffic({ random, drafts, dealings, clock, bus, send });
    this.#offers = new OfferTraffic({ ...parts, drafts, speaksIn: this.speaksIn });
    this.#weights = { ...WEIGHTS };
    for (const name of Object.keys(WEIGHTS) as (keyof typeof WEIGHTS)[]) {
      this.#weights[name] *= random.pick([0.3, 1, 1, 3]);
    }
  }

  get speaksIn(): SpeaksIn {
    return this.#sessions.speaksIn;
  }

  /** Every process dies: from now on nobody is heard. */
  fallSilent(): void {
    this.#sessions.fallSilent();
  }

  /** What is said next, if anything. */
  next(tenants: readonly string[]): Draft | undefined {
    if (!this.#random.chance(SPEAKING)) return undefined;
    const draft = this.#choose(this.#random.pick(tenants) ?? "acme");
    if (draft !== undefined) this.#said.push(draft);
    return draft;
  }

  #choose(tenant: string): Draft | undefined {
    const random = this.#random;
    switch (random.weighted(this.#weights)) {
      case "open":
        return this.#sessions.open(tenant, random.pick(AGENTS));
      case "close":
        return this.#sessions.close();
      case "intrude":
        return this.#sessions.intrude(random.pick(AGENTS));
      case "offer":
        return this.#offers.offer(tenant);
      case "answer":
        return this.#offers.answer();
      case "subscribe":
        return this.#say(tenant, "subscription.requested", { ...random.pick(FILTERS) });
      case "unsubscribe":
        return this.#unsubscribe();
      case "request":
        return this.#request(tenant);
      case "respond":
        return this.#respond();
      case "budget":
        return this.#budget(tenant);
      case "spend":
        return this.#spend(tenant);
      case "again":
        return random.pick(this.#said.slice(-30));
    }
  }

  #say(tenant: string, type: string, payload: JsonObject, more: JsonObject = {}): Draft {
    const random = this.#random;
    const drafts = this.#drafts;
    const speaksIn = this.speaksIn;
    const source = random.pick(AGENTS);
    const session = speaksIn(tenant, source);
    return drafts.make(type, { tenant, source, session, payload, more });
  }

  #unsubscribe(): Draft | undefined {
    const random = this.#random;
    const drafts = this.#drafts;
    const dealings = this.#dealings;
    const subscription = random.pick(dealings.subscriptions);
    if (subscription === undefined) return undefined;
    const { tenant, consumer, id } = subscription;
    const source = random.chance(0.8) ? consumer : random.pick(AGENTS);
    const payload = { subscription_id: id };
    return drafts.make("subscription.cancelled", { tenant, source, payload });
  }

  #request(tenant: string): Draft {
    const random = this.#random;
    const drafts = this.#drafts;
    const dealings = this.#dealings;
    const isQuery = random.chance(0.5);
    const window = random.pick(WINDOWS);
    const taken = random.chance(0.1) ? random.pick(dealings.requests)?.correlation : undefined;
    const more = {
      target: random.chance(0.4) ? UNHEARD : random.pick(AGENTS),
      correlation_id: taken ?? `corr_${drafts.count}`,
    };
    const payload: JsonObject = isQuery ? { query_scope: "status" } : { command: "go" };
    if (window !== undefined) payload.negotiation_window_ms = window;
    return this.#say(tenant, isQuery ? "query.requested" : "command.requested", payload, more);
  }

  #respond(): Draft | undefined {
    const random = this.#random;
    const drafts = this.#drafts;
    const dealings = this.#dealings;
    const speaksIn = this.speaksIn;
    const request = random.pick(dealings.requests.filter(({ target }) => target !== UNHEARD));
    if (request === undefined) return undefined;
    const { kind, correlation, tenant, target } = request;
    const source = random.chance(0.85) ? target : random.pick(AGENTS);
    const type =
      kind === "query"
        ? random.pick(["query.response", "query.response", "query.error"])
        : random.pick(["command.accepted", "command.completed", "command.failed"]);
    const payload: JsonObject =
      type === "query.response"
        ? { query_scope: "status", snapshot_version: random.whole(1, 6) }
        : type.endsWith("completed")
          ? {}
          : { error: ERROR };
    const session = speaksIn(tenant, source);
    const more = { correlation_id: correlation };
    return drafts.make(type, { tenant, source, session, payload, more });
  }

  #budget(tenant: string): Draft {
    const random = this.#random;
    const payload = { budget_id: random.pick(BUDGETS), limit: random.pick(LIMITS) };
    const name = random.weighted({ established: 4, adjusted: 2, exhausted: 1 });
    return this.#say(tenant, `adaptation.budget.${name}`, payload);
  }

  #spend(tenant: string): Draft {
    const random = this.#random;
    const more = { budget_id: random.pick(BUDGETS), budget_cost: random.whole(0, 9) };
    return this.#say(tenant, "agent.message.sent", { text: "hello" }, more);
  }
}
