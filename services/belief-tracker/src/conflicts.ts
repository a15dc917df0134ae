/** A conflict begins, changes and ends with the claims on its subject (spec 6.1). Called by `evolve` alone. */
import { deriveId, type EventEntry, type Instant } from "@harmovela/envelope";
import { addDuty, findDuty, strike } from "./duties.ts";
import { contestedClaims, isPartOf, isSameContest } from "./rules/conflict.ts";
import type { BeliefState, Subject } from "./state.ts";

/** Of an entry that may have changed the claims on a subject. */
export type Occasion = Pick<EventEntry, "envelope" | "at">;

/**
 * Looks at a subject again. A contest that the last conflict does not tell of is owed as another one;
 * one that has become smaller is still told of; none ends the conflict, which is told as well.
 */
export function review(state: BeliefState, subject: Subject, { envelope, at }: Occasion): void {
  const { tenant, key } = subject;
  const contested = contestedClaims(subject);
  const owed = subject.duty === undefined ? undefined : findDuty(state, tenant.name, subject.duty);
  if (owed?.kind === "conflict" && isSameContest(owed.contested, contested)) return;
  if (owed?.kind === "conflict") strike(state, tenant.name, owed.id);
  const { conflict } = subject;
  const common = {
    tenant,
    at,
    cause: envelope.id,
    namesTenant: envelope.tenant_id !== undefined,
    subject,
  };
  if (contested.size === 0) {
    if (conflict === undefined) return;
    subject.conflict = undefined;
    tenant.conflicts.delete(conflict.id);
    subject.resolved = { conflict: conflict.id, by: envelope.id, at };
    // A revision says by itself that the conflict is over.
    if (envelope.type === "belief.revised") return;
    const id = deriveId(tenant.name, envelope.id, `resolved:${key}`, at);
    addDuty(state, { ...common, kind: "resolution", id, conflict });
    return;
  }
  if (conflict !== undefined && isPartOf(contested, conflict.contested)) {
    conflict.contested = contested;
    return;
  }
  if (owed?.kind === "resolution") strike(state, tenant.name, owed.id);
  const id = deriveId(tenant.name, envelope.id, `conflict:${key}`, at);
  addDuty(state, { ...common, kind: "conflict", id, contested });
}

/** It is logged. */
export function announce(state: BeliefState, tenant: string, id: string, at: Instant): void {
  const duty = strike(state, tenant, id);
  if (duty?.kind !== "conflict") return;
  const { subject, contested } = duty;
  const { conflicts } = subject.tenant;
  if (subject.conflict !== undefined) conflicts.delete(subject.conflict.id);
  subject.conflict = { id, at, contested };
  conflicts.set(id, subject);
}

/** Somebody else reports a conflict; the newest report counts, until it is decided. */
export function report(state: BeliefState, subject: Subject, { envelope, at }: Occasion): void {
  endReport(subject);
  const { tenant } = subject;
  subject.report = { id: envelope.id, by: envelope.source, at };
  tenant.conflicts.set(envelope.id, subject);
  state.over.push({ kind: "report", at, tenant, subject, report: subject.report });
}

export function endReport(subject: Subject): void {
  const { report: known, tenant } = subject;
  if (known === undefined) return;
  subject.report = undefined;
  if (tenant.conflicts.get(known.id) === subject) tenant.conflicts.delete(known.id);
}

/**
 * A revision by somebody who has no claim of his own there decides a conflict: what says otherwise
 * counts no longer, until its source says it again (spec 6.1).
 */
export function overrule(subject: Subject, revision: string, text: string): void {
  for (const claim of subject.claims.values()) {
    if (claim.text !== undefined && claim.text !== text) claim.overruledBy = revision;
  }
}
