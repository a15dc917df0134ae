import { Fifo } from "@harmovela/envelope";
import type { Delegation } from "./delegation.ts";
import { TokenBook } from "./token-book.ts";

/** An offer that was refused, or that gave way to another. */
interface Over {
  readonly tenant: string;
  readonly delegation: Delegation;
  readonly at: number;
}

/** All delegations by tenant and task, the keys of requests, and tokens; ids are data, never property names. */
export class DelegationBook {
  readonly tokens = new TokenBook();
  readonly #delegations = new Map<string, Map<string, Delegation>>();
  readonly #keys = new Map<string, string>();
  readonly #over = new Fifo<Over>();

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

  /** The task that a key has made; afterwards it has made this one. */
  claimKey(key: string, id: string): string | undefined {
    const before = this.#keys.get(key);
    this.#keys.set(key, id);
    return before;
  }

  /** From this time on it is only remembered. */
  isOver(tenant: string, delegation: Delegation, at: number): void {
    this.#over.push({ tenant, delegation, at });
  }

  /** The delegation of a task goes with it. */
  forgetTask(tenant: string, id: string): void {
    const delegation = this.get(tenant, id);
    if (delegation === undefined) return;
    this.#delegations.get(tenant)?.delete(id);
    this.#dropKey(delegation);
  }

  /** Offers that were over before a time; one whose task is there goes with it. */
  forget(before: number, isThere: (tenant: string, id: string) => boolean): void {
    for (let oldest = this.#over.peek(); oldest; oldest = this.#over.peek()) {
      if (oldest.at >= before) return;
      this.#over.shift();
      const { tenant, delegation } = oldest;
      this.#dropKey(delegation);
      const isLast = this.get(tenant, delegation.id) === delegation;
      if (isLast && !isThere(tenant, delegation.id)) {
        this.#delegations.get(tenant)?.delete(delegation.id);
      }
    }
  }

  #dropKey({ key, id }: Delegation): void {
    if (key !== undefined && this.#keys.get(key) === id) this.#keys.delete(key);
  }
}

/** A key is one delegator's, under one parent; lengths keep the parts apart. */
export function keyOf(parts: readonly (string | undefined)[]): string {
  return parts.map((part) => `${part?.length ?? "-"}:${part ?? ""}`).join("");
}
