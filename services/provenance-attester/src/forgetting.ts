/**
 * An event is remembered for `retentionMs` after it came, or after the last live assertion that rested on
 * it ended; then it is forgotten (architecture, section 6).
 *
 * F1 Counted in the entries' own times, so that every fold forgets alike.
 * F2 What lives is not forgotten, nor what it stands on.
 * F3 One entry lets go of a bounded number; what is left goes with the next ones.
 * F4 When too much is remembered the oldest goes before its time. What lives and rests on it is told first
 *    that its evidence is lost.
 */
import { FORGOTTEN_MAX, type Instant } from "@harmovela/envelope";
import { dropLive, release, uncite } from "./assertions.ts";
import { weightOf } from "./seen.ts";
import { type AttesterState, closeMissing, closeTenant, type Known } from "./state.ts";

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
    if (oldest === undefined) break;
    const isOld = oldest.due + retentionMs < at;
    if (!isOld && state.weight <= rememberedMax) break;
    state.over.remove(oldest);
    const isCited = (oldest.citedBy?.size ?? 0) > 0;
    if (isOld && (oldest.isLive || isCited)) continue;
    if (isCited) leave(state, oldest, at);
    else forgetEvent(state, oldest, at);
  }
  for (; left > 0; left -= 1) {
    const missing = state.early.peek();
    if (missing === undefined || missing.due + retentionMs >= at) break;
    state.early.remove(missing);
    missing.withdrawn.clear();
    closeMissing(missing);
    closeTenant(state, missing.tenant);
  }
}

/** F4. It counts no more, or all others would be pushed out while it is told of. */
function leave(state: AttesterState, event: Known, at: Instant): void {
  if (state.leaving.has(event)) return;
  state.leaving.set(event, at);
  state.weight -= weightOf(event);
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
  state.over.remove(event);
  tenant.events.delete(id);
  if (!state.leaving.delete(event)) state.weight -= weightOf(event);
  for (const attestation of event.attestations ?? []) tenant.attestations.delete(attestation.id);
  event.attestations = undefined;
  closeTenant(state, tenant);
}
