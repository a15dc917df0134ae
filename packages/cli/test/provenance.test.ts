/** A lineage in the terminal and as PROV-JSON. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import type { JsonObject } from "@harmovela/failure";
import { Ajv, type ValidateFunction } from "ajv";
import formats from "ajv-formats";
import fc from "fast-check";
import { provJson } from "../src/prov-json.ts";
import { graphIn, type LineageGraph, provenanceLines } from "../src/provenance-lines.ts";

const AT = "2026-11-30T10:00:00.000Z";

function validator(): ValidateFunction {
  const ajv = new Ajv({ strict: false });
  formats.default(ajv);
  const path = new URL("./prov-json.schema.json", import.meta.url);
  return ajv.compile(JSON.parse(readFileSync(path, "utf8")));
}

function node(id: string, more: JsonObject = {}): JsonObject {
  return {
    id,
    is_known: true,
    domain: "beliefs",
    seq: 1,
    type: "memory.fact.added",
    source: "agent:a",
    created_at: AT,
    logged_at: AT,
    digest: "d",
    chain: { result: "intact", links: 1, checked: 1 },
    attestation_count: 0,
    ...more,
  };
}

const attestation = (more: JsonObject = {}): JsonObject => ({
  event_id: "v",
  source: "agent:v",
  method: "cross_reference",
  at: AT,
  counts: true,
  ...more,
});

const graph: LineageGraph = graphIn({
  nodes: [
    node("c", { attestation_count: 1, attestations: [attestation()] }),
    node("b", {
      withdrawn: { event_id: "gone", by: "agent:a" },
      attestations: [
        attestation({
          event_id: "w",
          counts: false,
          claimed_attestor: "agent:famous",
          result: "no",
          revoked: { event_id: "r", by: "agent:v", reason: "was wrong", at: AT },
        }),
      ],
    }),
    node("a", { chain: { result: "empty", links: 0, checked: 0 }, source_trust: "unverified" }),
    { id: "never", is_known: false },
  ],
  edges: [
    { from: "c", to: "a", index: 0 },
    { from: "c", to: "b", index: 1 },
    { from: "b", to: "a", index: 0 },
    { from: "b", to: "never", index: 1 },
  ],
  is_cut: true,
});

/** Without colours. */
function plain(lines: readonly string[]): string[] {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the colours
  return lines.map((line) => line.replace(/\u001b\[\d+m/g, ""));
}

test("each event stands once, below what rests on it, with who vouches for it", () => {
  const lines = plain(provenanceLines(graph));
  assert.match(lines[0] ?? "", /^c {2}intact {2}agent:a {2}memory.fact.added, attested by 1/);
  assert.ok(lines.some((line) => /─ v {2}vouches {2}agent:v {2}cross_reference/.test(line)));
  assert.ok(
    lines.some((line) =>
      /─ w {2}revoked {2}agent:v {2}.*agent:famous, revoked by agent:v: was wrong/.test(line),
    ),
  );
  assert.ok(lines.some((line) => /─ b .*withdrawn by agent:a/.test(line)));
  assert.ok(
    lines.some((line) => /─ a {2}origin .*unverified, and evidence of 1 more here/.test(line)),
  );
  assert.ok(lines.some((line) => /─ never {2}unknown {2}no log has shown it/.test(line)));
  assert.match(lines.at(-1) ?? "", /--depth/);
  assert.equal(lines.length, 7);
});

test("what agents wrote does not move the cursor", () => {
  const hostile = node("x\u001b[2J", { source: "agent:\u202ea", type: "memory.fact.added" });
  const lines = provenanceLines({ nodes: [hostile], edges: [], isCut: false });
  assert.ok(!lines.join("").includes("\u001b[2J") && !lines.join("").includes("\u202e"));
});

describe("as PROV-JSON", () => {
  test("it keeps the schema, and says who made what from what, and who took it back", () => {
    const json = provJson(graph);
    const isValid = validator();
    assert.ok(isValid(json), JSON.stringify(isValid.errors));
    const values = (kind: string): JsonObject[] =>
      Object.values((json[kind] ?? {}) as JsonObject) as JsonObject[];
    assert.deepEqual(Object.keys(json.entity as JsonObject).sort(), [
      "event:a",
      "event:b",
      "event:c",
      "event:never",
      "event:v",
      "event:w",
    ]);
    const derived = values("wasDerivedFrom").map(
      (one) => `${one["prov:generatedEntity"]} ${one["prov:usedEntity"]}`,
    );
    assert.deepEqual(derived.sort(), [
      "event:b event:a",
      "event:b event:never",
      "event:c event:a",
      "event:c event:b",
      "event:v event:c",
      "event:w event:b",
    ]);
    const invalidated = values("wasInvalidatedBy").map((one) => one["prov:entity"]);
    assert.deepEqual(invalidated.sort(), ["event:b", "event:w"]);
    assert.equal(values("wasAttributedTo").length, 5);
  });

  test("whatever ids agents use, names are names", () => {
    const isValid = validator();
    fc.assert(
      fc.property(
        fc.string({ unit: "binary", minLength: 1, maxLength: 20 }),
        fc.string({ minLength: 1 }),
        (id, source) => {
          const json = provJson({
            nodes: [node(id, { source, attestations: [attestation({ event_id: `${id}!` })] })],
            edges: [{ from: id, to: "*(~)'", index: 0 }],
            isCut: false,
          });
          assert.ok(isValid(json), JSON.stringify(isValid.errors));
        },
      ),
    );
  });

  test("the schema that it is held to refuses what is none", () => {
    const isValid = validator();
    for (const bad of [
      { entity: { noprefix: {} } },
      { wasDerivedFrom: { "_:r1": { "prov:usedEntity": "event:a" } } },
      { entity: { "event:a": { "prov:type": null } } },
      { entities: {} },
      { wasInvalidatedBy: { "_:r1": { "prov:entity": "event:a", "prov:time": "soon" } } },
    ]) {
      assert.ok(!isValid(bad), JSON.stringify(bad));
    }
  });
});
