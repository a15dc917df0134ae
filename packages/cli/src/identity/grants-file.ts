/** The registry of grants beside the server's file: what services read of who may do what (spec 9.7, 9.8). */
import { renameSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { GrantRecord } from "@harmovela/host";
import { DEFAULT_AGENT } from "../options.ts";
import type { Identity } from "./identity.ts";

/** An observer has no right to write, whatever else it may. */
const OBSERVING = ["read:*", "subscribe:*"];

/** `agents.grants.json` of `agents.conf`. */
export function grantsFileOf(config: string): string {
  return join(dirname(config), `${basename(config, ".conf")}.grants.json`);
}

/** Writes it anew; it is whole at every moment. */
export function writeGrants(path: string, identities: readonly Identity[]): void {
  const aside = `${path}.new`;
  writeFileSync(aside, `${JSON.stringify({ grants: grantsIn(identities) }, undefined, 1)}\n`);
  renameSync(aside, path);
}

function grantsIn(identities: readonly Identity[]): GrantRecord[] {
  const grants: GrantRecord[] = [];
  for (const identity of identities) {
    if (!("tenant" in identity)) continue;
    const { kind, tenant, name: agent, roles, scopes } = identity;
    const allowed = scopes ?? (kind === "observer" ? OBSERVING : undefined);
    grants.push({
      tenant,
      agent,
      ...(roles === undefined ? {} : { roles }),
      ...(allowed === undefined ? {} : { scopes: allowed }),
    });
  }
  // Commands of an operator speak as this, in any tenant.
  if (identities.some(({ kind }) => kind === "operator")) grants.push({ agent: DEFAULT_AGENT });
  return grants;
}
