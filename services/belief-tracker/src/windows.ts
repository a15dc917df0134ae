/** Windows of claims: one heap for all of them (spec 6.2). Called by `evolve` alone. */
import type { Instant } from "@harmovela/envelope";
import { endOf } from "./rules/window.ts";
import type { BeliefState, Claim } from "./state.ts";

/** The claim's window begins anew, as `setBy` says; one that has ended is due at once. */
export function openWindow(state: BeliefState, claim: Claim, setBy: string, at: Instant): void {
  closeWindow(state, claim);
  const end = endOf(claim);
  if (end === undefined) return;
  state.count += 1;
  claim.window = {
    due: Math.max(end, at),
    order: state.count,
    index: -1,
    claim,
    end,
    setBy,
    hasExpired: false,
  };
  state.windows.add(claim.window);
}

export function closeWindow(state: BeliefState, claim: Claim): void {
  claim.subject.tenant.stale.delete(claim);
  if (claim.window === undefined) return;
  state.windows.remove(claim.window);
  claim.window = undefined;
}
