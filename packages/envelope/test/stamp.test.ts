import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type Envelope, stampDelivery, stampEnvelope } from "../src/index.ts";
import { bytesOf, envelope, goodEnvelope } from "./samples.ts";

const read = (bytes: Uint8Array): unknown => JSON.parse(new TextDecoder().decode(bytes));

function expected(value: Envelope, cursor: string, sequence: number): unknown {
  return JSON.parse(
    JSON.stringify({ ...value, delivery: { ...value.delivery, cursor, sequence } }),
  );
}

test("the stamped bytes are the same JSON with cursor and sequence set", () => {
  const space = fc.constantFrom("", " ", "\n", "\r\n\t ");
  const sequence = fc.nat({ max: Number.MAX_SAFE_INTEGER });
  fc.assert(
    fc.property(
      goodEnvelope,
      fc.nat({ max: 2 }),
      space,
      fc.string(),
      sequence,
      (value, indent, tail, cursor, n) => {
        const bytes = bytesOf(JSON.stringify(value, null, indent) + tail);
        const before = bytes.slice();
        const stamped = stampDelivery(bytes, value, cursor, n);
        assert.deepEqual(read(stamped), expected(value, cursor, n));
        assert.deepEqual(read(stampEnvelope(value, cursor, n)), expected(value, cursor, n));
        assert.deepEqual(bytes, before);
      },
    ),
    { numRuns: 500 },
  );
});

test("without delivery the arrived bytes stand as they are", () => {
  const text = '{ "id" : "é\\u0041", "n": 1.50, "__proto__": {"a": "}"} }';
  const stamped = stampDelivery(bytesOf(`${text} \n`), JSON.parse(text), "HV_LOG_TASKS:7", 3);
  assert.equal(
    new TextDecoder().decode(stamped),
    `${text.slice(0, -1)},"delivery":{"cursor":"HV_LOG_TASKS:7","sequence":3}}`,
  );
});

test("the sender's own cursor and sequence are dropped, its other delivery fields kept", () => {
  const value = envelope({
    delivery: {
      mode: "replayable",
      cursor: "mine",
      sequence: 99,
      retry: { max_attempts: 2 },
      x: 1,
    },
  });
  const stamped = stampDelivery(bytesOf(value), value, "s:1", 1);
  assert.deepEqual(read(stamped), {
    ...value,
    delivery: { mode: "replayable", cursor: "s:1", sequence: 1, retry: { max_attempts: 2 }, x: 1 },
  });
});

test("empty objects and views are stamped too", () => {
  const empty = {} as Envelope;
  for (const text of ["{}", "{ }", " {\n}\n"])
    assert.deepEqual(read(stampDelivery(bytesOf(text), empty, "c", 1)), {
      delivery: { cursor: "c", sequence: 1 },
    });
  const view = bytesOf('xx{"a":1}yy').subarray(2, 9);
  const value = { a: 1 } as unknown as Envelope;
  assert.deepEqual(read(stampDelivery(view, value, "c", 1)), {
    a: 1,
    delivery: { cursor: "c", sequence: 1 },
  });
});

test("bytes that end in no object are an error", () => {
  for (const text of ["", "  ", "[]", '{"a":1'])
    assert.throws(() => stampDelivery(bytesOf(text), envelope(), "c", 1), {
      code: "invalid_argument",
    });
});
