/** Folds an entry into the families around tasks; total on every entry. */
import {
  type DomainEntry,
  type EventEntry,
  evolveSession,
  isService,
  type Session,
} from "@harmovela/envelope";
import { strike } from "./agenda.ts";
import { evolveBudget, noteRefusal, spend } from "./budgets.ts";
import { evolveExchange, followFirstWord } from "./evolve-exchange.ts";
import { evolveCapabilities, followSession, unwatch } from "./sessions.ts";
import type { FamilySettings } from "./settings.ts";
import { type FamilyState, openTenant } from "./state.ts";
import { dropSubscription, evolveSubscription } from "./subscriptions.ts";
import { evolveToolCall } from "./tool-calls.ts";
import { closeTenant, forgetUnused, remember } from "./unused.ts";

type Settings = FamilySettings & { service: string };

export function evolveFamily(state: FamilyState, settings: Settings, entry: DomainEntry): void {
  forgetUnused(state, settings.retentionMs, entry.at);
  const moved = evolveSession(state.sessions, entry);
  fold(state, settings, entry, moved);
  const tenant = state.tenants.get(entry.tenant);
  if (tenant) closeTenant(state, tenant);
}

function fold(
  state: FamilyState,
  settings: Settings,
  entry: DomainEntry,
  moved: Session | undefined,
): void {
  const isDerived = "owed" in entry.cause;
  switch (entry.kind) {
    case "obligation_failed": {
      const ids = "owed" in entry.cause ? [entry.id, entry.cause.owed] : [entry.id];
      for (const id of ids) {
        const duty = strike(state.agenda, entry.tenant, id);
        if (duty) dropSubscription(state, duty);
        unwatch(state, entry.tenant, id);
      }
      break;
    }
    case "begun":
      // Spent when it is decided: the event that ends the plan costs nothing more.
      if (!isDerived) {
        const { envelope } = entry.plan;
        spend(openTenant(state, entry.tenant), envelope, entry.at);
        hear(state, settings, entry.tenant, envelope.source, entry.at);
      }
      break;
    case "event":
      if (isDerived) strike(state.agenda, entry.tenant, entry.envelope.id);
      if (isDerived || !isRefusal(settings, entry)) {
        if (moved) followSession(state, settings, moved, entry);
        evolveEvent(state, settings, entry, isDerived);
      } else noteRefusal(state.tenants.get(entry.tenant), entry.envelope, entry.at);
  }
}

/** What the service answered to somebody's envelope; it changes nothing. */
function isRefusal(settings: Settings, { envelope }: EventEntry): boolean {
  return envelope.source === settings.service && envelope.type.endsWith(".rejected");
}

function evolveEvent(
  state: FamilyState,
  settings: Settings,
  entry: EventEntry,
  isDerived: boolean,
): void {
  const { envelope } = entry;
  const tenant = openTenant(state, entry.tenant);
  if (!isDerived) spend(tenant, envelope, entry.at);
  switch (envelope.type.slice(0, envelope.type.indexOf("."))) {
    case "capabilities":
      if (!isDerived) evolveCapabilities(state, settings, entry);
      break;
    case "subscription":
      evolveSubscription(state, settings.service, entry, isDerived);
      break;
    case "command":
    case "query":
      evolveExchange(state, settings, tenant, entry, isDerived);
      break;
    case "tool":
      evolveToolCall(state, tenant, entry);
      break;
    case "adaptation":
      evolveBudget(state, tenant, entry);
  }
  if (!isDerived) hear(state, settings, entry.tenant, envelope.source, entry.at);
}

/** Whoever's word was accepted has been seen (spec 5.9), until that is long ago. */
function hear(
  state: FamilyState,
  settings: Settings,
  tenantName: string,
  source: string,
  at: number,
): void {
  const tenant = openTenant(state, tenantName);
  if (isService(source)) return;
  const known = tenant.sources.get(source);
  if (known) {
    known.usedAt = at;
    return;
  }
  const memory = remember(state, tenant, { kind: "sources", key: source, at });
  tenant.sources.set(source, memory);
  followFirstWord(state, settings.service, tenant, { source, at });
}
