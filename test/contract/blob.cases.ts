import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import type { BlobPage } from "@harmovela/bus";
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

  test("a bucket of another name is made when it may be, and holds other blobs", async () => {
    await using server = await open();
    const bus = await server.connect("a");
    const absent = bus.openBlobs({ bucket: "HV_OTHER", replicas: 1, mayCreate: false });
    for (const ask of [
      absent.put("x", bytes("x")),
      absent.get("x"),
      absent.page(0, 10),
      absent.removeIncomplete(0),
    ]) {
      await assert.rejects(ask, { code: "no_service" });
    }
    const other = bus.openBlobs({ bucket: "HV_OTHER", replicas: 1 });
    await other.put("x", bytes("other"));
    assert.equal(text((await absent.get("x")) ?? bytes("")), "other");
    assert.deepEqual(await bus.openBlobs({ replicas: 1 }).list(), []);
  });

  test("a bucket is walked through in pages, whatever was removed of it", async () => {
    await using server = await open();
    const blobs = (await server.connect("a")).openBlobs({ bucket: "HV_OTHER", replicas: 1 });
    assert.deepEqual(await blobs.page(0, 2), { blobs: [] });
    for (const name of ["a", "b/ü", "c", "d", "e"])
      await blobs.put(name, bytes(name), { is: name });
    await blobs.remove("c");
    await blobs.put("a", bytes("again"), { is: "again" });
    const seen: string[] = [];
    let from: number | undefined = 0;
    for (let count = 0; from !== undefined; count += 1) {
      assert.ok(count < 3);
      const page: BlobPage = await blobs.page(from, 2);
      seen.push(...page.blobs.map(({ name, bytes: size, notes }) => `${name} ${size} ${notes.is}`));
      assert.ok(page.blobs.every(({ at }) => Number.isSafeInteger(at) && at > 0));
      from = page.next;
    }
    assert.deepEqual(seen, ["b/ü 4 b/ü", "d 1 d", "e 1 e", "a 5 again"]);
  });

  test("a full bucket says so, and what is removed makes room", async () => {
    await using server = await open();
    const bus = await server.connect("a");
    const options = { bucket: "HV_SMALL", replicas: 1 };
    const blobs = bus.openBlobs({ ...options, maxBytes: 400_000 });
    await blobs.put("first", randomBytes(300_000));
    await assert.rejects(blobs.put("second", randomBytes(300_000)), { code: "store_full" });
    assert.deepEqual(
      (await blobs.list()).map(({ name }) => name),
      ["first"],
    );
    await blobs.remove("first");
    await blobs.put("second", randomBytes(300_000));
    // Whoever sets another bound sets it of the bucket that is there.
    const roomier = bus.openBlobs({ ...options, maxBytes: 1_000_000 });
    await roomier.put("third", randomBytes(300_000));
    await bus
      .openBlobs({ ...options, mayCreate: false, maxBytes: 10 })
      .put("x", randomBytes(100_000));
    assert.equal((await blobs.list()).length, 3);
    assert.equal(await blobs.removeIncomplete(0), 0);
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
