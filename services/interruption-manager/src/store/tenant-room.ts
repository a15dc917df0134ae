/**
 * How much of the store each tenant has taken, as the process that leads counts it, and what it may take.
 *
 * Q1 No tenant is kept from storing by what others stored, as long as the store itself has room: each has a quota.
 *    What is counted is what lies in the bucket under the tenant's name, whoever put it there.
 * Q2 Before one is refused, what nobody can go on from is removed, its own and the oldest first, and the bucket is
 *    counted anew: others may have removed what they stored themselves.
 * Q3 A leader begins with a count of its own. What was claimed and never came is let go of by the next count.
 */
import { type Blobs, type Clock, encodeToken, type StoredBlob } from "@harmovela/bus";
import type { Instant } from "@harmovela/envelope";
import { HarmovelaError } from "@harmovela/failure";

/**
 * Counted for each checkpoint beside its bytes, so that a quota bounds their number too (256 MiB: 16,384 of
 * them): a walk through the store, which everybody waits for, stays one of seconds.
 */
export const CHARGE_BYTES: number = 16 * 1024;
/** Checkpoints looked at in one question. */
const PAGE = 256;
/** A count is so good that nobody is refused for want of a newer one, milliseconds. */
const COUNT_MS = 10_000;
/** Nor is anybody counted by an older one for longer than this, milliseconds. */
const COUNT_OLD_MS = 600_000;
/** Between a claim and the end of its storing, milliseconds; later a count that does not find it lets go of it. */
const CLAIM_MS = 60_000;
/** Checkpoints removed for one that is to be stored; who asks again goes on. */
const REMOVED_MAX = 256;

export interface TenantRoomOptions {
  blobs: Blobs;
  clock: Clock;
  /** For each tenant. */
  quotaBytes: number;
  /** Whether nobody can go on from it. */
  mayGiveWay(blob: StoredBlob): boolean;
}

/** A checkpoint that is to be stored. */
export interface Claim {
  tenant: string;
  /** Under which it is stored. */
  name: string;
  bytes: number;
  /** The leadership in which it is asked for, and its time. */
  epoch: number;
  now: Instant;
}

export interface TenantUse {
  checkpoints: number;
  /** With what is counted for each. */
  used_bytes: number;
  quota_bytes: number;
}

interface Taken {
  bytes: number;
  at: Instant;
  /** Until when it may still be on its way, of the monotonic clock; undefined: it was found in the store. */
  until: number | undefined;
}

interface Tenant {
  bytes: number;
  /** Stored longest ago first. */
  taken: Map<string, Taken>;
}

interface Count {
  epoch: number;
  startedAt: number;
  done: Promise<void>;
}

export class TenantRoom {
  readonly #options: TenantRoomOptions;
  #tenants = new Map<string, Tenant>();
  #count: Count | undefined;
  /** Removed while the bucket is being counted. */
  readonly #removed = new Set<string>();
  #walks = 0;

  constructor(options: TenantRoomOptions) {
    this.#options = options;
  }

  /** Takes room for it. Throws the refusal of the quota, and what keeps the bucket from being counted. */
  async claim(claim: Claim): Promise<void> {
    // Others take room while this one waits.
    do await this.#makeRoom(claim);
    while (!this.#fits(claim));
    const { tenant, name, bytes, now: at } = claim;
    this.#removed.delete(name);
    const until = this.#options.clock.monotonic() + CLAIM_MS;
    this.#take(this.#tenants, encodeToken(tenant), name, {
      bytes: bytes + CHARGE_BYTES,
      at,
      until,
    });
  }

  /** Throws as `claim` would, and takes nothing: for what is only about to be sent. */
  async assertRoom(claim: Claim): Promise<void> {
    await this.#makeRoom(claim);
  }

  async use({ tenant, epoch }: Pick<Claim, "tenant" | "epoch">): Promise<TenantUse> {
    await this.#counted(epoch);
    const { bytes = 0, taken } = this.#tenants.get(encodeToken(tenant)) ?? {};
    const { quotaBytes: quota_bytes } = this.#options;
    return { checkpoints: taken?.size ?? 0, used_bytes: bytes, quota_bytes };
  }

  /** It is not in the store, or not any more. */
  removed(name: string): void {
    if (this.#walks > 0) this.#removed.add(name);
    this.#release(this.#tenants, name);
  }

  async #makeRoom(claim: Claim): Promise<void> {
    const { tenant, epoch } = claim;
    await this.#counted(epoch);
    if (this.#fits(claim)) return;
    await this.#makeWay(claim);
    if (this.#fits(claim)) return;
    if (this.#isOlderThan(COUNT_MS)) await this.#recount(epoch);
    else await this.#counted(epoch);
    await this.#makeWay(claim);
    if (this.#fits(claim)) return;
    throw overQuota(claim, await this.use({ tenant, epoch }));
  }

  #fits({ tenant, name, bytes }: Claim): boolean {
    const { bytes: used = 0, taken } = this.#tenants.get(encodeToken(tenant)) ?? {};
    const replaced = taken?.get(name)?.bytes ?? 0;
    return used - replaced + bytes + CHARGE_BYTES <= this.#options.quotaBytes;
  }

  async #makeWay(claim: Claim): Promise<void> {
    const { blobs, mayGiveWay } = this.#options;
    let left = REMOVED_MAX;
    const { taken = new Map<string, Taken>() } = this.#tenants.get(encodeToken(claim.tenant)) ?? {};
    for (const [name, { bytes, at }] of [...taken]) {
      if (left === 0 || this.#fits(claim)) return;
      if (!mayGiveWay({ name, bytes: bytes - CHARGE_BYTES, at, notes: {} })) continue;
      await blobs.remove(name);
      this.removed(name);
      left -= 1;
    }
  }

  /** Q3. */
  async #counted(epoch: number): Promise<void> {
    if (this.#count?.epoch === epoch && !this.#isOlderThan(COUNT_OLD_MS)) await this.#count.done;
    else await this.#recount(epoch);
  }

  #isOlderThan(ms: number): boolean {
    return this.#options.clock.monotonic() - (this.#count?.startedAt ?? 0) >= ms;
  }

  async #recount(epoch: number): Promise<void> {
    const startedAt = this.#options.clock.monotonic();
    this.#walks += 1;
    const count: Count = { epoch, startedAt, done: this.#walk(startedAt) };
    this.#count = count;
    try {
      await count.done;
    } catch (error) {
      if (this.#count === count) this.#count = undefined;
      throw error;
    } finally {
      this.#walks -= 1;
      if (this.#walks === 0) this.#removed.clear();
    }
  }

  async #walk(startedAt: number): Promise<void> {
    const found = new Map<string, Tenant>();
    for (let from: number | undefined = 0; from !== undefined; ) {
      const page = await this.#options.blobs.page(from, PAGE);
      for (const { name, bytes, at } of page.blobs)
        this.#take(found, tenantOf(name), name, {
          bytes: bytes + CHARGE_BYTES,
          at,
          until: undefined,
        });
      from = page.next;
    }
    for (const name of this.#removed) this.#release(found, name);
    for (const [tenant, { taken }] of this.#tenants) {
      for (const [name, one] of taken) {
        const isUnderWay = one.until !== undefined && one.until > startedAt;
        if (isUnderWay && !found.get(tenant)?.taken.has(name)) this.#take(found, tenant, name, one);
      }
    }
    this.#tenants = found;
  }

  #take(tenants: Map<string, Tenant>, tenant: string, name: string, taken: Taken): void {
    this.#release(tenants, name);
    const known = tenants.get(tenant) ?? { bytes: 0, taken: new Map<string, Taken>() };
    known.bytes += taken.bytes;
    known.taken.set(name, taken);
    tenants.set(tenant, known);
  }

  #release(tenants: Map<string, Tenant>, name: string): void {
    const tenant = tenants.get(tenantOf(name));
    const known = tenant?.taken.get(name);
    if (tenant === undefined || known === undefined) return;
    tenant.taken.delete(name);
    tenant.bytes -= known.bytes;
    if (tenant.taken.size === 0) tenants.delete(tenantOf(name));
  }
}

/** As it stands in the name. What is no name of a checkpoint is nobody's. */
function tenantOf(name: string): string {
  return name.slice(0, Math.max(0, name.indexOf(".")));
}

function overQuota(
  { bytes }: Claim,
  { checkpoints, used_bytes, quota_bytes }: TenantUse,
): HarmovelaError {
  const message =
    `the tenant's quota of ${quota_bytes} bytes for checkpoints has no room for ${bytes} more: ` +
    `${used_bytes} are taken by ${checkpoints} checkpoints, each counted with ${CHARGE_BYTES} beside its bytes; ` +
    "end tasks that stay interrupted, store less, or have the operator raise HARMOVELA_CHECKPOINT_TENANT_BYTES";
  return new HarmovelaError("internal_error", message, {
    category: "policy",
    retry: "never",
    details: {
      reason: "checkpoint_quota",
      quota_bytes,
      used_bytes,
      needed_bytes: bytes + CHARGE_BYTES,
      checkpoints,
    },
  });
}
