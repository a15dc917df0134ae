/** Checkpoints on their way: whole or sent anew, and never more of them than may be held. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FakeClock, pass } from "@harmovela/testkit";
import { type Upload, Uploads } from "../src/store/uploads.ts";

const MIB = 1024 * 1024;
const upload = (name: string, bytes: number, owner = "acme agent:a"): Upload => ({
  name,
  owner,
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
      upload("a", 4, "acme agent:b"),
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
      uploads.take(upload("u", 8 * MIB, `acme agent:${agent}`), 0, eight);
    const last = upload("u", 8 * MIB, "acme agent:last");
    assert.throws(() => uploads.take(last, 0, eight), { retry: "now" });
    assert.equal(uploads.size, 16, "who was refused holds nothing");
    assert.equal(read(uploads.take(upload("small", 2, "acme agent:last"), 0, part("ab"))), "ab");
    clock.after(29_000, () => uploads.take(upload("u0", 8 * MIB), 0, eight));
    await pass(clock, 30_001);
    assert.equal(uploads.size, 1, "what went on stays");
    assert.deepEqual(uploads.take(last, 0, eight), { received: eight.length });
    uploads.close();
    assert.equal(uploads.size, 0);
  });
});
