/** Answers about sessions; a pure function of the state. */
import { describeSession, findSession } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import type { FamilyState } from "./state.ts";
import { subscriptionsOf } from "./subscriptions.ts";

/** Subscriptions that one answer lists. */
const LISTED_MAX = 100;

/** One session as it stands, with its live subscriptions; undefined when the tenant has none of that id. */
export function session(state: FamilyState, tenant: string, id: string): JsonObject | undefined {
  const found = findSession(state.sessions, tenant, id);
  if (found === undefined) return undefined;
  const subscriptions = subscriptionsOf(state, found);
  return {
    ...describeSession(found),
    subscriptions: subscriptions.slice(0, LISTED_MAX).map((subscription) => ({
      subscription_id: subscription.id,
      state: subscription.state,
      consumer: subscription.consumer,
    })),
    subscription_count: subscriptions.length,
  };
}
