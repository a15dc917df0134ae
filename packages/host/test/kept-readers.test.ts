/** Readers that replays keep: a tenant with many agents loses its own, and no other tenant's. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { logStreamSpec, MemoryServer, systemClock } from "@harmovela/bus";
import { type KeptReader, KeptReaders } from "../src/replay/kept-readers.ts";

test("of all tenants the one that has most gives way, and where all are equal the one that asks", async (t) => {
  const server = new MemoryServer({ clock: systemClock, now: () => 0, latencyMs: 0 });
  const bus = server.connect({ name: "test" });
  const spec = logStreamSpec("tasks");
  await bus.provision(spec);
  const readers = new KeptReaders(bus, systemClock, spec.name);
  t.after(() => readers.close());
  const nameOf = (tenant: string, at: number) => ({ tenant, agent: `agent:${at}`, filter: "hv.>" });
  const open = (tenant: string, at: number): void => {
    const opened = readers.open(nameOf(tenant, at), 0);
    assert.ok(opened);
    readers.release(opened, 0);
  };
  const find = (tenant: string, at: number): KeptReader | undefined => {
    const found = readers.find(nameOf(tenant, at), 0);
    if (found) readers.release(found, 0);
    return found;
  };
  for (let at = 0; at < 3; at += 1) open("quiet", at);
  for (let at = 0; at < 200; at += 1) open("loud", at);
  assert.equal(readers.size, 64);
  for (let at = 0; at < 3; at += 1) assert.ok(find("quiet", at));
  assert.ok(find("loud", 199));
  assert.equal(find("loud", 138), undefined, "its own that was used longest ago has gone");
  for (let at = 3; at < 40; at += 1) open("quiet", at);
  const left = (tenant: string) =>
    Array.from({ length: 200 }, (_, at) => find(tenant, at)).filter(Boolean).length;
  assert.deepEqual([left("quiet"), left("loud")], [32, 32]);
});
