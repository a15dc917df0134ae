/** Snapshot versions only grow, for each target and scope (spec 5.9). */
import type { Instant } from "@harmovela/envelope";
import type { FamilyState, TenantFamilies } from "./state.ts";
import { remember } from "./unused.ts";

/** Versions remembered for a tenant; the longest unused one goes first. */
const VERSIONS_MAX = 10_000;

export function versionKey(target: string, scope: string | undefined): string {
  return `${target.length}:${target}${scope ?? ""}`;
}

/** `snap_7`, `12`: text and the number it counts with. */
const COUNTED = /^(.*?)(\d{1,15})$/s;

/** Whether `one` is certainly newer than `other`; versions without a common order are not. */
export function isNewer(one: number | string, other: number | string): boolean {
  if (typeof one === "number" && typeof other === "number") return one > other;
  const [, textOne, countOne] = COUNTED.exec(String(one)) ?? [];
  const [, textOther, countOther] = COUNTED.exec(String(other)) ?? [];
  if (textOne === undefined || textOne !== textOther) return false;
  return Number(countOne) > Number(countOther);
}

export function rememberVersion(
  state: FamilyState,
  tenant: TenantFamilies,
  { key, version, at }: { key: string; version: number | string; at: Instant },
): void {
  const { versions } = tenant;
  const known = versions.get(key);
  const memory = known?.memory ?? remember(state, tenant, { kind: "versions", key, at });
  memory.usedAt = at;
  versions.delete(key);
  versions.set(key, { newest: version, memory });
  if (versions.size <= VERSIONS_MAX) return;
  for (const [oldest, { memory: last }] of versions) {
    versions.delete(oldest);
    state.memories.remove(last);
    return;
  }
}
