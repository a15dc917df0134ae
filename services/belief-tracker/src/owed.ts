/** What the service owes next. Passing over what need not be marked is bookkeeping: the answer stays the same. */
import type { Instant, Owed } from "@harmovela/envelope";
import { derivedExpired, derivedOf, derivedStep } from "./derived.ts";
import type { BeliefSettings } from "./settings.ts";
import type { BeliefState, Duty } from "./state.ts";
import { hasToMark, nextToMark } from "./walks.ts";

export function owed(
  state: BeliefState,
  { service }: BeliefSettings,
  now: Instant,
): Owed | undefined {
  const window = state.windows.peek();
  const [duty] = state.duties.values();
  if (window !== undefined && window.due <= Math.min(now, duty?.at ?? now)) {
    const event = derivedExpired(service, window);
    const tenant = window.claim.subject.tenant.name;
    return { event, tenant, cause: event.id, urgency: "timer", due: window.due };
  }
  if (duty !== undefined) return dutyOwed(service, duty);
  const walk = state.ring.head;
  if (walk !== undefined) {
    const claim = nextToMark(walk);
    const event = claim === undefined ? walk.envelope : derivedStep(service, walk, claim);
    return { event, tenant: walk.tenant.name, cause: walk.id, urgency: "step", due: 0 };
  }
  return window === undefined ? undefined : { wakeAt: window.due };
}

/** A mark with conclusions below it is a plan of its own: those first, it last. */
function dutyOwed(service: string, duty: Duty): Owed {
  const event = derivedOf(service, duty);
  const common = {
    tenant: duty.tenant.name,
    cause: duty.id,
    urgency: "timer",
    due: duty.at,
  } as const;
  if (duty.kind !== "mark" || !hasToMark([duty.claim])) return { event, ...common };
  return { begin: { id: duty.id, kind: event.type, envelope: event }, ...common };
}
