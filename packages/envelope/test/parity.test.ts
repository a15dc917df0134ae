import assert from "node:assert/strict";
import { test } from "node:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import fc from "fast-check";
import {
  checkEnvelope,
  checkPayload,
  type Envelope,
  envelopeSchema,
  filterSchema,
  jsonSchemas,
  payloadSchemas,
} from "../src/index.ts";
import { PAYLOAD_FIELDS } from "../src/payload-fields.ts";
import { FULL_PAYLOADS } from "./full-payloads.ts";
import { anyEnvelope, anyPayload, anyType, envelope, FULL_ENVELOPE } from "./samples.ts";

const ajv = new Ajv2020({
  strict: true,
  strictRequired: false,
  strictTypes: false,
  allErrors: false,
});
// The package is CommonJS: under NodeNext its default export is the module object.
(formats as unknown as (instance: Ajv2020) => void)(ajv);
const validators = new Map(
  Object.entries(jsonSchemas()).map(([name, schema]) => [name, ajv.compile(schema)]),
);

function ajvAccepts(file: string, value: unknown): boolean {
  const validate = validators.get(file);
  assert.ok(validate);
  return validate(value) === true;
}

const zodAccepts = (value: unknown): boolean => envelopeSchema.safeParse(value).success;
const payloadFile = "harmovela-payloads.schema.json";
const envelopeFile = "harmovela-envelope.schema.json";

test("the quick verdict on envelopes is the schema's", () => {
  fc.assert(
    fc.property(anyEnvelope, (value) => {
      assert.equal(checkEnvelope(value).ok, zodAccepts(value));
    }),
    { numRuns: 2000 },
  );
});

test("the quick verdict on payloads is the schema's", () => {
  const cases = anyType.chain((type) => anyPayload(type).map((payload) => ({ type, payload })));
  fc.assert(
    fc.property(cases, ({ type, payload }) => {
      const schema = payloadSchemas.get(type);
      const quick = PAYLOAD_FIELDS.get(type)?.accepts(payload) ?? true;
      assert.equal(quick, schema?.safeParse(payload).success ?? true);
      if (!quick) assert.equal(checkPayload(envelope({ type, payload })).ok, false);
    }),
    { numRuns: 4000 },
  );
});

test("zod and the JSON Schema of the envelope agree", () => {
  fc.assert(
    fc.property(anyEnvelope, (value) => {
      assert.equal(ajvAccepts(envelopeFile, value), zodAccepts(value));
    }),
    { numRuns: 2000 },
  );
});

test("zod and the JSON Schema of payloads agree", () => {
  const cases = anyType.chain((type) => anyPayload(type).map((payload) => ({ type, payload })));
  fc.assert(
    fc.property(cases, ({ type, payload }) => {
      const byZod = payloadSchemas.get(type)?.safeParse(payload).success ?? true;
      assert.equal(ajvAccepts(payloadFile, { type, payload }), byZod);
    }),
    { numRuns: 2000 },
  );
});

test("zod and the JSON Schema of filters agree", () => {
  fc.assert(
    fc.property(anyPayload("subscription.requested"), (filter) => {
      const byZod = filterSchema.safeParse(filter).success;
      assert.equal(ajvAccepts("subscription-filter.schema.json", filter), byZod);
    }),
  );
});

test("an envelope and payloads with every field are accepted by all three", () => {
  assert.ok(checkEnvelope(FULL_ENVELOPE).ok);
  assert.ok(zodAccepts(FULL_ENVELOPE));
  assert.ok(ajvAccepts(envelopeFile, FULL_ENVELOPE));
  assert.deepEqual([...FULL_PAYLOADS.keys()].sort(), [...PAYLOAD_FIELDS.keys()].sort());
  for (const [type, payload] of FULL_PAYLOADS) {
    const whole: Envelope = envelope({ type, payload });
    assert.deepEqual(checkPayload(whole), { ok: true, value: whole }, type);
    assert.ok(payloadSchemas.get(type)?.safeParse(payload).success, type);
    assert.ok(ajvAccepts(payloadFile, whole), type);
  }
});

test("what JSON Schema cannot say is accepted there and refused here", () => {
  const rows: Record<string, unknown>[] = [
    { id: "é".repeat(65) },
    { id: "a\ud800" },
    { created_at: "0000-01-01T00:00:00Z" },
    { created_at: "9999-12-31T23:59:59-01:00" },
    { stale_after: "P1001Y" },
  ];
  for (const row of rows) {
    const value = envelope(row);
    assert.equal(checkEnvelope(value).ok, false, JSON.stringify(row));
    assert.equal(zodAccepts(value), false, JSON.stringify(row));
    assert.ok(ajvAccepts(envelopeFile, value), JSON.stringify(row));
  }
});
