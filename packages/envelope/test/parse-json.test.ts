import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { DEPTH_MAX, MESSAGE_BYTES_MAX, parseJson } from "../src/index.ts";
import { duplicateKeyOf } from "../src/json-text.ts";
import { scanJson } from "../src/scan.ts";
import { bytesOf } from "./samples.ts";

/** The message of the refusal, or undefined when the bytes are accepted. */
function refusal(bytes: Uint8Array): string | undefined {
  const result = parseJson(bytes);
  if (result.ok) return undefined;
  assert.equal(result.error.code, "invalid_envelope");
  assert.equal(result.error.retryable, false);
  return result.error.message;
}

const nested = (depth: number): string => `{"a":${"[".repeat(depth)}${"]".repeat(depth)}}`;

/** Whether JSON.stringify writes a whole number beyond 2^53-1 digit by digit (from 1e21 on it does not). */
function writesUnsafeInteger(value: unknown): boolean {
  if (typeof value === "number")
    return Number.isInteger(value) && !Number.isSafeInteger(value) && Math.abs(value) < 1e21;
  return typeof value === "object" && value !== null
    ? Object.values(value).some(writesUnsafeInteger)
    : false;
}

test("an object comes back as JSON.parse reads it", () => {
  fc.assert(
    fc.property(
      fc.dictionary(fc.string(), fc.jsonValue()),
      fc.constantFrom(0, 2),
      (value, space) => {
        const text = JSON.stringify(value, null, space);
        const result = parseJson(bytesOf(text));
        if (writesUnsafeInteger(value)) assert.equal(result.ok, false);
        else assert.deepEqual(result, { ok: true, value: JSON.parse(text) });
      },
    ),
  );
});

test("what is not a JSON object is refused without quoting it", () => {
  const rows = [
    "",
    " ",
    "{",
    "{not json",
    "null",
    "1",
    '"s"',
    "[]",
    "[{}]",
    "{}{}",
    "\ufeff{}",
    "{,}",
  ];
  for (const row of rows) assert.match(refusal(bytesOf(row)) ?? "", /is not (a )?JSON/, row);
  assert.ok(!refusal(bytesOf('{"token":sk-123}'))?.includes("sk-"));
});

test("bytes that are not UTF-8 are refused: cut, overlong, encoded surrogate", () => {
  for (const bad of [[0xc3], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xff]]) {
    const bytes = Uint8Array.from([0x7b, 0x22, ...bad, 0x22, 0x3a, 0x31, 0x7d]);
    assert.match(refusal(bytes) ?? "", /UTF-8/);
  }
  assert.equal(refusal(bytesOf('{"é😀":"\u200d"}')), undefined);
});

test("a message is at most 512 KiB, to the byte", () => {
  const fits = `{"a":"${"x".repeat(MESSAGE_BYTES_MAX - 8)}"}`;
  assert.equal(refusal(bytesOf(fits)), undefined);
  assert.match(refusal(bytesOf(`${fits} `)) ?? "", /larger/);
  assert.equal(parseJson(bytesOf("{}  "), { maxBytes: 3 }).ok, false);
});

test("64 levels are accepted and 65 refused; 200,000 are refused as fast", () => {
  assert.equal(refusal(bytesOf(nested(DEPTH_MAX - 1))), undefined);
  assert.match(refusal(bytesOf(nested(DEPTH_MAX))) ?? "", /deeper/);
  assert.match(refusal(bytesOf(nested(200_000))) ?? "", /deeper/);
  assert.match(refusal(bytesOf("[".repeat(400_000))) ?? "", /deeper/);
  assert.equal(refusal(bytesOf(`{"a":"${"[".repeat(100)}"}`)), undefined);
});

test("a key that stands twice in one object is refused and named", () => {
  const rows: [string, string][] = [
    ['{"a":1,"a":1}', "a"],
    ['{"a":1,"\\u0061":2}', "a"],
    ['{"b":{"c":[{"d":1,"e":2,"d":3}]}}', "d"],
    ['{"__proto__":1,"__proto__":2}', "__proto__"],
    ['{"":1,"":2}', ""],
    ['{"1":1,"1":2}', "1"],
    ['{"a\\"":1,"a\\"":2}', 'a"'],
  ];
  for (const [text, key] of rows) {
    const result = parseJson(bytesOf(text));
    assert.ok(!result.ok);
    assert.match(result.error.message, /twice/);
    assert.equal(result.error.details?.path, key, text);
  }
});

test("the same key in different objects, and colons and quotes in strings, are no duplicates", () => {
  const rows = [
    '{"a":{"a":1},"b":[{"a":1},{"a":2}]}',
    '{"a":":{\\":","b":"\\\\","c":"\\\\\\""}',
    '{"a\\\\":"x:y","b":"\\u003a"}',
    '{"__proto__":{"a":1},"constructor":{"prototype":2}}',
    '{"1":1,"01":2}',
  ];
  for (const row of rows) assert.equal(refusal(bytesOf(row)), undefined, row);
});

test("duplicates are found exactly: against a key-by-key reading of generated texts", () => {
  const key = fc.constantFrom("a", "b", "\\u0061", 'q\\"', "\\\\", ":", "{", "é");
  const { value } = fc.letrec<{ value: string; members: string }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom('""', '"a:b"', '"\\\\"', '"\\"}{"', "0", "-1.5e3", "true", "null", "[]"),
      tie("members"),
      fc.array(tie("value"), { maxLength: 3 }).map((items) => `[ ${items.join(" ,")}]`),
    ),
    members: fc
      .array(fc.tuple(key, tie("value")), { maxLength: 3 })
      .map((rows) => `{${rows.map(([name, part]) => `"${name}" :${part}`).join(",\n")}}`),
  }));
  let duplicates = 0;
  fc.assert(
    fc.property(value, (part) => {
      const text = `{"top":${part}}`;
      const members = text.match(/"(?:[^"\\]|\\.)*"\s*:/g)?.length ?? 0;
      assert.equal(scanJson(text, DEPTH_MAX).colons, members);
      const isDuplicate = duplicateKeyOf(text) !== undefined;
      if (isDuplicate) duplicates++;
      assert.equal(parseJson(bytesOf(text)).ok, !isDuplicate);
    }),
    { numRuns: 2000 },
  );
  assert.ok(duplicates > 50);
});

test("half of a surrogate pair is refused wherever it stands, a whole pair is not", () => {
  for (const row of [
    '{"a":"\\ud800"}',
    '{"a":["\\uDC00\\uD800"]}',
    '{"\\ud83d":1}',
    '{"a":"\\ud83dx"}',
  ])
    assert.match(refusal(bytesOf(row)) ?? "", /surrogate/, row);
  for (const row of ['{"a":"\\ud83d\\ude00"}', '{"a":"\\\\ud800"}', '{"a":"\\ufffd"}'])
    assert.equal(refusal(bytesOf(row)), undefined, row);
});

test("numbers that cannot be written again as they were are refused", () => {
  assert.match(refusal(bytesOf('{"a":1e999}')) ?? "", /too large/);
  assert.match(refusal(bytesOf('{"a":[-1e400]}')) ?? "", /too large/);
  for (const row of ["9007199254740992", "-9007199254740993", "123456789012345678901234567890"])
    assert.match(refusal(bytesOf(`{"a":{"b":${row}}}`)) ?? "", /2\^53/, row);
  for (const row of ["9007199254740991", "-9007199254740991", "1e21", "1.5e300", "-0", "0.1"])
    assert.equal(refusal(bytesOf(`{"a":${row},"b":"9007199254740993"}`)), undefined, row);
});

test("half a megabyte in one string, plain or escaped, is looked at again without harm", () => {
  for (const long of ["x".repeat(500_000), '\\"'.repeat(250_000), "\\\\".repeat(125_000)]) {
    const head = `{"a":"${long}"`;
    assert.match(refusal(bytesOf(`${head},"a":1}`)) ?? "", /twice/);
    assert.match(refusal(bytesOf(`${head},"b":9007199254740993}`)) ?? "", /2\^53/);
    assert.match(refusal(bytesOf(`${head},"b":"\\ud800"}`)) ?? "", /surrogate/);
    assert.equal(refusal(bytesOf(`${head}}`)), undefined);
  }
  assert.match(refusal(bytesOf(`{"a":${"9".repeat(300)}}`)) ?? "", /2\^53/);
  assert.match(refusal(bytesOf(`{"a":${"9".repeat(400_000)}}`)) ?? "", /too large/);
});

test("hostile keys change nothing outside the value", () => {
  const result = parseJson(bytesOf('{"__proto__":{"isAdmin":true},"toString":1}'));
  assert.ok(result.ok);
  assert.equal(Reflect.get({}, "isAdmin"), undefined);
  assert.ok(Object.hasOwn(result.value, "__proto__"));
});

test("a view into a larger buffer is read within its bounds", () => {
  const large = bytesOf('xx{"a":1}yy');
  assert.deepEqual(parseJson(large.subarray(2, 9)), { ok: true, value: { a: 1 } });
  assert.deepEqual(parseJson(Buffer.from(large).subarray(2, 9)), { ok: true, value: { a: 1 } });
});

test("any bytes get a verdict", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      const result = parseJson(bytes);
      if (result.ok) JSON.stringify(result.value);
      else assert.equal(result.error.code, "invalid_envelope");
    }),
  );
});
