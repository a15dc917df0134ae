/** Subscriptions: their state only (spec 5.2). */
import {
  type DecideContext,
  type Decision,
  deriveId,
  type Envelope,
  type EventEntry,
  findSession,
  type Instant,
  isHarness,
  isService,
  type Judged,
  type Session,
} from "@harmovela/envelope";
import { reject } from "@harmovela/failure";
import { payloadObject, textOf } from "../rules/identity.ts";
import { addStep, addTimer, type Duty, strike } from "./agenda.ts";
import { derive, derivedId, isForBus } from "./derived.ts";
import type { FamilySettings } from "./settings.ts";
import { type FamilyState, openTenant, type Subscription, type TenantFamilies } from "./state.ts";

const REJECTED = "subscription.rejected";

/** The filter comes back in `subscription.created`, which must fit beside it. */
const FILTER_LENGTH_MAX = 65_536;

/** The id that its producer gives a subscription: a function of tenant, request and time. */
function subscriptionId(tenant: string, requestId: string, at: Instant): string {
  return `sub_${deriveId(tenant, requestId, "subscription", at).slice(3)}`;
}

/** Where a subscription counts: its session, or its consumer outside sessions. */
function subscriberKey(session: string | undefined, consumer: string): string {
  return session === undefined ? `source ${consumer}` : `session ${session}`;
}

export function decideSubscription(
  state: FamilyState,
  settings: FamilySettings,
  { envelope, tenant, source }: Judged,
  ctx: DecideContext,
): Decision {
  const isEcho = isHarness(source);
  if (envelope.type === "subscription.requested" && !isEcho && isForBus(envelope)) {
    if (payloadObject(envelope)?.from_cursor !== undefined) {
      return {
        reject: reject("subscription_rejected", "replay not supported", {
          path: "payload.from_cursor",
        }),
        as: REJECTED,
      };
    }
    if (JSON.stringify(envelope.payload).length > FILTER_LENGTH_MAX) {
      const details = { length_max: FILTER_LENGTH_MAX };
      return {
        reject: reject("subscription_rejected", "the filter is too long", details),
        as: REJECTED,
      };
    }
    const foreign = foreignSession(state, tenant, envelope);
    if (foreign) {
      const details = { session_id: foreign.id };
      return {
        reject: reject("unauthorized", "this session belongs to another agent", details),
        as: REJECTED,
      };
    }
    const key = subscriberKey(envelope.session_id, source);
    const count = state.tenants.get(tenant)?.subscribers.get(key)?.get(source)?.size ?? 0;
    if (count >= settings.subscriptionsMax) {
      const details = { subscriptions_max: settings.subscriptionsMax };
      return {
        reject: reject("subscription_rejected", "too many live subscriptions", details),
        as: REJECTED,
      };
    }
    const id = subscriptionId(tenant, envelope.id, ctx.now);
    return { accept: envelope, verdict: { subscription_id: id } };
  }
  if (envelope.type === "subscription.cancelled" && !isEcho) {
    const known = find(state, tenant, textOf(envelope, "subscription_id"));
    if (known && known.consumer !== source) {
      const message = "this subscription belongs to another agent";
      return { reject: reject("unauthorized", message, { subscription_id: known.id }) };
    }
  }
  return { accept: envelope };
}

/** The session that a request names, when it is another agent's; what nobody has opened is nobody's. */
function foreignSession(
  { sessions }: FamilyState,
  tenant: string,
  { session_id: id, source }: Envelope,
): Session | undefined {
  const session = id === undefined ? undefined : findSession(sessions, tenant, id);
  return session && session.initiator !== source && !isService(source) ? session : undefined;
}

function find(state: FamilyState, tenant: string, id: string | undefined) {
  return id === undefined ? undefined : state.tenants.get(tenant)?.subscriptions.get(id);
}

export function evolveSubscription(
  state: FamilyState,
  service: string,
  entry: EventEntry,
  isDerived: boolean,
): void {
  const { envelope } = entry;
  if (!isDerived && isHarness(envelope.source)) return;
  const tenant = openTenant(state, entry.tenant);
  if (envelope.type === "subscription.requested") {
    if (isForBus(envelope)) add(state, service, tenant, entry);
    return;
  }
  const known = find(state, entry.tenant, textOf(envelope, "subscription_id"));
  if (known === undefined) return;
  if (envelope.type === "subscription.created" && isDerived) known.state = "created";
  else if (envelope.type === "subscription.cancelled") {
    remove(tenant, known);
    // Its consumer was quicker than its creation: there is nothing left to create.
    strike(state.agenda, tenant.name, known.createdBy);
    if (known.cancelledBy) strike(state.agenda, tenant.name, known.cancelledBy);
  }
}

function add(state: FamilyState, service: string, tenant: TenantFamilies, entry: EventEntry): void {
  const { envelope, at, seq } = entry;
  const subscription: Subscription = {
    id: subscriptionId(tenant.name, envelope.id, at),
    consumer: envelope.source,
    session: envelope.session_id,
    requestedBy: envelope.id,
    createdBy: derivedId(entry, "subscription.created"),
    cancelledBy: undefined,
    seq,
    state: "requested",
  };
  tenant.subscriptions.set(subscription.id, subscription);
  const key = subscriberKey(subscription.session, subscription.consumer);
  const group = tenant.subscribers.get(key) ?? new Map<string, Set<Subscription>>();
  const own = group.get(subscription.consumer) ?? new Set();
  tenant.subscribers.set(key, group.set(subscription.consumer, own.add(subscription)));
  const event = derive(service, entry, {
    index: "subscription.created",
    type: "subscription.created",
    target: subscription.consumer,
    payload: {
      subscription_id: subscription.id,
      filter: envelope.payload,
      expires_at: null,
    },
  });
  addTimer(state.agenda, tenant.name, event, at);
}

function remove(tenant: TenantFamilies, subscription: Subscription): void {
  tenant.subscriptions.delete(subscription.id);
  const key = subscriberKey(subscription.session, subscription.consumer);
  const group = tenant.subscribers.get(key);
  const own = group?.get(subscription.consumer);
  own?.delete(subscription);
  if (own?.size === 0) group?.delete(subscription.consumer);
  if (group?.size === 0) tenant.subscribers.delete(key);
}

/** One whose end could not be written ends all the same: its session is over. */
export function dropSubscription(state: FamilyState, { tenant: name, event }: Duty): void {
  if (event.type !== "subscription.cancelled") return;
  const tenant = state.tenants.get(name);
  const known = find(state, name, textOf(event, "subscription_id"));
  if (tenant && known) remove(tenant, known);
}

/** Live subscriptions of a session. */
export function subscriptionsOf(
  state: FamilyState,
  { tenant, id }: Pick<Session, "tenant" | "id">,
): Subscription[] {
  const group = state.tenants.get(tenant)?.subscribers.get(`session ${id}`);
  return [...(group?.values() ?? [])].flatMap((own) => [...own]);
}

/** The end of a session owes the end of each of its subscriptions (spec 5.1). */
export function cancelSubscriptionsOf(
  state: FamilyState,
  settings: { service: string },
  session: Session,
  entry: EventEntry,
): void {
  for (const subscription of subscriptionsOf(state, session)) {
    const { id, consumer } = subscription;
    const event = derive(settings.service, entry, {
      index: `subscription.cancelled:${id}`,
      type: "subscription.cancelled",
      target: consumer,
      sessionId: session.id,
      payload: { subscription_id: id, reason: `session ${session.state}` },
    });
    subscription.cancelledBy = event.id;
    addStep(state.agenda, session.tenant, event);
  }
}
