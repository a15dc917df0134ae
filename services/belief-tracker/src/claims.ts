/** How claims come, change and end (spec 6.1). Called by `evolve` alone. */
import {
  claimsMeant,
  deriveId,
  EARLY_WITHDRAWALS_MAX,
  type Envelope,
  type EventEntry,
  type Instant,
  invalidationOf,
  mayWithdraw,
  parseInstant,
  payloadText,
} from "@harmovela/envelope";
import { boundedText } from "@harmovela/failure";
import { endReport, type Occasion, overrule, review } from "./conflicts.ts";
import { addDuty } from "./duties.ts";
import {
  addDependent,
  createEvidence,
  evidenceFor,
  fallenBelow,
  linkTo,
  takeOver,
} from "./edges.ts";
import { evidenceOf } from "./rules/evidence.ts";
import { statedBy } from "./rules/value.ts";
import { validityOf } from "./rules/window.ts";
import { REASON_LENGTH_MAX } from "./settings.ts";
import {
  type BeliefState,
  type Claim,
  type Evidence,
  isLive,
  type Node,
  openSubject,
  openTenant,
  type Subject,
  spokenBy,
  type TenantState,
  type Withdrawal,
} from "./state.ts";
import { closeWindow, openWindow } from "./windows.ts";

/** A source says something about a subject, for the first time or again. */
export function assertClaim(state: BeliefState, entry: EventEntry, key: string): void {
  const { envelope, tenant: name, at } = entry;
  const tenant = openTenant(state, name);
  const subject = openSubject(tenant, key);
  const { source } = envelope;
  const known = subject.claims.get(source);
  const isAnother = known !== undefined && (known.mark ?? known.due) !== undefined;
  // Said again after it was marked: what was concluded from the old words stays to be evaluated again.
  if (isAnother) end(state, known, at);
  const kept = known !== undefined && !isAnother ? known : undefined;
  const claim = kept ?? addClaim(subject, source);
  const before = claim.event;
  if (kept !== undefined && before !== envelope.id) {
    state.over.push({ kind: "event", at, tenant, id: before, claim });
  }
  const { text, keepsValue } = statedBy(envelope);
  fill(claim, entry, keepsValue ? known?.text : text);
  const early = tenant.events.get(envelope.id);
  tenant.events.set(envelope.id, claim);
  if (early?.kind === "evidence") takeOver(early, claim);
  linkTo(tenant, claim, evidenceOf(envelope));
  openWindow(state, claim, envelope.id, at);
  markLate(state, claim, entry);
  review(state, subject, entry);
  if (early?.kind === "evidence") withdrawEarly(state, claim, early.takenBack, entry);
  if (envelope.type === "belief.revised") decideConflict(state, tenant, entry, claim);
}

function addClaim(subject: Subject, source: string): Claim {
  const claim: Claim = {
    kind: "claim",
    subject,
    source,
    event: "",
    seq: 0,
    at: 0,
    createdAt: 0,
    text: undefined,
    status: undefined,
    scope: undefined,
    confidence: undefined,
    trust: undefined,
    refreshHint: undefined,
    namesTenant: false,
    validFrom: 0,
    validUntil: undefined,
    staleAt: undefined,
    window: undefined,
    change: undefined,
    restsOn: [],
    dependents: undefined,
    withdrawn: undefined,
    mark: undefined,
    due: undefined,
    replacedBy: undefined,
    overruledBy: undefined,
    isForgotten: false,
  };
  subject.claims.set(source, claim);
  return claim;
}

function fill(claim: Claim, { envelope, seq, at }: EventEntry, text: string | undefined): void {
  claim.event = envelope.id;
  claim.seq = seq;
  claim.at = at;
  claim.createdAt = parseInstant(envelope.created_at);
  claim.text = text;
  claim.status = envelope.belief_status;
  claim.scope = envelope.belief_scope;
  claim.confidence = envelope.confidence;
  claim.trust = envelope.source_trust;
  claim.refreshHint = envelope.refresh_hint;
  claim.namesTenant = envelope.tenant_id !== undefined;
  claim.change = undefined;
  claim.overruledBy = undefined;
  Object.assign(claim, validityOf(envelope));
}

/** A dependent that arrives after what it rests on has fallen is marked at once. */
export function markLate(state: BeliefState, claim: Claim, { envelope, at }: Occasion): void {
  const because = fallenBelow(claim);
  if (because === undefined) return;
  const { tenant } = claim.subject;
  const id = deriveId(tenant.name, envelope.id, "mark", at);
  const common = { id, tenant, at, cause: envelope.id, namesTenant: claim.namesTenant };
  addDuty(state, { ...common, kind: "mark", claim, because });
}

/** Its retraction was logged before it: the asserting side has taken it back already. */
function withdrawEarly(
  state: BeliefState,
  claim: Claim,
  takenBack: ReadonlyMap<string, Withdrawal>,
  occasion: Occasion,
): void {
  const { source, subject } = claim;
  for (const [by, withdrawal] of takenBack) {
    if (!mayWithdraw(by, { source, key: subject.key })) continue;
    withdraw(state, claim, withdrawal, occasion.at);
    review(state, subject, occasion);
    return;
  }
}

function takeBackEarly({ takenBack }: Evidence, withdrawal: Withdrawal): void {
  if (takenBack.size < EARLY_WITHDRAWALS_MAX && !takenBack.has(withdrawal.by)) {
    takenBack.set(withdrawal.by, withdrawal);
  }
}

/**
 * A revision that names a conflict, or a claim in one, decides it, unless it only changes what its
 * own source says there.
 */
function decideConflict(
  state: BeliefState,
  tenant: TenantState,
  entry: EventEntry,
  revision: Claim,
): void {
  const { envelope } = entry;
  const named = tenant.events.get(envelope.causation_id ?? "");
  const contested = named?.kind === "claim" && isLive(named) ? named.subject : undefined;
  const subject = tenant.conflicts.get(envelope.causation_id ?? "") ?? contested;
  if (subject === undefined || subject === revision.subject) return;
  if (subject.report !== undefined) {
    subject.resolved = { conflict: subject.report.id, by: envelope.id, at: entry.at };
    endReport(subject);
  }
  if (subject.conflict === undefined || revision.text === undefined) return;
  const own = subject.claims.get(envelope.source);
  if (own === undefined) overrule(subject, envelope.id, revision.text);
  else own.text = revision.text;
  review(state, subject, entry);
}

/**
 * What an event takes back: claims, or an event that nobody has asserted here yet. Everything that
 * rested on it, if it is a retraction, must be evaluated again.
 */
export function withdrawNamed(state: BeliefState, name: string, occasion: Occasion): Node[] {
  const { envelope, at } = occasion;
  const invalidation = invalidationOf(envelope);
  if (invalidation === undefined) return [];
  const tenant = openTenant(state, name);
  const withdrawal: Withdrawal = {
    id: envelope.id,
    by: envelope.source,
    at,
    isRetraction: invalidation.isRetraction,
    isLoss: false,
    reason: reasonIn(payloadText(envelope, "reason")),
  };
  const nodes = namedBy(tenant, envelope) ?? [];
  for (const node of nodes) {
    if (node.kind === "claim") {
      replaceBy(tenant, node, payloadText(envelope, "replaced_by"));
      withdraw(state, node, withdrawal, at);
    } else {
      node.withdrawn = withdrawal;
      takeBackEarly(node, withdrawal);
      tenant.events.set(node.id, node);
      state.over.push({ kind: "evidence", at, tenant, evidence: node });
    }
  }
  // All of them are claims on one subject, or none is.
  if (nodes[0]?.kind === "claim") review(state, nodes[0].subject, occasion);
  return nodes;
}

/**
 * What an invalidation speaks of; undefined: claims of others. The retraction of a fact that is not
 * known (any more) speaks of the event that it names as its cause.
 */
export function namedBy(tenant: TenantState, envelope: Envelope): Node[] | undefined {
  const invalidation = invalidationOf(envelope);
  if (invalidation === undefined) return [];
  const { causation_id: cause, source, type } = envelope;
  const named = cause === undefined ? undefined : tenant.events.get(cause);
  const { key, isRetraction } = invalidation;
  const held = tenant.subjects.get(key)?.claims;
  const claims = claimsMeant(key, held, source, spokenBy(named));
  if (claims === undefined || claims.length > 0) return claims;
  const isOfEvent = type === "memory.fact.invalidated" && isRetraction;
  if (!isOfEvent || cause === undefined || named?.kind === "claim") return [];
  return [named ?? createEvidence(cause)];
}

/** Its end rests on what replaces it: when that falls, it must be evaluated again (spec 6.1). */
function replaceBy(tenant: TenantState, claim: Claim, replacement: string | undefined): void {
  if (replacement === undefined || replacement === claim.event) return;
  const node = tenant.events.get(replacement) ?? evidenceFor(tenant, replacement);
  claim.replacedBy = node;
  claim.restsOn = [...claim.restsOn, node];
  addDependent(node, claim);
}

function reasonIn(text: string | undefined): string | undefined {
  return text === undefined ? undefined : boundedText(text, REASON_LENGTH_MAX);
}

function withdraw(state: BeliefState, claim: Claim, withdrawal: Withdrawal, at: Instant): void {
  claim.withdrawn = withdrawal;
  end(state, claim, at);
}

function end(state: BeliefState, claim: Claim, at: number): void {
  const { subject, source } = claim;
  closeWindow(state, claim);
  subject.claims.delete(source);
  subject.past ??= new Map();
  subject.past.set(source, claim);
  subject.remembered += 1;
  state.over.push({ kind: "claim", at, tenant: subject.tenant, claim });
}
