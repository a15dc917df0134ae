/** How events come to be known, from whichever log. Called by the fold alone. */
import {
  contentDigest,
  type Domain,
  type EventEntry,
  isService,
  parseInstant,
  payloadText,
  signerIn,
} from "@harmovela/envelope";
import {
  assertLive,
  citeKnown,
  queue,
  uncite,
  unqueue,
  withdrawEarly,
  withdrawNamed,
} from "./assertions.ts";
import { linksOf } from "./rules/evidence.ts";
import { type AttesterState, DOMAINS, type Known, openTenant, type TenantState } from "./state.ts";
import { markSeen } from "./waits.ts";

/** An event stands in a log. What was waiting for it waits no longer. `isClaim`: it may claim something. */
export function see(
  state: AttesterState,
  domain: Domain,
  entry: EventEntry,
  isClaim = false,
): Known | undefined {
  const { envelope, tenant: name, at } = entry;
  if (isRefusal(entry)) return undefined;
  const tenant = openTenant(state, name);
  const digest = contentDigest(envelope);
  state.news += 1;
  const known = tenant.events.get(envelope.id);
  if (known !== undefined && !seeAgain(state, known, domain, digest)) return known;
  const event = createKnown(tenant, domain, entry, digest);
  if (known !== undefined) takePlace(event, known);
  tenant.events.set(event.id, event);
  weigh(state, event, 1);
  queue(state, event, at);
  if (event.citedBy !== undefined) citeKnown(state, event, event.citedBy);
  const missing = tenant.missing.get(event.id);
  tenant.missing.delete(event.id);
  if (missing !== undefined) state.early.remove(missing);
  if (missing !== undefined) citeKnown(state, event, missing.citedBy);
  if (isClaim) {
    assertLive(state, event, envelope, at);
    withdrawNamed(state, name, entry);
  }
  const early = missing?.withdrawn ?? known?.takenBack;
  if (early !== undefined) withdrawEarly(state, event, early, at);
  for (const wait of missing?.waits ?? []) markSeen(state, wait);
  return event;
}

/** The answer to an envelope that was refused: it speaks of nothing that is in a log. */
function isRefusal({ envelope }: EventEntry): boolean {
  return (
    envelope.type.endsWith(".rejected") &&
    isService(envelope.source) &&
    payloadText(envelope, "acknowledged_event_id") !== undefined
  );
}

/**
 * An event of this id is known. When it is another one nobody can say which of the two is meant; true:
 * the new one takes its place, so that all folds keep the same one.
 */
function seeAgain(state: AttesterState, known: Known, domain: Domain, digest: string): boolean {
  if (known.domain === domain && known.digest === digest) return false;
  known.isAmbiguous = true;
  if (DOMAINS.indexOf(domain) >= DOMAINS.indexOf(known.domain)) return false;
  if (!state.leaving.delete(known)) weigh(state, known, -1);
  unqueue(state, known);
  uncite(state, known);
  return true;
}

/** Whoever speaks of the one speaks of the other now. It asserted nothing: beliefs come first. */
function takePlace(event: Known, known: Known): void {
  event.isAmbiguous = true;
  event.citedBy = known.citedBy;
  event.attestations = known.attestations;
  for (const attestation of event.attestations ?? []) attestation.of = event;
}

/** It takes so much of the memory, or no longer. */
export function weigh(state: AttesterState, { tenant, links }: Known, sign: 1 | -1): void {
  const weight = sign * (1 + links.length);
  state.weight += weight;
  tenant.weight += weight;
}

function createKnown(
  tenant: TenantState,
  domain: Domain,
  { envelope, seq, at, verdict }: EventEntry,
  digest: string,
): Known {
  return {
    kind: "known",
    tenant,
    id: envelope.id,
    domain,
    seq,
    at,
    type: envelope.type,
    source: envelope.source,
    createdAt: parseInstant(envelope.created_at),
    digest,
    links: linksOf(envelope),
    trust: envelope.source_trust,
    signedBy: signerIn(verdict),
    namesTenant: envelope.tenant_id !== undefined,
    isAmbiguous: false,
    key: undefined,
    isLive: false,
    withdrawn: undefined,
    takenBack: undefined,
    truncated: undefined,
    citedBy: undefined,
    citation: undefined,
    attestations: undefined,
    due: 0,
    order: 0,
    index: -1,
    place: undefined,
  };
}
