/**
 * What is over is remembered for `retentionMs`: what rests on it late is still marked. Then it is
 * forgotten (architecture, section 6).
 *
 * F1 Counted in the entries' own times, so that every fold forgets alike.
 * F2 What lives is never forgotten, nor what it stands on: what is over goes when nothing rests on it.
 * F3 One entry lets go of a bounded number; what is left goes with the next ones.
 */
import { forgetOver, type Instant } from "@harmovela/envelope";
import { endReport } from "./conflicts.ts";
import type { BeliefState, Claim, Node, Over, Subject, TenantState } from "./state.ts";

/** Lets go of what ended longer ago than the retention at the time of an entry (F1, F3). */
export function forget(state: BeliefState, retentionMs: number, at: Instant): void {
  forgetOver(state.over, { retentionMs, at }, (over) => {
    forgetOne(over);
    closeTenant(state, over.tenant);
  });
}

function forgetOne(over: Over): void {
  const { tenant } = over;
  switch (over.kind) {
    case "claim":
      forgetClaim(tenant, over.claim);
      return;
    case "event":
      if (over.claim.event !== over.id) dropEvent(tenant, over.id, over.claim);
      return;
    case "evidence":
      over.evidence.withdrawn = undefined;
      over.evidence.takenBack.clear();
      dropNode(tenant, over.evidence);
      return;
    case "report":
      if (over.subject.report === over.report) endReport(over.subject);
      closeSubject(over.subject);
  }
}

function forgetClaim(tenant: TenantState, claim: Claim): void {
  const { subject } = claim;
  claim.isForgotten = true;
  subject.remembered -= 1;
  if (subject.past?.get(claim.source) === claim) subject.past.delete(claim.source);
  if (subject.past?.size === 0) subject.past = undefined;
  const nodes = claim.restsOn;
  claim.restsOn = [];
  claim.replacedBy = undefined;
  for (const node of nodes) {
    node.dependents?.delete(claim);
    dropNode(tenant, node);
  }
  dropNode(tenant, claim);
  closeSubject(subject);
}

/** F2: nothing rests on it and nothing speaks of it any more. */
export function dropNode(tenant: TenantState, node: Node): void {
  if ((node.dependents?.size ?? 0) > 0) return;
  if (node.kind === "claim") {
    if (node.isForgotten) dropEvent(tenant, node.event, node);
  } else if (node.withdrawn === undefined) dropEvent(tenant, node.id, node);
}

function dropEvent(tenant: TenantState, id: string, node: Node): void {
  if (tenant.events.get(id) === node) tenant.events.delete(id);
}

/** Nothing is left of a subject of which nothing is remembered. */
export function closeSubject(subject: Subject): void {
  const { claims, remembered, report, duty, tenant, key } = subject;
  if (claims.size > 0 || remembered > 0 || report !== undefined || duty !== undefined) return;
  if (tenant.subjects.get(key) === subject) tenant.subjects.delete(key);
}

export function closeTenant(state: BeliefState, tenant: TenantState): void {
  const { subjects, events, walks, losses, name } = tenant;
  if (subjects.size + events.size + walks.size + losses.size > 0) return;
  if (state.tenants.get(name) === tenant) state.tenants.delete(name);
}
