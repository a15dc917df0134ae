/** The end of a command or query: nothing of it is owed or remembered any more. */
import { strike } from "./agenda.ts";
import { exchangesOf } from "./exchange-types.ts";
import type { Exchange, FamilyState, TenantFamilies } from "./state.ts";

/** Nothing is owed and nobody is awaited for it any more. */
export function release(state: FamilyState, tenant: TenantFamilies, exchange: Exchange): void {
  if (exchange.duty !== undefined) strike(state.agenda, tenant.name, exchange.duty);
  exchange.duty = undefined;
  const group = tenant.awaited.get(exchange.target);
  group?.delete(exchange);
  if (group?.size === 0) tenant.awaited.delete(exchange.target);
}

export function settle(state: FamilyState, tenant: TenantFamilies, exchange: Exchange): void {
  release(state, tenant, exchange);
  state.memories.remove(exchange.memory);
  exchangesOf(tenant, exchange.kind).delete(exchange.correlation);
}
