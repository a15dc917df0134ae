import type { Delegation } from "./delegation.ts";
import { TokenBook } from "./token-book.ts";

/** All delegations by tenant and task, the keys of requests, and tokens; ids are data, never property names. */
export class DelegationBook {
  readonly tokens = new TokenBook();
  readonly #delegations = new Map<string, Map<string, Delegation>>();
  readonly #keys = new Map<string, string>();

  get(tenant: string, id: string): Delegation | undefined {
    return this.#delegations.get(tenant)?.get(id);
  }

  set(tenant: string, delegation: Delegation): void {
    let ofTenant = this.#delegations.get(tenant);
    if (ofTenant === undefined) {
      ofTenant = new Map();
      this.#delegations.set(tenant, ofTenant);
    }
    ofTenant.set(delegation.id, delegation);
  }

  /** The task that a key of one delegator under one parent has made; afterwards it has made this one. */
  claimKey(parts: readonly (string | undefined)[], id: string): string | undefined {
    const key = parts.map((part) => `${part?.length ?? "-"}:${part ?? ""}`).join("");
    const before = this.#keys.get(key);
    this.#keys.set(key, id);
    return before;
  }
}
