/** A canonical, JSON-able form of the families around tasks: equal logs give equal descriptions. */
import { describeSessions } from "@harmovela/envelope";
import type { JsonObject, JsonValue } from "@harmovela/failure";
import type { Exchange, FamilyState, Memory, TenantFamilies } from "./state.ts";

function byKey<T>(map: ReadonlyMap<string, T>): T[] {
  return [...map.keys()].sort().flatMap((key) => map.get(key) ?? []);
}

function plain(value: object): JsonObject {
  return JSON.parse(JSON.stringify(value)) as JsonObject;
}

/** With when it was used last, instead of what the heap knows. */
function used({ memory, ...value }: { memory: Memory }): JsonObject {
  return { ...plain(value), usedAt: memory.usedAt };
}

function describeTenant(tenant: TenantFamilies): JsonObject {
  const exchanges = (map: ReadonlyMap<string, Exchange>) => byKey(map).map(used);
  return {
    tenant: tenant.name,
    sources: byKey(tenant.sources).map(({ key, usedAt }) => [key, usedAt]),
    subscriptions: byKey(tenant.subscriptions).map(plain),
    commands: exchanges(tenant.commands),
    queries: exchanges(tenant.queries),
    awaited: [...tenant.awaited.keys()]
      .sort()
      .map((agent) => [agent, tenant.awaited.get(agent)?.size ?? 0] as JsonValue),
    versions: [...tenant.versions].map(([key, version]) => [key, used(version)]),
    calls: byKey(tenant.calls).map(used),
    budgets: byKey(tenant.budgets).map(used),
  };
}

/** Everything that matters of the families; not when a watched session is looked at again. */
export function describeFamilies(state: FamilyState): JsonObject {
  return {
    sessions: describeSessions(state.sessions),
    tenants: byKey(state.tenants).map(describeTenant),
    duties: byKey(state.agenda.duties).map(({ due, tenant, event, urgency }) =>
      plain({ due, tenant, event, urgency }),
    ),
    watches: [...state.watches.keys()].sort(),
    memories: state.memories.size,
  };
}
