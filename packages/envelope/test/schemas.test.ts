import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { EVENT_TYPES, jsonSchemas, payloadSchemas } from "../src/index.ts";

const folder = new URL("../../../schemas/", import.meta.url);

test("schemas/ holds exactly what the zod schemas say", () => {
  const schemas = jsonSchemas();
  assert.deepEqual(readdirSync(folder).sort(), Object.keys(schemas).sort());
  for (const [name, schema] of Object.entries(schemas))
    assert.deepEqual(JSON.parse(readFileSync(new URL(name, folder), "utf8")), schema, name);
});

test("payload schemas are those of registered types, the 26 of the public schema among them", () => {
  for (const type of payloadSchemas.keys()) assert.ok(EVENT_TYPES.includes(type), type);
  const families = /^(belief|freshness|delegation|interruption|compensation|provenance)\./;
  const checked = EVENT_TYPES.filter(
    (type) => families.test(type) || /^(context\.(inv|upd|snap)|memory\.fact)/.test(type),
  );
  assert.equal(checked.length, 26);
  for (const type of checked) assert.ok(payloadSchemas.has(type), type);
});
