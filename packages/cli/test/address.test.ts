import assert from "node:assert/strict";
import { test } from "node:test";
import { parseIntakeSubject } from "@harmovela/bus";
import fc from "fast-check";
import { addressOf, isTenant, lenientJson, tenantIn } from "../src/stdio/address.ts";

test("a line goes where its own words say", () => {
  const { subject, domain } = addressOf(
    { type: "memory.fact.added", source: "memory:main" },
    "acme",
  );
  assert.equal(subject, "hv.acme.in.beliefs.memory:main.memory.fact.added");
  assert.equal(domain, "beliefs");
});

test("every value has a subject that the service can read", () => {
  const text = fc.string({ unit: "binary", maxLength: 3000 });
  const anything = fc.oneof(text, fc.anything());
  fc.assert(
    fc.property(
      fc.oneof(fc.anything(), fc.record({ type: anything, source: anything })),
      (value) => {
        const { subject, domain } = addressOf(value, "default");
        assert.equal(parseIntakeSubject(subject)?.domain, domain);
        assert.equal(parseIntakeSubject(subject)?.tenant, "default");
      },
    ),
  );
});

test("only what can be a tenant is taken for one", () => {
  assert.equal(tenantIn({ tenant_id: "acme" }), "acme");
  for (const tenant_id of ["", "-", 5, null, "x".repeat(200), "a\nb"]) {
    assert.equal(tenantIn({ tenant_id }), undefined);
  }
  assert.equal(tenantIn(null), undefined);
  assert.equal(isTenant("-"), false);
});

test("bytes that are no JSON have no value", () => {
  assert.deepEqual(lenientJson(Buffer.from("[1]")), { value: [1] });
  for (const bytes of [
    Buffer.from("{"),
    Buffer.from([0x22, 0xff, 0x22]),
    Buffer.from("\ufeff{}"),
  ]) {
    assert.equal(lenientJson(bytes), undefined);
  }
});
