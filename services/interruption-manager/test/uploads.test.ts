/** Checkpoints on their way: whole or sent anew, and never more of them than may be held. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FakeClock, pass } from "@harmovela/testkit";
import { RecentBlobs } from "../src/store/recent-blobs.ts";
import { type Upload, Uploads } from "../src/store/uploads.ts";

const MIB = 1024 * 1024;
const upload = (name: string, bytes: number, agent = "agent:a", tenant = "acme"): Upload => ({
  name,
  tenant,
  agent,
  bytes,
  digest: "d",
});
const part = (text: string) => new TextEncoder().encode(text);
const read = (taken: Uint8Array | { received: number }) =>
  taken instanceof Uint8Array ? new TextDecoder().decode(taken) : taken;

describe("an upload", () => {
  test("of one part is whole at once, and nothing is held", () => {
    const uploads = new Uploads(new FakeClock());
    assert.equal(read(uploads.take(upload("a", 3), 0, part("abc"))), "abc");
    assert.equal(read(uploads.take(upload("b", 0), 0, part(""))), "");
    assert.equal(uploads.size, 0);
  });

  test("is put together in order; a part that comes again changes nothing", () => {
    const uploads = new Uploads(new FakeClock());
    const whole = upload("a", 6);
    assert.deepEqual(uploads.take(whole, 0, part("ab")), { received: 2 });
    assert.deepEqual(uploads.take(whole, 2, part("cd")), { received: 4 });
    assert.deepEqual(uploads.take(whole, 2, part("cd")), { received: 4 });
    assert.deepEqual(uploads.take(whole, 5, part("f")), { received: 4 });
    assert.equal(read(uploads.take(whole, 4, part("ef"))), "abcdef");
    assert.equal(uploads.size, 0);
  });

  test("of which nothing is known is sent anew, and one that begins again begins again", () => {
    const uploads = new Uploads(new FakeClock());
    const whole = upload("a", 4);
    assert.deepEqual(uploads.take(whole, 2, part("cd")), { received: 0 });
    uploads.take(whole, 0, part("x"));
    assert.deepEqual(uploads.take(whole, 0, part("ab")), { received: 2 });
    assert.equal(read(uploads.take(whole, 2, part("cd"))), "abcd");
  });

  test("of another agent, another content or another name is another one", () => {
    const uploads = new Uploads(new FakeClock());
    uploads.take(upload("a", 4), 0, part("ab"));
    for (const other of [
      upload("a", 4, "agent:b"),
      upload("a", 5),
      upload("b", 4),
      { ...upload("a", 4), digest: "e" },
    ])
      assert.deepEqual(uploads.take(other, 2, part("cd")), { received: 0 });
    assert.equal(read(uploads.take(upload("a", 4), 2, part("cd"))), "abcd");
  });
});

describe("what is held", () => {
  test("is four for an agent and 128 MiB together, and goes when nothing comes for half a minute", async () => {
    const clock = new FakeClock();
    const uploads = new Uploads(clock);
    const eight = new Uint8Array(8 * MIB - 1);
    for (let count = 0; count < 4; count++) uploads.take(upload(`u${count}`, 8 * MIB), 0, eight);
    assert.throws(() => uploads.take(upload("u4", 8 * MIB), 0, eight), { retry: "now" });
    for (let agent = 0; agent < 12; agent++)
      uploads.take(upload("u", 8 * MIB, `agent:${agent}`), 0, eight);
    const last = upload("u", 8 * MIB, "agent:last");
    assert.throws(() => uploads.take(last, 0, eight), { retry: "now" });
    assert.equal(uploads.size, 16, "who was refused holds nothing");
    assert.equal(read(uploads.take(upload("small", 2, "agent:last"), 0, part("ab"))), "ab");
    clock.after(29_000, () => uploads.take(upload("u0", 8 * MIB), 0, eight));
    await pass(clock, 30_001);
    assert.equal(uploads.size, 1, "what went on stays");
    assert.deepEqual(uploads.take(last, 0, eight), { received: eight.length });
    uploads.close();
    assert.equal(uploads.size, 0);
  });

  test("of a tenant that holds most gives way to another one's, until they hold as much", () => {
    const uploads = new Uploads(new FakeClock());
    const eight = new Uint8Array(8 * MIB - 1);
    const begin = (tenant: string, at: number): void => {
      uploads.take(upload(`u${at % 4}`, 8 * MIB, `agent:${at >> 2}`, tenant), 0, eight);
    };
    for (let at = 0; at < 16; at += 1) begin("loud", at);
    assert.throws(() => begin("loud", 16), { retry: "now" });
    for (let at = 0; at < 8; at += 1) begin("quiet", at);
    assert.equal(uploads.size, 16);
    assert.throws(() => begin("quiet", 8), { retry: "now" });
    assert.throws(() => begin("loud", 17), { retry: "now" });
    // What was given up is sent anew, and nothing of the other's was.
    const lost = upload("u0", 8 * MIB, "agent:0", "loud");
    assert.deepEqual(uploads.take(lost, eight.length, part("x")), { received: 0 });
    const kept = upload("u0", 8 * MIB, "agent:0", "quiet");
    assert.ok(uploads.take(kept, eight.length, part("x")) instanceof Uint8Array);
    uploads.close();
  });
});

describe("what is read part by part", () => {
  test("is held for a while, and a tenant that reads a lot loses its own", async () => {
    const recent = new RecentBlobs(new FakeClock());
    let read = 0;
    const get = (tenant: string, name: string) =>
      recent.get(tenant, name, async () => {
        read += 1;
        return part(name);
      });
    await get("quiet", "q");
    for (let at = 0; at < 20; at += 1) await get("loud", `l${at}`);
    assert.equal(read, 21);
    await get("quiet", "q");
    await get("loud", "l19");
    assert.equal(read, 21);
    await get("loud", "l0");
    assert.equal(read, 22);
    recent.close();
  });
});
