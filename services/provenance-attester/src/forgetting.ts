/**
 * An event is remembered for `retentionMs` after it came, or after the last live assertion that rested on
 * it ended; then it is forgotten (architecture, section 6).
 *
 * F1 Counted in the entries' own times, so that every fold forgets alike.
 * F2 What lives is not forgotten, nor what it stands on.
 * F3 One entry lets go of a bounded number; what is left goes with the next ones.
 * F4 When too much is remembered the oldest of the tenant that fills most of the memory goes before its time, so
 *    nobody loses anything because another tenant says a lot. What lives and rests on it is told first that its
 *    evidence is lost.
 */
import { FORGOTTEN_MAX, type Instant } from "@harmovela/envelope";
import { dropLive, release, uncite, unqueue } from "./assertions.ts";
import { weigh } from "./seen.ts";
import {
  type AttesterState,
  closeMissing,
  closeTenant,
  type Known,
  type TenantState,
} from "./state.ts";

/** Called for entries of the own log alone: only they say how far the others were folded. */
export function forget(
  state: AttesterState,
  { retentionMs, rememberedMax }: { retentionMs: number; rememberedMax: number },
  at: Instant,
): void {
  // More than what came since the last one, so that the queue gets shorter.
  let left = FORGOTTEN_MAX + state.news;
  state.news = 0;
  for (; left > 0; left -= 1) {
    const oldest = state.over.peek();
    if (oldest === undefined || oldest.due + retentionMs >= at) break;
    // What lives stays, and keeps its place among those of its tenant: else it alone could never give way (F4).
    state.over.remove(oldest);
    const isCited = (oldest.citedBy?.size ?? 0) > 0;
    if (!oldest.isLive && !isCited) forgetEvent(state, oldest, at);
  }
  left = makeRoom(state, rememberedMax, left, at);
  for (; left > 0; left -= 1) {
    const missing = state.early.peek();
    if (missing === undefined || missing.due + retentionMs >= at) break;
    state.early.remove(missing);
    missing.withdrawn.clear();
    closeMissing(missing);
    closeTenant(state, missing.tenant);
  }
}

/** F4. The result: what is left of `left`. */
function makeRoom(state: AttesterState, rememberedMax: number, left: number, at: Instant): number {
  let largest: Largest | undefined;
  for (let rest = left; rest > 0; rest -= 1) {
    if (state.weight <= rememberedMax) return rest;
    if (largest === undefined || !isLargest(largest)) largest = findLargest(state);
    const oldest = largest?.tenant.over.peek()?.event;
    if (oldest === undefined) return rest;
    unqueue(state, oldest);
    if ((oldest.citedBy?.size ?? 0) > 0) leave(state, oldest, at);
    else forgetEvent(state, oldest, at);
  }
  return 0;
}

/** The tenant that fills most of the memory, and how much the next one fills. */
interface Largest {
  tenant: TenantState;
  next: number;
}

function isLargest({ tenant, next }: Largest): boolean {
  return tenant.weight > next && tenant.over.size > 0;
}

/** Of those that have anything to forget; of two that are equal the one whose name is first, in every fold. */
function findLargest({ tenants }: AttesterState): Largest | undefined {
  let largest: TenantState | undefined;
  let next = 0;
  for (const tenant of tenants.values()) {
    if (tenant.over.size === 0) continue;
    if (largest === undefined || isBefore(tenant, largest)) {
      next = largest?.weight ?? 0;
      largest = tenant;
    } else next = Math.max(next, tenant.weight);
  }
  return largest && { tenant: largest, next };
}

function isBefore(one: TenantState, other: TenantState): boolean {
  return one.weight > other.weight || (one.weight === other.weight && one.name < other.name);
}

/** F4. It counts no more, or all others would be pushed out while it is told of. */
function leave(state: AttesterState, event: Known, at: Instant): void {
  if (state.leaving.has(event)) return;
  state.leaving.set(event, at);
  weigh(state, event, -1);
}

/** F4: nobody is left to be told. */
export function forgetLeaving(state: AttesterState, event: Known, at: Instant): void {
  if (!state.leaving.has(event) || (event.citedBy?.size ?? 0) > 0) return;
  forgetEvent(state, event, at);
}

function forgetEvent(state: AttesterState, event: Known, at: Instant): void {
  const { tenant, id } = event;
  if (tenant.events.get(id) !== event) return;
  const wasWatching = event.isLive && event.truncated === undefined;
  dropLive(event);
  if (wasWatching) release(state, event, at);
  uncite(state, event);
  unqueue(state, event);
  tenant.events.delete(id);
  if (!state.leaving.delete(event)) weigh(state, event, -1);
  for (const attestation of event.attestations ?? []) tenant.attestations.delete(attestation.id);
  event.attestations = undefined;
  closeTenant(state, tenant);
}
