/**
 * What agents know of sessions, offers, requests and subscriptions: what a plain observer of `ev` has
 * seen so far, nothing else.
 */
import type { Envelope } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";

export interface SeenSession {
  readonly id: string;
  readonly tenant: string;
  readonly initiator: string;
  isOver: boolean;
}

export interface SeenOffer {
  readonly task: string;
  readonly tenant: string;
  readonly parent: string | undefined;
  by: string;
  to: string | undefined;
  /** The newest event, without `delegation.`. */
  state: string;
  /** The last token that somebody got for it. */
  token: string | undefined;
}

export interface SeenRequest {
  readonly kind: "command" | "query";
  readonly correlation: string;
  readonly tenant: string;
  readonly target: string;
}

export interface SeenSubscription {
  readonly id: string;
  readonly tenant: string;
  readonly consumer: string;
}

const REQUEST_ENDS = /^(command\.(rejected|completed|failed)|query\.(response|rejected|error))$/;

export class Dealings {
  readonly #sessions = new Map<string, SeenSession>();
  readonly #offers = new Map<string, SeenOffer>();
  readonly #requests = new Map<string, SeenRequest>();
  readonly #subscriptions = new Map<string, SeenSubscription>();

  get sessions(): SeenSession[] {
    return [...this.#sessions.values()];
  }

  get offers(): SeenOffer[] {
    return [...this.#offers.values()];
  }

  get requests(): SeenRequest[] {
    return [...this.#requests.values()];
  }

  get subscriptions(): SeenSubscription[] {
    return [...this.#subscriptions.values()];
  }

  session(tenant: string, id: string | undefined): SeenSession | undefined {
    return this.#sessions.get(`${tenant} ${id}`);
  }

  offer(tenant: string, task: string | undefined): SeenOffer | undefined {
    return this.#offers.get(`${tenant} ${task}`);
  }

  see(tenant: string, envelope: Envelope): void {
    const family = envelope.type.slice(0, envelope.type.indexOf("."));
    if (family === "session") this.#seeSession(tenant, envelope);
    else if (family === "delegation") this.#seeOffer(tenant, envelope);
    else if (family === "command" || family === "query") this.#seeRequest(tenant, family, envelope);
    else if (family === "subscription") this.#seeSubscription(tenant, envelope);
  }

  #seeSession(tenant: string, { type, source, session_id: named, payload }: Envelope): void {
    const id = named ?? String((payload as JsonObject).session_id);
    const key = `${tenant} ${id}`;
    const known = this.#sessions.get(key);
    if (type === "session.opened" && known === undefined) {
      this.#sessions.set(key, { id, tenant, initiator: source, isOver: false });
    } else if (known && (type === "session.closed" || type === "session.error")) {
      known.isOver = true;
    }
  }

  #seeOffer(tenant: string, envelope: Envelope): void {
    const { type, task_id: task, source, delegated_by: by, delegated_to: to } = envelope;
    if (task === undefined) return;
    const key = `${tenant} ${task}`;
    const state = type.slice("delegation.".length);
    if (state === "requested") {
      const parent = envelope.parent_task_id;
      const token = undefined;
      this.#offers.set(key, { task, tenant, parent, by: source, to, state, token });
      return;
    }
    const known = this.#offers.get(key);
    if (known === undefined) return;
    known.state = state;
    if (state === "accepted") known.to ??= source;
    if (state !== "escalated") return;
    known.by = by ?? source;
    known.to = to;
  }

  #seeRequest(tenant: string, kind: "command" | "query", envelope: Envelope): void {
    const { type, correlation_id: correlation, target } = envelope;
    const key = `${tenant} ${kind} ${correlation}`;
    if (type === `${kind}.requested` && correlation !== undefined && target !== undefined) {
      this.#requests.set(key, { kind, correlation, tenant, target });
    } else if (REQUEST_ENDS.test(type)) this.#requests.delete(key);
  }

  #seeSubscription(tenant: string, { type, target, payload }: Envelope): void {
    const { subscription_id: id } = payload as JsonObject;
    if (typeof id !== "string" || target === undefined) return;
    const key = `${tenant} ${id}`;
    if (type === "subscription.created") {
      this.#subscriptions.set(key, { id, tenant, consumer: target });
    } else if (type === "subscription.cancelled") this.#subscriptions.delete(key);
  }
}
