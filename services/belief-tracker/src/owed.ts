/** What the service owes next. Passing over what need not be marked is bookkeeping: the answer stays the same. */
import type { Envelope, Instant, Owed } from "@harmovela/envelope";
import { derivedExpired, derivedMark, derivedOf, derivedStep, markIdOf } from "./derived.ts";
import type { BeliefSettings } from "./settings.ts";
import type { BeliefState, Claim, Duty, Work } from "./state.ts";
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
  const work = state.ring.head;
  const step = work === undefined ? undefined : stepOwed(service, work);
  return step ?? (window === undefined ? undefined : { wakeAt: window.due });
}

function stepOwed(service: string, work: Work): Owed | undefined {
  const common = { tenant: work.tenant.name, cause: work.id, urgency: "step", due: 0 } as const;
  if (work.kind === "walk") {
    const claim = nextToMark(work);
    const event = claim === undefined ? work.envelope : derivedStep(service, work, claim);
    return { event, ...common };
  }
  const claim = work.left.peek();
  if (claim?.due === undefined) return undefined;
  const { id, at } = { id: markIdOf(work, claim), at: work.at };
  return markOwed(claim, derivedMark(service, { id, at, claim }, claim.due.because), common);
}

function dutyOwed(service: string, duty: Duty): Owed {
  const event = derivedOf(service, duty);
  const common = {
    tenant: duty.tenant.name,
    cause: duty.id,
    urgency: "timer",
    due: duty.at,
  } as const;
  return duty.kind === "mark" ? markOwed(duty.claim, event, common) : { event, ...common };
}

/** A mark with conclusions below it is a plan of its own: those first, it last. */
function markOwed(
  claim: Claim,
  event: Envelope,
  common: Pick<Extract<Owed, { event: Envelope }>, "tenant" | "cause" | "urgency" | "due">,
): Owed {
  if (!hasToMark([claim])) return { event, ...common };
  return { begin: { id: event.id, kind: event.type, envelope: event }, ...common };
}
