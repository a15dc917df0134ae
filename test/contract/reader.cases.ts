import assert from "node:assert/strict";
import { test } from "node:test";
import type { Bus, StreamSpec } from "@harmovela/bus";
import {
  appending,
  type BusUnderTest,
  bytes,
  collect,
  freshSpec,
  range,
  sequences,
  text,
} from "./support.ts";

/** Appends entries up to a sequence; resolves when all are acknowledged. */
async function fill(bus: Bus, spec: StreamSpec, last: number, to: number): Promise<void> {
  const { appender, reported } = appending(bus, { stream: spec.name, last });
  while (appender.last < to) {
    if (appender.inFlight < 200) {
      const seq = appender.last + 1;
      const kind = seq % 10 === 0 ? "ctl" : "log";
      appender.append(`${spec.name}.${kind}.a`, { "Hv-At": String(seq) }, bytes(`entry ${seq}`));
    } else {
      const { acked } = reported.value;
      await reported.until("more acknowledged", (is) => is.acked > acked);
    }
  }
  await reported.until("all acknowledged", (is) => is.acked === to);
  await appender.close();
}

export function readerCases(open: () => Promise<BusUnderTest>): void {
  test("a reader replays from its start and goes on live, in order", async () => {
    await using server = await open();
    const bus = await server.connect("a");
    const spec = freshSpec();
    await bus.provision(spec);
    await fill(bus, spec, 0, 3_000);
    const all = collect(bus, spec.name, { after: 0 });
    const some = collect(bus, spec.name, { after: 2_990 });
    assert.equal(some.reader.position, 2_990);
    await all.taken.until("the replay", (is) => is.length === 3_000);
    await some.taken.until("the replay", (is) => is.length === 10);
    await fill(bus, spec, 3_000, 3_050);
    await all.taken.until("live", (is) => is.length === 3_050);
    await some.taken.until("live", (is) => is.length === 60);
    assert.deepEqual(sequences(all.taken.value), range(1, 3_050));
    assert.deepEqual(sequences(some.taken.value), range(2_991, 3_050));
    assert.equal(all.reader.position, 3_050);
    for (const message of some.taken.value) {
      assert.equal(text(message.data), `entry ${message.seq}`);
      assert.equal(message.header("Hv-At"), String(message.seq));
      assert.equal(message.header("Hv-Cause"), "");
      const kind = message.seq % 10 === 0 ? "ctl" : "log";
      assert.equal(message.subject, `${spec.name}.${kind}.a`);
      const read = message.seq % 20 === 0 ? await bus.read(spec.name, message.seq) : message;
      assert.equal(read?.time, message.time, "both ways of reading say the same time");
    }
    await all.reader.close();
    await some.reader.close();
  });

  test("a filter leaves out the rest", async () => {
    await using server = await open();
    const bus = await server.connect("a");
    const spec = freshSpec();
    await bus.provision(spec);
    await fill(bus, spec, 0, 50);
    const { reader, taken } = collect(bus, spec.name, { after: 10, filter: `${spec.name}.ctl.>` });
    await taken.until("the control entries", (is) => is.length === 4);
    assert.deepEqual(sequences(taken.value), [20, 30, 40, 50]);
    await reader.close();
  });

  test("read-ahead is bounded, and a slow taker loses nothing", async () => {
    await using server = await open();
    const bus = await server.connect("a");
    const spec = freshSpec();
    await bus.provision(spec);
    await fill(bus, spec, 0, 500);
    let ready = 0;
    let onReady = (): void => {};
    const reader = bus.openReader(spec.name, {
      after: 0,
      maxBuffered: 16,
      onReady: () => {
        ready += 1;
        onReady();
      },
    });
    const taken: number[] = [];
    let most = 0;
    await new Promise<void>((resolve) => {
      const takeThree = (): void => {
        most = Math.max(most, reader.buffered);
        taken.push(...sequences(reader.take(3)));
        if (taken.length === 500) resolve();
        else if (reader.buffered > 0) setImmediate(takeThree);
      };
      onReady = () => setImmediate(takeThree);
      if (ready > 0) setImmediate(takeThree);
    });
    assert.ok(most <= 16, `${most} were buffered`);
    assert.deepEqual(taken, range(1, 500));
    assert.deepEqual(reader.take(5), []);
    await reader.close();
  });

  test("what was deleted or trimmed is passed over", async () => {
    await using server = await open();
    const bus = await server.connect("a");
    const spec = freshSpec();
    await bus.provision(spec);
    await fill(bus, spec, 0, 100);
    await server.trim(spec.name, 31);
    await server.purge(spec.name, `${spec.name}.ctl.a`);
    const { reader, taken } = collect(bus, spec.name, { after: 5 });
    await fill(bus, spec, 100, 115);
    await taken.until("the last", (is) => is.at(-1)?.seq === 115);
    assert.deepEqual(
      sequences(taken.value),
      range(31, 115).filter((seq) => seq % 10 !== 0 || seq === 110),
    );
    assert.equal((await bus.streamState(spec.name))?.firstSeq, 31);
    await reader.close();
  });

  test("a reader ahead of the stream reports nothing until the stream has passed it", async () => {
    await using server = await open();
    const bus = await server.connect("a");
    const spec = freshSpec();
    await bus.provision(spec);
    await fill(bus, spec, 0, 10);
    const { reader, taken } = collect(bus, spec.name, { after: 20 });
    await bus.flush();
    await fill(bus, spec, 10, 22);
    await taken.until("the first beyond", (is) => is.length === 2);
    assert.deepEqual(sequences(taken.value), [21, 22]);
    await reader.close();
  });

  test("a reader may be there before its stream", async () => {
    await using server = await open();
    const bus = await server.connect("a");
    const spec = freshSpec();
    const { reader, taken } = collect(bus, spec.name, { after: 0 });
    await bus.flush();
    await bus.provision(spec);
    await fill(bus, spec, 0, 5);
    await taken.until("all", (is) => is.length === 5);
    assert.deepEqual(sequences(taken.value), range(1, 5));
    await reader.close();
  });

  test("a killed server loses the reader nothing and repeats nothing", async () => {
    await using server = await open();
    const bus = await server.connect("a");
    const spec = freshSpec();
    await bus.provision(spec);
    await fill(bus, spec, 0, 2_000);
    const { reader, taken } = collect(bus, spec.name, { after: 0, maxBuffered: 100, takeMax: 7 });
    await taken.until("some", (is) => is.length >= 300);
    await server.restart();
    const { lastSeq } = (await bus.streamState(spec.name)) ?? { lastSeq: -1 };
    assert.equal(lastSeq, 2_000);
    await fill(bus, spec, 2_000, 2_100);
    await taken.until("all", (is) => is.length >= 2_100);
    await server.restart();
    await fill(bus, spec, 2_100, 2_110);
    await taken.until("all", (is) => is.length >= 2_110);
    assert.deepEqual(sequences(taken.value), range(1, 2_110));
    await reader.close();
  });

  test("a closed reader is silent", async () => {
    await using server = await open();
    const bus = await server.connect("a");
    const spec = freshSpec();
    await bus.provision(spec);
    const closed = collect(bus, spec.name, { after: 0 });
    await closed.reader.close();
    await fill(bus, spec, 0, 3);
    const other = collect(bus, spec.name, { after: 0 });
    await other.taken.until("all", (is) => is.length === 3);
    assert.deepEqual(closed.taken.value, []);
    await other.reader.close();
  });
}
