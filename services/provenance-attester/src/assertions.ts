/** Assertions that live, and what they rest on (spec 6.1). Called by the fold alone. */
import {
  assertedKey,
  claimsMeant,
  EARLY_WITHDRAWALS_MAX,
  type Envelope,
  type Instant,
  invalidationOf,
  mayWithdraw,
  type Spoken,
} from "@harmovela/envelope";
import {
  type AttesterState,
  closeMissing,
  type Known,
  openLog,
  openMissing,
  openTenant,
  placeOf,
  type Withdrawal,
} from "./state.ts";

/** What a source says about a subject takes the place of what it said before. */
export function assertLive(
  state: AttesterState,
  event: Known,
  envelope: Envelope,
  at: Instant,
): void {
  const { tenant } = event;
  const key = assertedKey(envelope, spokenBy(tenant.events.get(envelope.causation_id ?? "")));
  if (key === undefined) return;
  let claims = tenant.subjects.get(key);
  if (claims === undefined) {
    claims = new Map();
    tenant.subjects.set(key, claims);
  }
  const before = claims.get(event.source);
  event.key = key;
  event.isLive = true;
  claims.set(event.source, event);
  for (const { id } of event.links) cite(state, event, id);
  if (before !== undefined) endLive(state, before, at);
}

function cite(state: AttesterState, assertion: Known, id: string): void {
  const { tenant } = assertion;
  const event = tenant.events.get(id);
  if (event === assertion) return;
  if (event === undefined) openMissing(tenant, id).citedBy.add(assertion);
  else citeKnown(state, event, [assertion]);
}

/** These live assertions rest on it. */
export function citeKnown(state: AttesterState, event: Known, by: Iterable<Known>): void {
  event.citedBy ??= new Set();
  for (const assertion of by) if (assertion !== event) event.citedBy.add(assertion);
  if (event.citedBy.size === 0 || event.citation !== undefined) return;
  event.citation = { due: event.seq, order: 0, index: -1, event };
  openLog(state, event.domain).cited.add(event.citation);
}

/** It rests on nothing any more that anybody has to watch over. */
export function release(state: AttesterState, assertion: Known, at: Instant): void {
  const { tenant } = assertion;
  for (const { id } of assertion.links) {
    const event = tenant.events.get(id);
    if (event === undefined) {
      const missing = tenant.missing.get(id);
      if (missing?.citedBy.delete(assertion)) closeMissing(missing);
    } else if (event.citedBy?.delete(assertion)) {
      if (event.citedBy.size === 0) uncite(state, event);
      queue(state, event, at);
    }
  }
}

export function uncite(state: AttesterState, event: Known): void {
  if (event.citation === undefined) return;
  openLog(state, event.domain).cited.remove(event.citation);
  event.citation = undefined;
}

/** From now on it may be forgotten when the retention has passed, if nothing that lives rests on it then. */
export function queue(state: AttesterState, event: Known, at: Instant): void {
  if (event.index >= 0) return;
  event.due = at;
  event.order = placeOf(event.domain, event.seq);
  unqueue(state, event);
  state.over.add(event);
  event.place = { due: event.due, order: event.order, index: -1, event };
  event.tenant.over.add(event.place);
}

/** It is not among those any more. */
export function unqueue(state: AttesterState, event: Known): void {
  state.over.remove(event);
  if (event.place !== undefined) event.tenant.over.remove(event.place);
  event.place = undefined;
}

/** Withdrawn, or said again. */
function endLive(state: AttesterState, event: Known, at: Instant): void {
  dropLive(event);
  release(state, event, at);
  queue(state, event, at);
}

/** Takes it out of the table of what lives. */
export function dropLive(event: Known): void {
  if (!event.isLive) return;
  const { tenant, key = "", source } = event;
  event.isLive = false;
  const claims = tenant.subjects.get(key);
  if (claims?.get(source) !== event) return;
  claims.delete(source);
  if (claims.size === 0) tenant.subjects.delete(key);
}

/** Ends what an event takes back; holds from the moment at which its service has decided it. */
export function withdrawNamed(
  state: AttesterState,
  name: string,
  { envelope, at, seq }: { envelope: Envelope; at: Instant; seq: number },
): void {
  const invalidation = invalidationOf(envelope);
  if (invalidation === undefined) return;
  const tenant = openTenant(state, name);
  const withdrawal = { id: envelope.id, by: envelope.source };
  const { key, isRetraction } = invalidation;
  const { causation_id: cause, source, type } = envelope;
  const named = spokenBy(tenant.events.get(cause ?? ""));
  const claims = claimsMeant(key, tenant.subjects.get(key), source, named);
  for (const claim of claims ?? []) {
    claim.withdrawn = withdrawal;
    endLive(state, claim, at);
  }
  const isOfEvent = type === "memory.fact.invalidated" && isRetraction;
  // Claims of others are not taken back, nor is what they name.
  if (claims?.length !== 0 || !isOfEvent || cause === undefined) return;
  const event = tenant.events.get(cause);
  if (event !== undefined) {
    if (event.key !== undefined) return;
    event.withdrawn ??= withdrawal;
    event.takenBack ??= new Map();
    takeBack(event.takenBack, withdrawal);
    return;
  }
  const missing = openMissing(tenant, cause);
  takeBack(missing.withdrawn, withdrawal);
  if (missing.index >= 0) return;
  missing.due = at;
  missing.order = seq;
  state.early.add(missing);
}

function takeBack(early: Map<string, Withdrawal>, withdrawal: Withdrawal): void {
  if (early.size < EARLY_WITHDRAWALS_MAX && !early.has(withdrawal.by)) {
    early.set(withdrawal.by, withdrawal);
  }
}

/** What an event claimed, where it claimed anything. */
function spokenBy(event: Known | undefined): Spoken | undefined {
  return event?.key === undefined ? undefined : { source: event.source, key: event.key };
}

/** It was taken back before it came: by its own side, or by anybody where it asserts nothing. */
export function withdrawEarly(
  state: AttesterState,
  event: Known,
  early: ReadonlyMap<string, Withdrawal>,
  at: Instant,
): void {
  const { key, source } = event;
  if (key === undefined) event.takenBack = new Map(early);
  for (const withdrawal of early.values()) {
    if (key !== undefined && !mayWithdraw(withdrawal.by, { source, key })) continue;
    event.withdrawn = withdrawal;
    if (event.isLive) endLive(state, event, at);
    return;
  }
}
