/** How much may be under way: so much of all, and a little of each tenant also when others have taken that. */

export interface ShareBounds {
  all: number;
  /** Of a tenant, also beyond `all`. Together they are no more than `all` once again. */
  reserved: number;
}

export class TenantShares {
  readonly #bounds: ShareBounds;
  readonly #byTenant = new Map<string, number>();
  #all = 0;

  constructor(bounds: ShareBounds) {
    this.#bounds = bounds;
  }

  /** False when there is too much; else `end` must follow. */
  begin(tenant: string): boolean {
    const { all, reserved } = this.#bounds;
    const own = this.#byTenant.get(tenant) ?? 0;
    if (this.#all >= (own < reserved ? 2 * all : all)) return false;
    this.#all += 1;
    this.#byTenant.set(tenant, own + 1);
    return true;
  }

  end(tenant: string): void {
    const own = (this.#byTenant.get(tenant) ?? 0) - 1;
    this.#all -= 1;
    if (own > 0) this.#byTenant.set(tenant, own);
    else this.#byTenant.delete(tenant);
  }

  get tenants(): number {
    return this.#byTenant.size;
  }
}
