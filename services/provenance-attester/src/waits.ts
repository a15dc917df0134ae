/** Attestations of events that were not seen yet: begun plans with an end (spec section 8). */
import { type BegunEntry, signerIn } from "@harmovela/envelope";
import { namedBy } from "./rules/evidence.ts";
import { type AttesterState, closeMissing, openMissing, openTenant, type Wait } from "./state.ts";

/** It waits from now on. */
export function openWait(state: AttesterState, entry: BegunEntry, waitMs: number): void {
  const { plan, at, tenant: name, verdict } = entry;
  const tenant = openTenant(state, name);
  const of = namedBy(plan.envelope);
  if (of === undefined || tenant.waits.has(plan.id)) return;
  const wait: Wait = {
    due: at + waitMs,
    order: entry.seq,
    index: -1,
    id: plan.id,
    tenant,
    envelope: plan.envelope,
    of,
    signedBy: signerIn(verdict),
    revoked: undefined,
    isSeen: false,
  };
  tenant.waits.set(wait.id, wait);
  if (tenant.events.has(of)) {
    markSeen(state, wait);
    return;
  }
  openMissing(tenant, of).waits.add(wait);
  state.waiting.add(wait);
}

/** What it waits for has come: it is taken, or refused for another reason, at once. */
export function markSeen(state: AttesterState, wait: Wait): void {
  if (wait.isSeen) return;
  state.waiting.remove(wait);
  wait.isSeen = true;
  state.ready.add(wait);
}

/** It was taken, was refused, or cannot be written. */
export function closeWait(state: AttesterState, wait: Wait): void {
  // It stands in one of the two heaps.
  (wait.isSeen ? state.ready : state.waiting).remove(wait);
  wait.tenant.waits.delete(wait.id);
  const missing = wait.tenant.missing.get(wait.of);
  if (missing?.waits.delete(wait)) closeMissing(missing);
}
