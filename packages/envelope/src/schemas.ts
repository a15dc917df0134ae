/** The wire contract as zod schemas, and as JSON Schemas for everybody else. */
import type { JsonObject } from "@harmovela/failure";
import { z } from "zod";
import { envelopeField } from "./envelope-fields.ts";
import { PAYLOAD_FIELDS } from "./payload-fields.ts";
import { filterField } from "./payload-protocol.ts";

/** The envelope (spec 1.1); payloads are judged by type. */
export const envelopeSchema: z.ZodType = envelopeField.schema;

/** The payload of each type that the protocol says something about (spec section 3). */
export const payloadSchemas: ReadonlyMap<string, z.ZodType> = new Map(
  [...PAYLOAD_FIELDS].map(([type, field]) => [type, field.schema]),
);

/** The filter of a subscription (spec 5.3). */
export const filterSchema: z.ZodType = filterField.schema;

/** What the services check beyond the JSON Schemas, because JSON Schema has no words for it. */
export const SEMANTIC_CHECKS: readonly string[] = [
  "ids and names are at most 128 bytes of UTF-8 (the schemas count characters) without lone surrogates",
  "date-times lie in the years 0001 to 9999 in UTC and on days that their month has",
  "durations are at most 1,000 years",
  "the type is registered and spec_version is supported",
  "payload.task_id, payload.parent_task_id and payload.original_task equal the envelope's task_id, parent_task_id and compensation_id where both are present",
  "the last id of evidence_chain equals causation_id where both are present",
  "a subscription names at least one of types, source, target, topic, and empty arrays do not count",
  "the message is at most 512 KiB of UTF-8, nests at most 64 levels, repeats no key in an object, and holds no infinite number and no whole number beyond 2^53-1",
];

/** The JSON Schemas (draft 2020-12) by file name. */
export function jsonSchemas(): Readonly<Record<string, JsonObject>> {
  return {
    "harmovela-envelope.schema.json": {
      ...head("envelope", "Harmovela event envelope 0.2"),
      ...jsonSchemaOf(envelopeSchema),
    },
    "harmovela-payloads.schema.json": {
      ...head("payloads", "Harmovela payloads by event type: validate the whole envelope"),
      type: "object",
      required: ["type", "payload"],
      allOf: [...payloadSchemas].map(([type, schema]) => ({
        if: { properties: { type: { const: type } } },
        // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema.
        then: { properties: { payload: jsonSchemaOf(schema) } },
      })),
    },
    "subscription-filter.schema.json": {
      ...head("subscription-filter", "Harmovela subscription filter"),
      ...jsonSchemaOf(filterSchema),
    },
  };
}

function head(name: string, title: string): JsonObject {
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    $id: `urn:harmovela:schema:${name}:0.2`,
    title,
    $comment: `Checked beside this schema: ${SEMANTIC_CHECKS.join("; ")}.`,
  };
}

function jsonSchemaOf(schema: z.ZodType): JsonObject {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" });
  // zod's type of a JSON Schema is wider than JSON; what it writes is JSON.
  return rest as JsonObject;
}
