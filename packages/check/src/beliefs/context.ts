import type { FindingSink } from "../finding.ts";
import type { Settings } from "../settings.ts";
import { Ledger } from "./ledger.ts";

/** What every rule of the domain `beliefs` needs. */
export interface BeliefContext {
  readonly sink: FindingSink;
  readonly isLenient: boolean;
  readonly settings: Settings;
  readonly ledgers: Map<string, Ledger>;
}

/** Claims, evidence and windows are a tenant's own (spec 9.9). */
export function ledgerOf({ ledgers }: BeliefContext, tenant: string): Ledger {
  let ledger = ledgers.get(tenant);
  if (ledger === undefined) {
    ledger = new Ledger();
    ledgers.set(tenant, ledger);
  }
  return ledger;
}
