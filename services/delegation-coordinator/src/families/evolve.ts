/** Folds an entry into the families around tasks; total on every entry. */
import { type DomainEntry, type EventEntry, evolveSession, isService } from "@harmovela/envelope";
import { strike } from "./agenda.ts";
import { evolveBudget, spend } from "./budgets.ts";
import { evolveExchange, followFirstWord } from "./evolve-exchange.ts";
import { evolveCapabilities, followSession, unwatch } from "./sessions.ts";
import type { FamilySettings } from "./settings.ts";
import { type FamilyState, openTenant } from "./state.ts";
import { evolveSubscription } from "./subscriptions.ts";
import { evolveToolCall } from "./tool-calls.ts";

type Settings = FamilySettings & { service: string };

export function evolveFamily(state: FamilyState, settings: Settings, entry: DomainEntry): void {
  const isDerived = "owed" in entry.cause;
  switch (entry.kind) {
    case "obligation_failed": {
      const ids = "owed" in entry.cause ? [entry.id, entry.cause.owed] : [entry.id];
      for (const id of ids) {
        strike(state.agenda, entry.tenant, id);
        unwatch(state, entry.tenant, id);
      }
      break;
    }
    case "begun":
      // Spent when it is decided: the event that ends the plan costs nothing more.
      if (!isDerived) {
        spend(openTenant(state, entry.tenant), entry.plan.envelope);
        hear(state, settings, entry.tenant, entry.plan.envelope.source, entry.at);
      }
      break;
    case "event":
      if (isDerived) strike(state.agenda, entry.tenant, entry.envelope.id);
      if (isDerived || !isRefusal(settings, entry)) evolveEvent(state, settings, entry, isDerived);
  }
}

/** What the service answered to somebody's envelope; it says nothing about the state. */
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
  const moved = evolveSession(state.sessions, entry);
  if (moved) followSession(state, settings, moved, entry);
  const tenant = openTenant(state, entry.tenant);
  if (!isDerived) spend(tenant, envelope);
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
      evolveToolCall(settings, tenant, entry);
      break;
    case "adaptation":
      evolveBudget(tenant, entry);
  }
  if (!isDerived) hear(state, settings, entry.tenant, envelope.source, entry.at);
}

/** Everybody whose word was accepted has been seen (spec 5.9). */
function hear(
  state: FamilyState,
  settings: Settings,
  tenantName: string,
  source: string,
  at: number,
): void {
  const tenant = openTenant(state, tenantName);
  if (isService(source) || tenant.sources.has(source)) return;
  tenant.sources.add(source);
  followFirstWord(state, settings.service, tenant, { source, at });
}
