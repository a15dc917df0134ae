import assert from "node:assert/strict";
import { test } from "node:test";
import { type BusUnderTest, bytes, freshSpec, text } from "./support.ts";

export function streamCases(open: () => Promise<BusUnderTest>): void {
  test("a stream is created once and then checked", async () => {
    await using server = await open();
    const bus = await server.connect("a");
    const spec = freshSpec({ maxBytes: 1_000_000 });
    const made = await bus.provision(spec);
    assert.deepEqual(
      { ...made, created: "" },
      {
        name: spec.name,
        firstSeq: 0,
        lastSeq: 0,
        messages: 0,
        bytes: 0,
        maxBytes: 1_000_000,
        created: "",
      },
    );
    assert.match(made.created, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$/);
    await bus.store(`${spec.name}.log.a`, {}, bytes("one"));
    const again = await bus.provision(spec);
    assert.equal(again.created, made.created);
    assert.deepEqual([again.firstSeq, again.lastSeq, again.messages], [1, 1, 1]);
    assert.deepEqual(await bus.streamState(spec.name), again);
  });

  test("a stream that is not as asked for is refused, naming each difference", async () => {
    await using server = await open();
    const bus = await server.connect("a");
    const spec = freshSpec();
    await bus.provision(spec);
    const other = { ...spec, maxAgeMs: 60_000, maxMessageBytes: 5_000 };
    await assert.rejects(bus.provision(other), (error: { code: string; details: unknown }) => {
      assert.equal(error.code, "stream_mismatch");
      const said = JSON.stringify(error.details);
      assert.match(said, /max_?age/i);
      assert.match(said, /max_?m(?:sg_size|essageBytes)/i);
      assert.doesNotMatch(said, /republish/);
      return true;
    });
    const { republish: _, ...silent } = spec;
    await assert.rejects(bus.provision(silent), (error: { code: string; details: unknown }) => {
      assert.equal(error.code, "stream_mismatch");
      assert.match(JSON.stringify(error.details), /republish/);
      return true;
    });
  });

  test("what does not exist is undefined", async () => {
    await using server = await open();
    const bus = await server.connect("a");
    const spec = freshSpec();
    assert.equal(await bus.streamState(spec.name), undefined);
    await assert.rejects(bus.read(spec.name, 1), { code: "no_service" });
    await assert.rejects(bus.next(spec.name, 0, ">"), { code: "no_service" });
    await bus.provision(spec);
    assert.equal(await bus.read(spec.name, 1), undefined);
    assert.equal(await bus.next(spec.name, 0, ">"), undefined);
  });

  test("what is stored is read back byte for byte, with its headers and the broker's time", async () => {
    await using server = await open();
    const bus = await server.connect("a");
    const spec = freshSpec();
    await bus.provision(spec);
    const data = new Uint8Array(256).map((_, index) => index);
    const before = Date.now();
    const stored = await bus.store(
      `${spec.name}.log.a`,
      { "Hv-Cause": "in:7", traceparent: " trimmed: é ", "Hv-Seen": "" },
      data,
    );
    assert.deepEqual(stored, { stream: spec.name, seq: 1 });
    const read = await bus.read(spec.name, 1);
    assert.ok(read);
    assert.equal(read.seq, 1);
    assert.equal(read.subject, `${spec.name}.log.a`);
    assert.deepEqual(new Uint8Array(read.data), data);
    assert.equal(read.header("Hv-Cause"), "in:7");
    assert.equal(read.header("traceparent"), "trimmed: é");
    assert.equal(read.header("Hv-Seen"), "");
    assert.equal(read.header("hv-cause"), "", "names are case-sensitive");
    assert.equal(read.header("Cause"), "");
    assert.ok(Number.isInteger(read.time));
    assert.ok(read.time >= before - 5_000 && read.time <= Date.now() + 5_000);
  });

  test("the newest message of a subject, and a publish that must follow it", async () => {
    await using server = await open();
    const bus = await server.connect("a");
    const spec = freshSpec();
    await assert.rejects(bus.lastOn(spec.name, "x"), { code: "no_service" });
    await bus.provision(spec);
    const [a, b] = [`${spec.name}.log.a`, `${spec.name}.log.b`];
    const after = (seq: number) => ({ "Nats-Expected-Last-Subject-Sequence": String(seq) });
    const seqOf = async (subject: string) => (await bus.lastOn(spec.name, subject))?.seq;
    assert.equal(await seqOf(a), undefined);
    assert.equal((await bus.store(a, after(0), bytes("one"))).seq, 1);
    await bus.store(b, {}, bytes("other"));
    const conflict = { code: "append_conflict" };
    await assert.rejects(bus.store(a, after(0), bytes("two")), conflict);
    await assert.rejects(bus.store(a, after(2), bytes("two")), conflict);
    await bus.store(a, after(1), bytes("two"));
    const last = await bus.lastOn(spec.name, a);
    assert.deepEqual([last?.seq, last && text(last.data), last?.subject], [3, "two", a]);
    assert.equal(await seqOf(b), 2);
  });

  test("a full stream that discards what is old takes what is new", async () => {
    await using server = await open();
    const bus = await server.connect("a");
    const { republish: _, ...spec } = freshSpec({
      maxBytes: 4_000,
      discard: "old",
      denyPurge: true,
    });
    await bus.provision(spec);
    await assert.rejects(bus.provision({ ...spec, denyPurge: false }), { code: "stream_mismatch" });
    for (let n = 0; n < 10; n++) await bus.store(`${spec.name}.log.a`, {}, new Uint8Array(1_000));
    const state = await bus.streamState(spec.name);
    assert.equal(state?.lastSeq, 10);
    assert.ok((state?.firstSeq ?? 0) > 5 && (state?.bytes ?? 0) <= 4_000, JSON.stringify(state));
  });

  test("the next message of a kind is found, over others and over what is gone", async () => {
    await using server = await open();
    const bus = await server.connect("a");
    const spec = freshSpec();
    await bus.provision(spec);
    for (const last of ["log.a", "log.b", "ctl.a", "log.b", "log.a"])
      await bus.store(`${spec.name}.${last}`, { "Hv-At": last }, bytes(last));
    const next = async (after: number, filter: string) => {
      const found = await bus.next(spec.name, after, `${spec.name}.${filter}`);
      if (found) assert.equal(`${spec.name}.${text(found.data)}`, found.subject);
      return found && [found.seq, found.header("Hv-At")];
    };
    assert.deepEqual(await next(0, "log.>"), [1, "log.a"]);
    assert.deepEqual(await next(1, "log.a"), [5, "log.a"]);
    assert.deepEqual(await next(1, "*.a"), [3, "ctl.a"]);
    assert.equal(await next(3, "ctl.>"), undefined);
    assert.equal(await next(5, "log.>"), undefined);
    assert.equal(await next(1_000, "log.>"), undefined);
    await server.trim(spec.name, 4);
    assert.deepEqual(await next(0, "log.>"), [4, "log.b"]);
  });

  test("a message without data and without headers is a message", async () => {
    await using server = await open();
    const bus = await server.connect("a");
    const spec = freshSpec();
    await bus.provision(spec);
    await bus.store(`${spec.name}.log.a`, {}, bytes(""));
    const read = await bus.read(spec.name, 1);
    assert.equal(read && text(read.data), "");
    assert.equal(read?.header("Hv-Cause"), "");
  });

  test("storing is refused with a typed error", async () => {
    await using server = await open();
    const bus = await server.connect("a");
    const spec = freshSpec({ maxBytes: 2_000 });
    await bus.provision(spec);
    const subject = `${spec.name}.log.a`;
    await assert.rejects(bus.store(`${spec.name}.nowhere`, {}, bytes("x")), { code: "no_service" });
    await assert.rejects(bus.store(subject, {}, new Uint8Array(10_001)), (error: unknown) => {
      const { code, retry, details } = error as {
        code: string;
        retry: unknown;
        details: { api_code: number };
      };
      assert.deepEqual([code, retry, details.api_code], ["append_refused", "never", 10054]);
      return true;
    });
    await assert.rejects(bus.store(subject, {}, new Uint8Array(3_000)), (error: unknown) => {
      const { code, retry } = error as { code: string; retry: unknown };
      assert.equal(code, "append_refused");
      assert.notEqual(retry, "never", "there may be room later");
      return true;
    });
    assert.equal((await bus.streamState(spec.name))?.lastSeq, 0);
  });

  test("nothing breaks out of a header or a subject", async () => {
    await using server = await open();
    const bus = await server.connect("a");
    const spec = freshSpec();
    await bus.provision(spec);
    const subject = `${spec.name}.log.a`;
    const broken: Record<string, string>[] = [
      { a: "x\r\nNats-Rollup: all" },
      { "a:b": "x" },
      { "a\r\nb": "x" },
    ];
    for (const headers of broken) {
      await assert.rejects(bus.store(subject, headers, bytes("x")), { code: "invalid_argument" });
    }
    const hostile = [
      `${spec.name}.log.*`,
      `${spec.name}.log.>`,
      `${spec.name}.log..a`,
      `${spec.name}.log.a b`,
      `${spec.name}.log.\r\nPUB x 0\r\n`,
      `${spec.name}.log.${"x".repeat(5_000)}`,
      "",
    ];
    for (const bad of hostile) {
      await assert.rejects(bus.store(bad, {}, bytes("x")), { code: "invalid_argument" });
      assert.throws(() => bus.publish(bad, {}, bytes("x")), { code: "invalid_argument" });
    }
    assert.equal((await bus.streamState(spec.name))?.lastSeq, 0);
    assert.equal(bus.isConnected, true);
  });
}
