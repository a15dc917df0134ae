/** What each tenant may store: counted from the bucket, refused by name, freed of what nobody can go on from. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  type Blobs,
  CHECKPOINT_BUCKET,
  checkpointName,
  MemoryServer,
  systemClock,
} from "@harmovela/bus";
import { HarmovelaError } from "@harmovela/failure";
import { FakeClock, pass } from "@harmovela/testkit";
import { storeFrom } from "../src/environment.ts";
import { tenantBytesOf } from "../src/store/checkpoint-store.ts";
import { CHARGE_BYTES, type Claim, TenantRoom } from "../src/store/tenant-room.ts";

const QUOTA = 4 * CHARGE_BYTES;
const NOW = Date.UTC(2026, 10, 30, 10);
/** Three of them are all that fits. */
const BYTES = 5_000;

class Scene {
  readonly clock = new FakeClock();
  readonly blobs: Blobs;
  readonly garbage = new Set<string>();
  readonly looked: number[] = [];
  readonly room: TenantRoom;

  constructor() {
    const server = new MemoryServer({ clock: systemClock, now: () => NOW, latencyMs: 0 });
    const stored = server.connect({ name: "test" }).openBlobs({
      bucket: CHECKPOINT_BUCKET,
      replicas: 1,
    });
    const { looked } = this;
    this.blobs = {
      ...stored,
      page: (from, limit) => {
        looked.push(from);
        return stored.page(from, limit);
      },
    };
    this.room = new TenantRoom({
      blobs: this.blobs,
      clock: this.clock,
      quotaBytes: QUOTA,
      mayGiveWay: ({ name }) => this.garbage.has(name),
    });
  }

  claim(tenant: string, id: string, more: Partial<Claim> = {}): Promise<void> {
    return this.room.claim({ ...claimOf(tenant, id), ...more });
  }

  /** Claimed and stored, as the manager does. */
  async store(tenant: string, id: string): Promise<void> {
    await this.claim(tenant, id);
    await this.put(tenant, id);
  }

  put(tenant: string, id: string): Promise<void> {
    return this.blobs.put(nameOf(tenant, id), new Uint8Array(BYTES));
  }

  async used(tenant: string, epoch = 1): Promise<[number, number]> {
    const { checkpoints, used_bytes } = await this.room.use({ tenant, epoch });
    return [checkpoints, used_bytes];
  }
}

const nameOf = (tenant: string, id: string): string => checkpointName(tenant, "t", id);
const claimOf = (tenant: string, id: string): Claim => ({
  tenant,
  name: nameOf(tenant, id),
  bytes: BYTES,
  epoch: 1,
  now: NOW,
});
const isQuota = (error: unknown): boolean =>
  error instanceof HarmovelaError && error.details?.reason === "checkpoint_quota";

describe("a tenant", () => {
  test("over its quota is told quota, use and how to free room; others go on", async () => {
    const scene = new Scene();
    for (const id of ["a", "b", "c"]) await scene.store("acme", id);
    await assert.rejects(scene.claim("acme", "d"), (error) => {
      assert.ok(error instanceof HarmovelaError && error.retry === "never");
      assert.deepEqual(error.details, {
        reason: "checkpoint_quota",
        quota_bytes: QUOTA,
        used_bytes: 3 * (BYTES + CHARGE_BYTES),
        needed_bytes: BYTES + CHARGE_BYTES,
        checkpoints: 3,
      });
      assert.match(error.message, /HARMOVELA_CHECKPOINT_TENANT_BYTES/);
      return true;
    });
    await scene.store("beta", "a");
    assert.deepEqual(await scene.used("beta"), [1, BYTES + CHARGE_BYTES]);
    assert.deepEqual(await scene.used("nobody"), [0, 0]);
  });

  test("has room again when one was removed, and one of the same name takes no more", async () => {
    const scene = new Scene();
    for (const id of ["a", "b", "c"]) await scene.store("acme", id);
    await scene.claim("acme", "c");
    await scene.blobs.remove(nameOf("acme", "a"));
    scene.room.removed(nameOf("acme", "a"));
    await scene.claim("acme", "d");
    await assert.rejects(scene.claim("acme", "e"), isQuota);
  });

  test("of which many ask at once gets no more than its quota", async () => {
    const scene = new Scene();
    const asked = ["a", "b", "c", "d", "e", "f"].map((id) => scene.claim("acme", id));
    const results = await Promise.allSettled(asked);
    assert.equal(results.filter(({ status }) => status === "fulfilled").length, 3);
  });

  test("stores no more small ones than are counted for their number", async () => {
    const scene = new Scene();
    for (const id of ["a", "b", "c", "d"]) await scene.claim("acme", id, { bytes: 0 });
    await assert.rejects(scene.claim("acme", "e", { bytes: 0 }), isQuota);
  });

  test("loses for a new one what nobody can go on from, the oldest first, and nothing else", async () => {
    const scene = new Scene();
    for (const id of ["live", "old", "older"]) await scene.put("acme", id);
    await scene.put("beta", "old");
    for (const tenant of ["acme", "beta"]) scene.garbage.add(nameOf(tenant, "old"));
    scene.garbage.add(nameOf("acme", "older"));
    await scene.claim("acme", "new");
    const left = (await scene.blobs.list()).map(({ name }) => name);
    assert.deepEqual(
      left,
      ["live", "older"].map((id) => nameOf("acme", id)).concat(nameOf("beta", "old")),
    );
  });
});

describe("the count", () => {
  test("begins with what lies in the bucket, whoever put it there, and anew with each leadership", async () => {
    const scene = new Scene();
    for (const id of ["a", "b", "c"]) await scene.put("a.b", id);
    await scene.blobs.put("no name of a checkpoint", new Uint8Array(BYTES));
    await assert.rejects(scene.claim("a.b", "d"), isQuota);
    for (const id of ["a", "b", "c"]) await scene.blobs.remove(nameOf("a.b", id));
    await scene.claim("a.b", "d", { epoch: 2 });
  });

  test("is made again before somebody is refused, but not for every refusal", async () => {
    const scene = new Scene();
    for (const id of ["a", "b", "c"]) await scene.put("acme", id);
    await assert.rejects(scene.claim("acme", "d"), isQuota);
    await scene.blobs.remove(nameOf("acme", "a"));
    for (let asked = 0; asked < 5; asked++) await assert.rejects(scene.claim("acme", "d"), isQuota);
    assert.equal(scene.looked.length, 1);
    await pass(scene.clock, 10_000);
    await scene.claim("acme", "d");
    assert.equal(scene.looked.length, 2);
  });

  test("finds after ten minutes what was put there meanwhile, though nobody is refused", async () => {
    const scene = new Scene();
    await scene.store("acme", "a");
    for (const id of ["b", "c"]) await scene.put("acme", id);
    assert.deepEqual(await scene.used("acme"), [1, BYTES + CHARGE_BYTES]);
    await pass(scene.clock, 600_000);
    assert.deepEqual(await scene.used("acme"), [3, 3 * (BYTES + CHARGE_BYTES)]);
  });

  test("lets go of a claim that was never stored, when it has had time to be", async () => {
    const scene = new Scene();
    for (const id of ["a", "b", "c"]) await scene.claim("acme", id);
    await pass(scene.clock, 20_000);
    await assert.rejects(scene.claim("acme", "d"), isQuota);
    await pass(scene.clock, 60_000);
    await scene.claim("acme", "d");
    assert.deepEqual(await scene.used("acme"), [1, BYTES + CHARGE_BYTES]);
  });

  test("that fails refuses nobody for good", async () => {
    const scene = new Scene();
    let isAway = true;
    const room = new TenantRoom({
      blobs: {
        ...scene.blobs,
        page: (from, limit) => {
          if (isAway) throw new HarmovelaError("timeout", "no answer in time");
          return scene.blobs.page(from, limit);
        },
      },
      clock: scene.clock,
      quotaBytes: QUOTA,
      mayGiveWay: () => false,
    });
    await assert.rejects(room.claim(claimOf("acme", "a")), { code: "timeout" });
    isAway = false;
    await room.claim(claimOf("acme", "a"));
  });
});

describe("the settings", () => {
  test("a quarter of the room is a tenant's, and no less than a few of the largest", () => {
    const mib = 1024 * 1024;
    assert.equal(tenantBytesOf(1024 * mib), 256 * mib);
    assert.equal(tenantBytesOf(64 * mib), 32 * mib);
  });

  test("are read from the environment, and what is wrong is named", () => {
    const problems: string[] = [];
    const given = {
      HARMOVELA_CHECKPOINT_BYTES: "2000000000",
      HARMOVELA_CHECKPOINT_TENANT_BYTES: "100000000",
    };
    assert.deepEqual(storeFrom(given, problems), { maxBytes: 2e9, tenantBytes: 1e8 });
    assert.deepEqual(storeFrom({}, problems), {});
    assert.deepEqual(problems, []);
    assert.deepEqual(storeFrom({ HARMOVELA_CHECKPOINT_TENANT_BYTES: "1" }, problems), {});
    assert.match(problems.join(), /HARMOVELA_CHECKPOINT_TENANT_BYTES/);
  });
});
