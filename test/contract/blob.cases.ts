import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { type BusUnderTest, bytes, freshSpec, text } from "./support.ts";

export function blobCases(open: () => Promise<BusUnderTest>): void {
  test("blobs are kept by name, with notes, and outlive a restart", async () => {
    await using server = await open();
    const bus = await server.connect("a");
    const blobs = bus.openBlobs({ replicas: 1 });
    assert.deepEqual(await blobs.list(), []);
    assert.equal(await blobs.get("tasks.1"), undefined);
    const large = randomBytes(1_500_000);
    await blobs.put("tasks.2", large, { position: "2" });
    await blobs.put("tasks.1", bytes("one"), {});
    await blobs.put("empty", new Uint8Array(0));
    await server.restart();
    const other = (await server.connect("b")).openBlobs({ replicas: 1 });
    assert.deepEqual(await other.list(), [
      { name: "empty", bytes: 0, notes: {} },
      { name: "tasks.1", bytes: 3, notes: {} },
      { name: "tasks.2", bytes: large.length, notes: { position: "2" } },
    ]);
    assert.equal(Buffer.compare((await other.get("tasks.2")) ?? bytes(""), large), 0);
    assert.equal((await other.get("empty"))?.length, 0);
  });

  test("a blob is replaced and removed; what is not there is removed without a word", async () => {
    await using server = await open();
    const blobs = (await server.connect("a")).openBlobs({ replicas: 1 });
    await blobs.put("x", bytes("old"), { is: "old" });
    await blobs.put("x", bytes("new"), { is: "new" });
    assert.equal(text((await blobs.get("x")) ?? bytes("")), "new");
    assert.deepEqual(await blobs.list(), [{ name: "x", bytes: 3, notes: { is: "new" } }]);
    await blobs.remove("x");
    await blobs.remove("x");
    await blobs.remove("never");
    assert.equal(await blobs.get("x"), undefined);
    assert.deepEqual(await blobs.list(), []);
  });

  test("notes that would not fit into a message are refused", async () => {
    await using server = await open();
    const blobs = (await server.connect("a")).openBlobs({ replicas: 1 });
    await assert.rejects(blobs.put("x", bytes("x"), { long: "y".repeat(10_000) }), {
      code: "invalid_argument",
    });
    assert.deepEqual(await blobs.list(), []);
  });

  test("trimming removes what lies below, and the sequence goes on", async () => {
    await using server = await open();
    const bus = await server.connect("a");
    const spec = freshSpec();
    await bus.provision(spec);
    for (const n of [1, 2, 3, 4]) await bus.store(`${spec.name}.log.a`, {}, bytes(String(n)));
    await bus.trim(spec.name, 3);
    const state = await bus.streamState(spec.name);
    assert.deepEqual([state?.firstSeq, state?.lastSeq, state?.messages], [3, 4, 2]);
    assert.equal(await bus.read(spec.name, 2), undefined);
    assert.equal(text((await bus.read(spec.name, 3))?.data ?? bytes("")), "3");
    await bus.trim(spec.name, 1);
    await bus.trim(spec.name, 4);
    await server.restart();
    const { seq } = await bus.store(`${spec.name}.log.a`, {}, bytes("5"));
    assert.equal(seq, 5);
    assert.equal((await bus.streamState(spec.name))?.firstSeq, 4);
    await assert.rejects(bus.trim(spec.name, 0), { code: "invalid_argument" });
  });
}
