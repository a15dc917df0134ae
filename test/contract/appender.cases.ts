import assert from "node:assert/strict";
import { test } from "node:test";
import type { Bus } from "@harmovela/bus";
import { appending, type BusUnderTest, bytes, freshSpec, range, text, Watched } from "./support.ts";

/** What a plain subscriber of the republished subjects sees, as texts. */
async function observing(bus: Bus, name: string): Promise<Watched<string[]>> {
  const seen = new Watched<string[]>([]);
  bus.subscribe(`${name}.ev.>`, (message) => {
    seen.value.push(text(message.data));
    seen.changed();
  });
  await bus.flush();
  return seen;
}

export function appenderCases(open: () => Promise<BusUnderTest>): void {
  test("appends are stored in order under the sequences that were foretold", async () => {
    await using server = await open();
    const bus = await server.connect("a");
    const spec = freshSpec();
    await bus.provision(spec);
    await bus.store(`${spec.name}.log.a`, {}, bytes("before"));
    const { appender, reported } = appending(bus, { stream: spec.name, last: 1, maxInFlight: 50 });
    const wanted = 1_000;
    const feed = (): void => {
      while (appender.last < 1 + wanted && appender.inFlight < 50) {
        const seq = appender.append(
          `${spec.name}.log.a`,
          { "Hv-At": String(appender.last + 1) },
          bytes(`entry ${appender.last + 1}`),
        );
        assert.equal(seq, appender.last);
      }
    };
    feed();
    assert.equal(appender.inFlight, 50);
    assert.throws(() => appender.append(`${spec.name}.log.a`, {}, bytes("x")), {
      code: "append_refused",
    });
    assert.equal(appender.inFlight, 50, "what was refused is not in flight");
    while (reported.value.acked < 1 + wanted) {
      const acked = reported.value.acked;
      await reported.until("more acknowledged", (is) => is.acked > acked);
      assert.equal(reported.value.acked, appender.acked);
      feed();
    }
    assert.deepEqual([appender.last, appender.acked, appender.inFlight], [1_001, 1_001, 0]);
    assert.equal(appender.isDead, false);
    assert.equal((await bus.streamState(spec.name))?.lastSeq, 1_001);
    for (const seq of [2, 500, 1_001]) {
      const read = await bus.read(spec.name, seq);
      assert.equal(read && text(read.data), `entry ${seq}`);
      assert.equal(read?.header("Hv-At"), String(seq));
    }
    await appender.close();
    assert.throws(() => appender.append(`${spec.name}.log.a`, {}, bytes("x")), { code: "closed" });
    assert.deepEqual(reported.value.failures, []);
  });

  test("observers see what is stored, in order, and no control entries", async () => {
    await using server = await open();
    const bus = await server.connect("a");
    const observer = await server.connect("observer");
    const spec = freshSpec();
    await bus.provision(spec);
    const seen = await observing(observer, spec.name);
    const { appender, reported } = appending(bus, { stream: spec.name, last: 0 });
    for (const n of range(1, 20)) {
      appender.append(`${spec.name}.${n % 5 === 0 ? "ctl" : "log"}.x`, {}, bytes(String(n)));
    }
    appender.append(`${spec.name}.log.x`, {}, bytes("end"));
    await reported.until("all acknowledged", (is) => is.acked === 21);
    await seen.until("the last one", (is) => is.at(-1) === "end");
    const shown = range(1, 20).filter((n) => n % 5 !== 0);
    assert.deepEqual(seen.value, [...shown.map(String), "end"]);
    await appender.close();
  });

  test("of two appenders that start at the same place one wins and the other is dead", async () => {
    await using server = await open();
    const bus = await server.connect("a");
    const other = await server.connect("b");
    const spec = freshSpec();
    await bus.provision(spec);
    await other.provision(spec);
    const one = appending(bus, { stream: spec.name, last: 0 });
    one.appender.append(`${spec.name}.log.a`, {}, bytes("one"));
    await one.reported.until("acknowledged", (is) => is.acked === 1);
    const two = appending(other, { stream: spec.name, last: 0 });
    two.appender.append(`${spec.name}.log.a`, {}, bytes("two"));
    await two.reported.until("refused", (is) => is.failures.length > 0);
    const [failure] = two.reported.value.failures;
    assert.deepEqual([failure?.reason, failure?.seq, failure?.apiCode], ["conflict", 1, 10071]);
    assert.equal(two.appender.isDead, true);
    assert.throws(() => two.appender.append(`${spec.name}.log.a`, {}, bytes("two")), {
      code: "closed",
    });
    one.appender.append(`${spec.name}.log.a`, {}, bytes("more"));
    await one.reported.until("goes on", (is) => is.acked === 2);
    assert.equal(two.reported.value.failures.length, 1, "said once");
    await one.appender.close();
  });

  test("nothing of a stale chain is stored, however far the stream has moved", async () => {
    await using server = await open();
    const bus = await server.connect("a");
    const stale = await server.connect("b");
    const spec = freshSpec();
    await bus.provision(spec);
    await stale.provision(spec);
    const seen = await observing(bus, spec.name);
    let last = 0;
    for (const moved of [1, 2, 4]) {
      const old = appending(stale, { stream: spec.name, last });
      const current = appending(bus, { stream: spec.name, last });
      const end = last + moved;
      while (current.appender.last < end) {
        current.appender.append(`${spec.name}.log.a`, {}, bytes("current"));
      }
      await current.reported.until("moved", (is) => is.acked === end);
      // The first `moved` of these are refused; the next one would fit by its sequence alone.
      for (const n of range(1, 10)) {
        old.appender.append(`${spec.name}.log.a`, {}, bytes(`stale ${n}`));
      }
      await old.reported.until("refused", (is) => is.failures.length > 0);
      assert.equal(old.reported.value.failures[0]?.reason, "conflict");
      await stale.flush();
      current.appender.append(`${spec.name}.log.a`, {}, bytes("current"));
      await current.reported.until("goes on", (is) => is.acked === end + 1);
      last = end + 1;
      await current.appender.close();
    }
    await seen.until("all that is stored", (is) => is.length === last);
    assert.deepEqual(new Set(seen.value), new Set(["current"]));
    assert.equal((await bus.streamState(spec.name))?.lastSeq, last);
  });

  test("an append that the server refuses ends the chain, and nothing after it is stored", async () => {
    await using server = await open();
    const bus = await server.connect("a");
    const spec = freshSpec();
    await bus.provision(spec);
    const { appender, reported } = appending(bus, { stream: spec.name, last: 0 });
    appender.append(`${spec.name}.log.a`, {}, bytes("good"));
    appender.append(`${spec.name}.log.a`, {}, new Uint8Array(10_001));
    appender.append(`${spec.name}.log.a`, {}, bytes("after"));
    await reported.until("refused", (is) => is.failures.length > 0);
    const [failure] = reported.value.failures;
    assert.deepEqual([failure?.reason, failure?.seq, failure?.apiCode], ["refused", 2, 10054]);
    await bus.flush();
    assert.equal((await bus.streamState(spec.name))?.lastSeq, 1);
  });

  test("appends to a subject that no stream takes are refused", async () => {
    await using server = await open();
    const bus = await server.connect("a");
    const spec = freshSpec();
    await bus.provision(spec);
    const { appender, reported } = appending(bus, { stream: spec.name, last: 0 });
    appender.append(`${spec.name}.nowhere`, {}, bytes("x"));
    await reported.until("refused", (is) => is.failures.length > 0);
    assert.equal(reported.value.failures[0]?.reason, "refused");
  });

  test("no answer is a failure of unknown outcome", async () => {
    await using server = await open();
    const bus = await server.connect("a");
    const spec = freshSpec();
    await bus.provision(spec);
    // Somebody listens there, but it is no stream and does not answer.
    bus.subscribe(`${spec.name}.nowhere`, () => {});
    await bus.flush();
    const { appender, reported } = appending(bus, {
      stream: spec.name,
      last: 0,
      ackTimeoutMs: 200,
    });
    appender.append(`${spec.name}.nowhere`, {}, bytes("x"));
    await reported.until("given up", (is) => is.failures.length > 0);
    const [failure] = reported.value.failures;
    assert.deepEqual([failure?.reason, failure?.seq, failure?.apiCode], ["unknown", 1, 0]);
  });

  test("a lost connection is a failure of unknown outcome, and what was acknowledged is stored", async () => {
    await using server = await open();
    const bus = await server.connect("a");
    const spec = freshSpec();
    await bus.provision(spec);
    const { appender, reported } = appending(bus, { stream: spec.name, last: 0 });
    const feed = (): void => {
      while (!appender.isDead && appender.inFlight < 100) {
        appender.append(`${spec.name}.log.a`, {}, bytes(`entry ${appender.last + 1}`));
      }
    };
    feed();
    await reported.until("some acknowledged", (is) => is.acked >= 50);
    feed();
    await server.restart();
    await reported.until("lost", (is) => is.failures.length > 0);
    assert.equal(reported.value.failures[0]?.reason, "unknown");
    const { acked } = reported.value;
    const state = await bus.streamState(spec.name);
    assert.ok(state && state.lastSeq >= acked && state.lastSeq <= appender.last);
    const read = await bus.read(spec.name, acked);
    assert.equal(read && text(read.data), `entry ${acked}`);
    // A new chain goes on from what is there.
    const next = appending(bus, { stream: spec.name, last: state.lastSeq });
    next.appender.append(`${spec.name}.log.a`, {}, bytes("next"));
    next.appender.append(`${spec.name}.log.a`, {}, bytes("next"));
    await next.reported.until("goes on", (is) => is.acked === state.lastSeq + 2);
    await next.appender.close();
  });
}
