/**
 * Windows of claims: one heap for all of them (spec 6.2). Called by `evolve` alone.
 *
 * F1 An expiry is told once for each subject and end, however many claims hold until then.
 * F2 A decision that ends anew what was fresh is told again, though the end was told of before.
 */
import type { Instant } from "@harmovela/envelope";
import { endOf } from "./rules/window.ts";
import { TOLD_ENDS_MAX } from "./settings.ts";
import type { BeliefState, Claim, Subject, Window } from "./state.ts";

/** The claim's window begins anew, as `setBy` says; one that has ended is due at once. */
export function openWindow(state: BeliefState, claim: Claim, setBy: string, at: Instant): void {
  const { subject, window: before } = claim;
  closeWindow(state, claim);
  const end = endOf(claim);
  if (end === undefined) return;
  state.count += 1;
  claim.window = { due: Math.max(end, at), order: state.count, index: -1, claim, end, setBy };
  const isAsserted = setBy === claim.event;
  const isTold = end <= at && subject.told.includes(end) && (isAsserted || before?.end === end);
  if (isTold) subject.tenant.stale.add(claim);
  else state.windows.add(claim.window);
}

export function closeWindow(state: BeliefState, claim: Claim): void {
  claim.subject.tenant.stale.delete(claim);
  if (claim.window === undefined) return;
  state.windows.remove(claim.window);
  claim.window = undefined;
}

/** Claims on one subject that end together and of which nobody has been told: this one first (F1). */
export function endingWith({ claim, end }: Window): Claim[] {
  const { claims, tenant } = claim.subject;
  const together = [claim];
  for (const other of claims.values()) {
    const isOpen = other.window?.end === end && !tenant.stale.has(other);
    if (other !== claim && isOpen) together.push(other);
  }
  return together;
}

/** The expiry is logged. */
export function tellEnd(state: BeliefState, window: Window): void {
  const { subject } = window.claim;
  for (const claim of endingWith(window)) {
    if (claim.window !== undefined) state.windows.remove(claim.window);
    subject.tenant.stale.add(claim);
  }
  rememberEnd(subject, window.end);
}

function rememberEnd(subject: Subject, end: Instant): void {
  if (subject.told.includes(end)) return;
  subject.told = [...subject.told, end].slice(-TOLD_ENDS_MAX);
}
