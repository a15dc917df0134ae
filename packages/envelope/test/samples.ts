/** Envelopes for the tests: one of each kind, and arbitraries of good, bent and hostile ones. */
import fc from "fast-check";
import { type Envelope, EVENT_TYPES } from "../src/index.ts";
import { FULL_PAYLOADS } from "./full-payloads.ts";

export function envelope(fields: Readonly<Record<string, unknown>> = {}): Envelope {
  // A test may bend any field; what the code under test makes of it is the point.
  return {
    spec_version: "0.2",
    id: "evt_1",
    type: "environment.observed",
    source: "agent:a",
    created_at: "2026-11-30T10:00:00Z",
    payload: {},
    ...fields,
  } as Envelope;
}

export function bytesOf(value: unknown): Uint8Array {
  return new TextEncoder().encode(typeof value === "string" ? value : JSON.stringify(value));
}

/** A value that each field of the envelope takes. */
export const FULL_ENVELOPE: Readonly<Record<string, unknown>> = {
  ...envelope(),
  target: "agent:b",
  topic: "",
  session_id: "sess_1",
  conversation_id: "conv_1",
  task_id: "task_1",
  correlation_id: "corr_1",
  causation_id: "evt_0",
  expires_at: null,
  delivery: {
    mode: "replayable",
    sequence: 0,
    cursor: "s:1",
    retry: { max_attempts: 3, backoff_ms: 0, backoff_multiplier: 1.5, extra: [] },
    extra: {},
  },
  payload_schema: "https://schemas.example/x.v1.json",
  belief_status: "revised",
  belief_scope: "fact",
  confidence: 0.5,
  valid_from: "2026-01-01T00:00:00+01:00",
  valid_until: "2026-12-31T23:59:59.999999Z",
  stale_after: "P3W3DT0.5S",
  refresh_hint: "urn:x:y?q#f",
  delegated_by: "agent:a",
  delegated_to: "agent:b",
  parent_task_id: "task_0",
  handoff_token: "ht_1",
  checkpoint_id: "ckpt_1",
  checkpoint_at: "2024-02-29T00:00:00Z",
  interruption_policy: "force_stop",
  compensation_id: "task_9",
  evidence_chain: [{ source: "sensor:a", id: "evt_0", extra: 1 }],
  source_trust: "signed",
  attestation_count: 2,
  data_provenance: "http://[::1]:80/a%20b",
  tenant_id: "acme",
  authorization: { scheme: "bearer", token: "t" },
  actor_id: "actor_1",
  roles: ["viewer"],
  requested_action: "event.publish",
  target_tenant_id: "acme",
  budget_id: "b",
  budget_cost: -1.5,
  x_unknown: { deep: [null] },
};

/** Values that break something somewhere, and a few that are good in most places. */
const HOSTILE: readonly unknown[] = [
  null,
  true,
  0,
  -0,
  -1,
  1.5,
  1e21,
  2 ** 53,
  Number.MAX_SAFE_INTEGER,
  "",
  "x",
  "5000",
  "a\u0000b",
  "tab\there",
  "é",
  "e\u0301",
  "\u200d\u200f",
  "\u0085",
  "x".repeat(128),
  "x".repeat(129),
  "__proto__",
  "constructor",
  "toString",
  "2026-02-30T00:00:00Z",
  "2023-02-29T00:00:00Z",
  "2026-06-30T23:59:60Z",
  "2026-06-30T10:00:00",
  "2026-06-30 10:00:00Z",
  "2026-06-30t10:00:00.5z",
  "2026-06-30T10:00:00+24:00",
  "soon",
  "P1W",
  "P",
  "PT",
  "-P1D",
  "PT1M",
  "P0D",
  "P1M2W",
  "PT1.5H1M",
  "https://a.example/b?c#d",
  "/relative",
  "//host",
  "http://a b/",
  "http://a/%zz",
  "a:",
  "task.submitted",
  "Task.submitted",
  "task",
  "task..x",
  "best_effort",
  "fact",
  [],
  [1],
  [null],
  ["a", "b"],
  [{ source: "a", id: "b" }],
  [{ source: "a" }],
  {},
  { a: 1 },
  { code: "c", message: "m" },
  { scheme: "", token: 1 },
  JSON.parse('{"__proto__":{"isAdmin":true},"constructor":{"prototype":1}}'),
];

/** A copy of `base` with up to three changes: a value replaced, a key removed, a key added. */
function bent(base: Readonly<Record<string, unknown>>): fc.Arbitrary<unknown> {
  const change = fc.record({
    path: fc.array(fc.nat({ max: 60 }), { minLength: 1, maxLength: 3 }),
    kind: fc.constantFrom("replace", "replace", "remove", "add"),
    value: fc.oneof(
      { weight: 3, arbitrary: fc.constantFrom(...HOSTILE) },
      { weight: 1, arbitrary: fc.jsonValue() },
    ),
  });
  return fc.array(change, { minLength: 1, maxLength: 3 }).map((changes) => {
    const copy = structuredClone(base) as Record<string, unknown>;
    for (const { path, kind, value } of changes) {
      let place = copy;
      for (const step of path.slice(0, -1)) {
        const keys = Object.keys(place);
        const inner = place[keys[step % Math.max(1, keys.length)] ?? ""];
        if (typeof inner === "object" && inner !== null) place = inner as Record<string, unknown>;
      }
      const keys = Object.keys(place);
      const key = keys[(path.at(-1) ?? 0) % Math.max(1, keys.length)] ?? "k";
      if (kind === "remove") delete place[key];
      else place[kind === "add" ? `${key}_x` : key] = value;
    }
    return copy;
  });
}

/** Envelopes: good ones with any choice of optional fields, bent ones, and other values. */
export const anyEnvelope: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 3, arbitrary: fc.subarray(Object.keys(FULL_ENVELOPE)).map(withFields) },
  { weight: 6, arbitrary: bent(FULL_ENVELOPE) },
  { weight: 1, arbitrary: fc.constantFrom(...HOSTILE) },
);

function withFields(names: string[]): Record<string, unknown> {
  const chosen = names.map((name) => [name, FULL_ENVELOPE[name]]);
  return { ...envelope(), ...Object.fromEntries(chosen) };
}

/** An envelope of a given type with a payload that is good, bent or something else. */
export function anyPayload(type: string): fc.Arbitrary<unknown> {
  const full = FULL_PAYLOADS.get(type) ?? {};
  return fc.oneof(
    { weight: 1, arbitrary: fc.constant(full) },
    { weight: 6, arbitrary: bent(full) },
    { weight: 1, arbitrary: fc.constantFrom(...HOSTILE) },
  );
}

export const anyType: fc.Arbitrary<string> = fc.constantFrom(...EVENT_TYPES);

/** A well-formed envelope with nested and unknown content, as an agent may send it. */
export const goodEnvelope: fc.Arbitrary<Envelope> = fc
  .tuple(
    fc.subarray(["target", "task_id", "delivery", "roles", "evidence_chain"]),
    fc.jsonValue({ maxDepth: 4 }),
    fc.dictionary(
      fc.string({ minLength: 1 }).map((key) => `x_${key}`),
      fc.jsonValue(),
    ),
  )
  .map(([names, payload, extra]) => ({ ...withFields(names), ...extra, payload }) as Envelope);
