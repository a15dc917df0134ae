/** The only place that changes state. Total: what does not fit the state changes nothing. */
import {
  assertedKey,
  type BegunEntry,
  claimsMeant,
  type DomainEntry,
  type EventEntry,
  invalidationOf,
  isClaimed,
  type ObligationFailedEntry,
  parseInstant,
  payloadText,
} from "@harmovela/envelope";
import { assertClaim, withdrawNamed } from "./claims.ts";
import { announce, report, review } from "./conflicts.ts";
import { expiredIdOf } from "./derived.ts";
import { findDuty, strike } from "./duties.ts";
import { closeSubject, closeTenant, forget } from "./forgetting.ts";
import { judgeChange } from "./rules/window.ts";
import type { BeliefSettings } from "./settings.ts";
import { type BeliefState, openSubject, openTenant, spokenBy, type Walk } from "./state.ts";
import { takeLost } from "./truncation.ts";
import { closeWalk, markClaim, openWalk } from "./walks.ts";
import { openWindow, tellEnd } from "./windows.ts";

export function evolve(state: BeliefState, settings: BeliefSettings, entry: DomainEntry): void {
  forget(state, settings.retentionMs, entry.at);
  switch (entry.kind) {
    case "event":
      if ("owed" in entry.cause) evolveOwn(state, entry, entry.cause.owed);
      else if (isClaimed(entry, settings.service)) evolveAgents(state, entry);
      break;
    case "begun":
      evolveBegun(state, entry);
      break;
    case "obligation_failed":
      evolveFailed(state, entry);
      break;
    case "token_issued":
      break;
  }
  const tenant = state.tenants.get(entry.tenant);
  if (tenant !== undefined) closeTenant(state, tenant);
}

/** What an agent says. */
function evolveAgents(state: BeliefState, entry: EventEntry): void {
  const { envelope } = entry;
  const revised = state.tenants.get(entry.tenant)?.events.get(envelope.causation_id ?? "");
  const key = assertedKey(envelope, spokenBy(revised));
  if (key !== undefined) assertClaim(state, entry, key);
  else if (invalidationOf(envelope) !== undefined) withdrawNamed(state, entry.tenant, entry);
  else if (envelope.type === "freshness.window.changed") changeWindow(state, entry);
  else if (envelope.type === "belief.conflict.detected") {
    const about = payloadText(envelope, "subject");
    if (about === undefined) return;
    report(state, openSubject(openTenant(state, entry.tenant), about), entry);
  }
}

/** Of the claims that the sender may speak of, those for which it is the newest decision (spec 6.2). */
function changeWindow(state: BeliefState, entry: EventEntry): void {
  const { envelope, tenant: name, at } = entry;
  const tenant = state.tenants.get(name);
  const key = payloadText(envelope, "resource") ?? "";
  const subject = tenant?.subjects.get(key);
  if (tenant === undefined || subject === undefined) return;
  const named = tenant.events.get(envelope.causation_id ?? "");
  const meant = claimsMeant(key, subject.claims, envelope.source, spokenBy(named));
  for (const claim of meant ?? []) {
    const { isApplied, flags, newValidUntil } = judgeChange(claim, envelope);
    if (!isApplied) continue;
    claim.validUntil = newValidUntil;
    claim.change = { id: envelope.id, createdAt: parseInstant(envelope.created_at), flags };
    openWindow(state, claim, envelope.id, at);
  }
  review(state, subject, entry);
}

/** What the service itself has written. */
function evolveOwn(state: BeliefState, entry: EventEntry, cause: string): void {
  const { envelope, tenant: name, at } = entry;
  const walk = state.tenants.get(name)?.walks.get(cause);
  if (walk !== undefined) {
    step(state, walk, entry);
    return;
  }
  const lost = takeLost(state, name, cause);
  if (lost !== undefined) {
    markClaim(undefined, lost.claim, { id: envelope.id, at, ...lost.because });
    return;
  }
  const duty = findDuty(state, name, envelope.id);
  if (duty?.kind === "conflict") announce(state, name, envelope.id, at);
  else if (duty?.kind === "mark") {
    strike(state, name, duty.id);
    markClaim(undefined, duty.claim, { id: envelope.id, at, ...duty.because });
  } else if (duty !== undefined) {
    strike(state, name, duty.id);
    if (duty.kind === "resolution") closeSubject(duty.subject);
  } else if (envelope.type === "freshness.expired") expire(state, entry);
}

function expire(state: BeliefState, { envelope, tenant: name }: EventEntry): void {
  const tenant = state.tenants.get(name);
  const claim = tenant?.events.get(envelope.causation_id ?? "");
  if (tenant === undefined || claim?.kind !== "claim" || claim.window === undefined) return;
  if (expiredIdOf(claim.window) !== envelope.id) return;
  tellEnd(state, claim.window);
}

/** A walk has marked one more, or has come to its end. */
function step(state: BeliefState, walk: Walk, { envelope, at }: EventEntry): void {
  state.ring.rotate(walk);
  const { retraction, key } = walk;
  if (envelope.id === walk.id) {
    closeWalk(state, walk);
    const dependsOn = dependsOnIn(envelope);
    if (walk.claim !== undefined) {
      walk.claim.due = undefined;
      markClaim(undefined, walk.claim, { id: envelope.id, at, retraction, key, dependsOn });
    }
    return;
  }
  const claim = walk.tenant.events.get(payloadText(envelope, "event_id") ?? "");
  if (claim?.kind !== "claim") return;
  const dependsOn = dependsOnIn(envelope);
  markClaim(walk, claim, { id: envelope.id, at, retraction, key, dependsOn });
}

function dependsOnIn({ payload }: EventEntry["envelope"]): string {
  const list = (payload as { depends_on?: unknown } | null)?.depends_on;
  const first: unknown = Array.isArray(list) ? list[0] : undefined;
  return typeof first === "string" ? first : "";
}

/** A retraction holds from now on; its own event follows when everything that rests on it is marked. */
function evolveBegun(state: BeliefState, entry: BegunEntry): void {
  const { plan, tenant: name, at } = entry;
  const lost = "owed" in entry.cause ? takeLost(state, name, entry.cause.owed) : undefined;
  const duty = lost ?? strike(state, name, plan.id);
  if (duty?.kind === "mark") {
    const { claim, because } = duty;
    claim.due = { id: plan.id, because };
    openWalk(state, openTenant(state, name), entry, { roots: [claim], claim, ...because });
    return;
  }
  const { envelope } = plan;
  const roots = withdrawNamed(state, name, { envelope, at });
  const key = invalidationOf(envelope)?.key ?? "";
  openWalk(state, openTenant(state, name), entry, { roots, retraction: envelope.id, key });
}

/** What cannot be written is given up: a walk ends, a window never fires, a duty is struck. */
function evolveFailed(state: BeliefState, entry: ObligationFailedEntry): void {
  const { tenant: name, at } = entry;
  const ids = "owed" in entry.cause ? [entry.id, entry.cause.owed] : [entry.id];
  for (const id of ids) {
    const walk = state.tenants.get(name)?.walks.get(id);
    if (walk !== undefined) giveUp(state, walk);
    strike(state, name, id);
    takeLost(state, name, id);
  }
  for (const window of state.windows.dueBy(at)) {
    if (!ids.includes(expiredIdOf(window))) continue;
    state.windows.remove(window);
  }
}

function giveUp(state: BeliefState, walk: Walk): void {
  if (walk.claim !== undefined) walk.claim.due = undefined;
  closeWalk(state, walk);
}
