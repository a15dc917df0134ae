import { type Envelope, isHarness, isService } from "@harmovela/envelope";
import { payloadText, type TaskContext, type TaskEvent } from "../tasks/context.ts";
import type { SessionRules } from "./sessions.ts";

interface Subscription {
  readonly consumer: string;
  readonly session: string | undefined;
}

/** Subscriptions on the bus: each created once, and cancelled with its session (spec 5.1, 5.2). */
export class SubscriptionRules {
  readonly #context: TaskContext;
  readonly #sessions: SessionRules;
  /** By the id of the request that is not answered yet. */
  readonly #requested = new Map<string, Subscription>();
  readonly #created = new Map<string, Subscription>();

  constructor(context: TaskContext, sessions: SessionRules) {
    this.#context = context;
    this.#sessions = sessions;
  }

  onEvent(event: TaskEvent): void {
    const { tenant, envelope, owedBy } = event;
    const { type, source } = envelope;
    if (!type.startsWith("subscription.")) return;
    const id = payloadText(envelope, "subscription_id") ?? "";
    if (owedBy !== undefined) {
      if (type === "subscription.created") this.#create(event, id);
      else if (type === "subscription.cancelled") this.#cancel(event, id);
      return;
    }
    if (isHarness(source)) return;
    if (type === "subscription.requested" && isForBus(envelope)) {
      this.#checkSession(event);
      const asked = { consumer: source, session: envelope.session_id };
      this.#requested.set(keyOf(tenant, envelope.id), asked);
    } else if (type === "subscription.cancelled") this.#cancelOwn(event, id);
  }

  /** A session that somebody opened is that agent's; services speak for any. */
  #checkSession(event: TaskEvent): void {
    const { tenant, envelope } = event;
    const { session_id: id, source } = envelope;
    if (id === undefined || isService(source) || !this.#isLive(tenant, id)) return;
    if (this.#sessions.own(event)) return;
    this.#context.sink.add("subscription-owner", `${source} subscribes in ${id} of another agent`);
  }

  #create({ tenant, envelope }: TaskEvent, id: string): void {
    const request = keyOf(tenant, envelope.causation_id ?? "");
    const asked = this.#requested.get(request);
    if (asked === undefined || this.#created.has(keyOf(tenant, id))) {
      if (this.#context.isLenient) return;
      this.#context.sink.add("subscription-answer", `${id} answers no open request`);
      return;
    }
    this.#requested.delete(request);
    this.#created.set(keyOf(tenant, id), asked);
  }

  #cancel({ tenant, envelope }: TaskEvent, id: string): void {
    const { sink, isLenient } = this.#context;
    const key = keyOf(tenant, id);
    const known = this.#created.get(key) ?? this.#takeUnanswered(tenant, envelope.session_id);
    this.#created.delete(key);
    if (known === undefined) {
      if (!isLenient) sink.add("subscription-cancel", `${id} is cancelled and is not there`);
    } else if (known.session === undefined || this.#isLive(tenant, known.session)) {
      sink.add("subscription-cancel", `${id} is cancelled, and its session goes on`);
    }
  }

  /** A request whose creation could not be logged: it ends with its session under a name unseen so far. */
  #takeUnanswered(tenant: string, session: string | undefined): Subscription | undefined {
    for (const [key, asked] of this.#requested) {
      if (session === undefined || asked.session !== session) continue;
      if (!key.startsWith(keyOf(tenant, ""))) continue;
      this.#requested.delete(key);
      return asked;
    }
    return undefined;
  }

  /** Cancelling one that is not there is acknowledged and has no effect. */
  #cancelOwn({ tenant, envelope }: TaskEvent, id: string): void {
    const key = keyOf(tenant, id);
    const known = this.#created.get(key);
    if (known === undefined) return;
    if (known.consumer !== envelope.source) {
      const message = `${id} of ${known.consumer} is cancelled by ${envelope.source}`;
      this.#context.sink.add("subscription-owner", message);
    }
    // When its session has ended the service owes its end as well.
    const { session } = known;
    const isOwed = session !== undefined && this.#sessions.state(tenant, session) === "ended";
    if (!isOwed) this.#created.delete(key);
  }

  /** A step may come so late that the end of the session has been forgotten. */
  #isLive(tenant: string, session: string): boolean {
    return this.#sessions.state(tenant, session) === "live";
  }
}

/** To nobody by name, to a harness or to a service. */
function isForBus({ target }: Envelope): boolean {
  return target === undefined || /^(?:harness|service):/.test(target);
}

const keyOf = (tenant: string, id: string): string => `${tenant.length}:${tenant}${id}`;
