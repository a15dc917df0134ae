/**
 * What agents use again and again is forgotten when nobody has used it for `retentionMs` (architecture,
 * section 6): who has spoken, requests without answer, tool calls without end, versions, budgets.
 *
 * U1 Counted in the entries' own times, so that every fold forgets alike.
 * U2 A use only notes its time; whether something is still in use is looked at when it would be forgotten.
 * U3 One entry looks at a bounded number; what is left is looked at with the next ones.
 */
import type { Instant } from "@harmovela/envelope";
import { exchangesOf } from "./exchange-types.ts";
import { settle } from "./settle.ts";
import type { FamilyState, Memory, MemoryKind, TenantFamilies } from "./state.ts";

/** More than one entry can add, so that the backlog gets shorter. */
const LOOKED_AT_MAX = 64;

/** Begins to remember something that is used now. */
export function remember(
  state: FamilyState,
  tenant: TenantFamilies,
  { kind, key, at }: { kind: MemoryKind; key: string; at: Instant },
): Memory {
  const memory: Memory = { due: at, order: 0, index: -1, usedAt: at, tenant, kind, key };
  state.memories.add(memory);
  return memory;
}

/** Whether the retention has passed since the last use, though nobody may have looked yet (U3). */
export function isUnused({ usedAt }: Memory, retentionMs: number, now: Instant): boolean {
  return usedAt + retentionMs < now;
}

/** Forgets what nobody has used for the retention at the time of an entry. */
export function forgetUnused(state: FamilyState, retentionMs: number, at: Instant): void {
  for (let left = LOOKED_AT_MAX; left > 0; left -= 1) {
    const oldest = state.memories.peek();
    if (oldest === undefined || oldest.due + retentionMs >= at) return;
    state.memories.remove(oldest);
    if (isUnused(oldest, retentionMs, at)) drop(state, oldest);
    else {
      oldest.due = oldest.usedAt;
      state.memories.add(oldest);
    }
  }
}

function drop(state: FamilyState, { kind, key, tenant }: Memory): void {
  if (kind === "command" || kind === "query") {
    const exchange = exchangesOf(tenant, kind).get(key);
    if (exchange) settle(state, tenant, exchange);
  } else tenant[kind].delete(key);
  closeTenant(state, tenant);
}

/** Nothing is left of a tenant of whom nothing is remembered. */
export function closeTenant(state: FamilyState, tenant: TenantFamilies): void {
  const { name, sources, subscriptions, commands, queries, versions, calls, budgets } = tenant;
  const held = [sources, subscriptions, commands, queries, versions, calls, budgets];
  if (held.every(({ size }) => size === 0)) state.tenants.delete(name);
}
