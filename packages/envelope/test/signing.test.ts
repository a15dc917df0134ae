/** The signed text of an envelope (spec section 8): RFC 8785, and nothing that the log adds; L11. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  canonicalJson,
  contentDigest,
  type Envelope,
  parseJson,
  signedForm,
} from "../src/index.ts";

/** RFC 8785, appendix B: IEEE 754 bits and what they are written as. */
const NUMBERS: [string, string][] = [
  ["0000000000000000", "0"],
  ["8000000000000000", "0"],
  ["0000000000000001", "5e-324"],
  ["8000000000000001", "-5e-324"],
  ["7fefffffffffffff", "1.7976931348623157e+308"],
  ["ffefffffffffffff", "-1.7976931348623157e+308"],
  ["4340000000000000", "9007199254740992"],
  ["c340000000000000", "-9007199254740992"],
  ["4430000000000000", "295147905179352830000"],
  ["44b52d02c7e14af5", "9.999999999999997e+22"],
  ["44b52d02c7e14af6", "1e+23"],
  ["44b52d02c7e14af7", "1.0000000000000001e+23"],
  ["444b1ae4d6e2ef4e", "999999999999999700000"],
  ["444b1ae4d6e2ef4f", "999999999999999900000"],
  ["444b1ae4d6e2ef50", "1e+21"],
  ["3eb0c6f7a0b5ed8c", "9.999999999999997e-7"],
  ["3eb0c6f7a0b5ed8d", "0.000001"],
  ["41b3de4355555553", "333333333.3333332"],
  ["41b3de4355555554", "333333333.33333325"],
  ["41b3de4355555555", "333333333.3333333"],
  ["41b3de4355555556", "333333333.3333334"],
  ["41b3de4355555557", "333333333.33333343"],
  ["becbf647612f3696", "-0.0000033333333333333333"],
  ["43143ff3c1cb0959", "1424953923781206.2"],
];

test("numbers are written as RFC 8785 lists them", () => {
  for (const [bits, text] of NUMBERS) {
    assert.equal(canonicalJson(Buffer.from(bits, "hex").readDoubleBE()), text, bits);
  }
});

test("the property order of RFC 8785, section 3.2.3", () => {
  const value = JSON.parse(
    '{"\\u20ac":"Euro Sign","\\r":"Carriage Return","\\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\\ud83d\\ude00":"Emoji: Grinning Face","\\u0080":"Control","\\u00f6":"Latin Small Letter O With Diaeresis"}',
  );
  assert.deepEqual(Object.values(JSON.parse(`[${canonicalJson(value)}]`)[0]).length, 7);
  const order = [...canonicalJson(value).matchAll(/:"([^"]+)"/g)].map(([, name]) => name);
  assert.deepEqual(order, [
    "Carriage Return",
    "One",
    "Control",
    "Latin Small Letter O With Diaeresis",
    "Euro Sign",
    "Emoji: Grinning Face",
    "Hebrew Letter Dalet With Dagesh",
  ]);
});

const envelope: Envelope = {
  spec_version: "0.2",
  id: "e",
  type: "memory.fact.added",
  source: "agent:a",
  created_at: "2026-11-30T10:00:00Z",
  payload: { fact_id: "f", value: "\ufffd" },
};

describe("the signed text", () => {
  test("names the tenant and holds neither stamps nor the signature", () => {
    const text = signedForm(
      {
        ...envelope,
        delivery: { cursor: "c:1" },
        authorization: { scheme: "jws-detached", token: "t" },
      },
      "acme",
    );
    assert.equal(text, signedForm(envelope, "acme"));
    assert.equal(
      text,
      '{"created_at":"2026-11-30T10:00:00Z","id":"e","payload":{"fact_id":"f","value":"\ufffd"},"source":"agent:a","spec_version":"0.2","tenant_id":"acme","type":"memory.fact.added"}',
    );
    assert.notEqual(text, signedForm(envelope, "other"));
  });

  test("holds every other authorization", () => {
    const other = { ...envelope, authorization: { scheme: "bearer", token: "t" } };
    assert.notEqual(signedForm(other, "acme"), signedForm(envelope, "acme"));
  });
});

test("L11: a lone surrogate never gets as far as a signature; what else is odd is one text for good", () => {
  for (const bad of ['"\\ud800"', '"\\ude00\\ud83d"', '{"\\udfff":1}']) {
    const json = parseJson(Buffer.from(JSON.stringify(envelope).replace('"\ufffd"', bad)));
    assert.equal(json.ok, false, bad);
  }
  for (const odd of ['"\\ufffd"', "1e21", "-0", '"\\ud83d\\ude00"', "1.0", "1E+2"]) {
    const json = parseJson(Buffer.from(JSON.stringify(envelope).replace('"\ufffd"', odd)));
    assert.ok(json.ok, odd);
    const once = signedForm(json.value as Envelope, "acme");
    const again = parseJson(Buffer.from(JSON.stringify(json.value)));
    assert.ok(again.ok);
    assert.equal(signedForm(again.value as Envelope, "acme"), once, odd);
  }
});

test("the digest of a content knows no stamps and no order of keys", () => {
  const digest = contentDigest(envelope);
  assert.match(digest, /^[\w-]{43}$/);
  assert.equal(contentDigest({ ...envelope, delivery: { sequence: 3 } }), digest);
  assert.notEqual(contentDigest({ ...envelope, id: "f" }), digest);
});
