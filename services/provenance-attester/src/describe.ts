/**
 * A canonical, JSON-able form of the state: equal logs give equal descriptions, and so do logs that show the
 * same events in another order (positions and times of arrival are left out).
 */
import { describeSessions } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import { inspectChain } from "./rules/chain.ts";
import { type AttesterState, isLost, type Known, type TenantState, vouchersOf } from "./state.ts";

export function describeState(state: AttesterState): JsonObject {
  return {
    sessions: describeSessions(state.sessions),
    tenants: byKey(state.tenants).map((tenant) => describeTenant(state, tenant)),
    waiting: state.waiting.size,
    ready: state.ready.size,
    leaving: [...state.leaving.keys()].map(({ id }) => id).sort(),
    over: state.over.size,
    early: state.early.size,
    weight: state.weight,
  };
}

function byKey<T>(map: ReadonlyMap<string, T>): T[] {
  return [...map.keys()].sort().flatMap((key) => map.get(key) ?? []);
}

function describeTenant(state: AttesterState, tenant: TenantState): JsonObject {
  return {
    name: tenant.name,
    events: byKey(tenant.events).map((event) => describeEvent(state, event)),
    missing: byKey(tenant.missing).map(({ id, citedBy, waits, withdrawn }) => ({
      id,
      citedBy: idsOf(citedBy),
      waits: idsOf(waits),
      withdrawn: idsOf(withdrawn.values()),
    })),
    subjects: [...tenant.subjects.keys()]
      .sort()
      .map((key) => `${key} ${idsOf(tenant.subjects.get(key)?.values() ?? []).join(" ")}`),
    attestations: [...tenant.attestations.keys()].sort(),
    waits: [...tenant.waits.keys()].sort(),
    over: tenant.over.size,
    weight: tenant.weight,
  };
}

function idsOf(items: Iterable<{ readonly id: string }>): string[] {
  return [...items].map(({ id }) => id).sort();
}

function describeEvent(state: AttesterState, event: Known): JsonObject {
  const { result, checked, firstBad } = inspectChain(state, event.tenant, event);
  return {
    id: event.id,
    domain: event.domain,
    source: event.source,
    digest: event.digest,
    links: event.links.map(({ id }) => id),
    trust: event.trust ?? null,
    signedBy: event.signedBy ?? null,
    key: event.key ?? null,
    isLive: event.isLive,
    isAmbiguous: event.isAmbiguous,
    isLost: isLost(state, event),
    withdrawn: event.withdrawn?.id ?? null,
    takenBack: idsOf(event.takenBack?.values() ?? []),
    truncated: event.truncated ?? null,
    citedBy: idsOf(event.citedBy ?? []),
    chain: `${result} ${checked} ${firstBad?.reason ?? ""}`,
    attestations: (event.attestations ?? [])
      .map(({ id, revoked }) => `${id} ${revoked?.id ?? ""}`)
      .sort(),
    vouchers: [...vouchersOf(event)].sort(),
  };
}
