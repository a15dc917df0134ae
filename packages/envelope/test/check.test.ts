import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  checkEnvelope,
  checkPayload,
  checkType,
  checkVersion,
  type Envelope,
  parseEnvelope,
  parseJson,
  type Result,
} from "../src/index.ts";
import { bytesOf, envelope, FULL_ENVELOPE } from "./samples.ts";

/** `code path` of a refusal, "ok" otherwise. */
function verdict(result: Result<Envelope>): string {
  if (result.ok) return "ok";
  return `${result.error.code} ${result.error.details?.path}`;
}

const inEnvelope = (fields: Record<string, unknown>): string =>
  verdict(checkEnvelope(envelope(fields)));

const inPayload = (type: string, payload: unknown, fields: Record<string, unknown> = {}): string =>
  verdict(checkPayload(envelope({ ...fields, type, payload })));

function without(field: string): Record<string, unknown> {
  return Object.fromEntries(Object.entries(envelope()).filter(([name]) => name !== field));
}

test("each required field is demanded and named", () => {
  for (const field of ["spec_version", "id", "type", "source", "created_at", "payload"]) {
    const result = checkEnvelope(without(field));
    assert.equal(verdict(result), `invalid_envelope ${field}`);
    assert.ok(!result.ok);
    assert.match(result.error.message, new RegExp(`^${field} is missing`));
  }
});

test("the payload may be any JSON value as far as the envelope goes", () => {
  for (const payload of [null, 0, "", false, [], {}]) assert.equal(inEnvelope({ payload }), "ok");
});

test("what is not an object is no envelope", () => {
  for (const value of [null, undefined, 1, "x", [], [envelope()]])
    assert.equal(verdict(checkEnvelope(value)), "invalid_envelope ");
});

test("values of the wrong kind or out of range are refused and named", () => {
  const rows: [Record<string, unknown>, string][] = [
    [{ confidence: 7 }, "confidence"],
    [{ belief_status: "maybe" }, "belief_status"],
    [{ interruption_policy: "pause" }, "interruption_policy"],
    [{ delivery: { mode: "best_effort", sequence: -1 } }, "delivery.sequence"],
    [{ delivery: { retry: { max_attempts: 0 } } }, "delivery.retry.max_attempts"],
    [{ target: 5 }, "target"],
    [{ evidence_chain: [{ source: "s" }] }, "evidence_chain[0].id"],
    [{ evidence_chain: [] }, "evidence_chain"],
    [{ evidence_chain: Array(1025).fill({ source: "s", id: "i" }) }, "evidence_chain"],
    [{ created_at: "2026-02-30T00:00:00Z" }, "created_at"],
    [{ created_at: null }, "created_at"],
    [{ expires_at: "soon" }, "expires_at"],
    [{ stale_after: "" }, "stale_after"],
    [{ refresh_hint: "not a uri" }, "refresh_hint"],
    [{ handoff_token: "" }, "handoff_token"],
    [{ handoff_token: "t".repeat(8193) }, "handoff_token"],
    [{ attestation_count: -1 }, "attestation_count"],
    [{ roles: "viewer" }, "roles"],
    [{ roles: [1] }, "roles[0]"],
    [{ authorization: { token: "t" } }, "authorization.scheme"],
    [{ budget_cost: "1" }, "budget_cost"],
    [{ aep_version: "0.1" }, "aep_version"],
    [{ aep_version: null }, "aep_version"],
    [{ spec_version: "" }, "spec_version"],
    [{ spec_version: 0.2 }, "spec_version"],
    [{ type: 5 }, "type"],
  ];
  for (const [fields, path] of rows) assert.equal(inEnvelope(fields), `invalid_envelope ${path}`);
});

test("ids and names are 1 to 128 bytes without control characters", () => {
  const fields = ["id", "source", "target", "tenant_id", "task_id", "session_id", "causation_id"];
  for (const field of fields) {
    for (const value of [
      "",
      "x".repeat(129),
      "é".repeat(65),
      "a\nb",
      "a\u007f",
      "a\u0085",
      "\ud800",
      1,
    ])
      assert.equal(inEnvelope({ [field]: value }), `invalid_envelope ${field}`);
    for (const value of [
      "x".repeat(128),
      "é".repeat(64),
      "a b",
      "*",
      ">",
      "__proto__",
      "constructor",
    ])
      assert.equal(inEnvelope({ [field]: value }), "ok");
  }
});

test("unknown fields are kept as they came, hostile names included", () => {
  const text =
    '{"spec_version":"0.2","id":"constructor","type":"task.started","source":"agent:a","created_at":"2026-11-30T10:00:00Z","payload":{"__proto__":{"x":1}},"x":[1.50,{}],"__proto__":{"isAdmin":true}}';
  const result = parseEnvelope(bytesOf(text));
  assert.ok(result.ok);
  assert.deepEqual(JSON.stringify(result.value), text.replace("1.50", "1.5"));
  assert.equal(Reflect.get({}, "isAdmin"), undefined);
});

test("a malformed type has its own code and does not hide other faults", () => {
  for (const type of [
    "",
    "task",
    "Task.x",
    "task.",
    ".x",
    "task..x",
    "ta_sk.x",
    "task.X",
    "täsk.x",
    "a.".repeat(80),
  ])
    assert.equal(inEnvelope({ type }), "invalid_event_type type");
  assert.equal(inEnvelope({ type: "Task.x", confidence: 7 }), "invalid_envelope confidence");
  assert.equal(inEnvelope({ type: "task.x_y.z2" }), "ok");
});

test("another version passes the schema and is refused as a version", () => {
  for (const version of ["9.9", "0.1", "0.2.0", "0.20", " 0.2", "v0.2"]) {
    const checked = checkEnvelope(envelope({ spec_version: version }));
    assert.ok(checked.ok);
    const result = checkVersion(checked.value);
    assert.equal(verdict(result), "unsupported_version spec_version");
    assert.ok(!result.ok);
    assert.deepEqual(result.error.details?.supported, ["0.2"]);
  }
  assert.equal(verdict(checkVersion(envelope())), "ok");
});

test("an unregistered type passes the schema and is refused as a type", () => {
  for (const type of ["task.escalated", "session.open", "policy.violated", "constructor.call"]) {
    const checked = checkEnvelope(envelope({ type }));
    assert.ok(checked.ok);
    const result = checkType(checked.value);
    assert.equal(verdict(result), "unknown_event_type type");
    assert.ok(!result.ok);
    assert.equal(result.error.details?.legacy_code, "invalid_event_type");
  }
  assert.equal(verdict(checkType(envelope({ type: "adaptation.goal.blocked" }))), "ok");
});

test("a payload must have what its type requires", () => {
  const rows: [string, unknown, string][] = [
    ["belief.revised", {}, "previous"],
    ["belief.revised", { previous: 1, corrected: "b" }, "previous"],
    ["belief.conflict.detected", { subject: "s", claims: [{ source: "a", value: 1 }] }, "claims"],
    [
      "belief.conflict.detected",
      { subject: "s", claims: [{ source: "a", value: 1 }, { source: "b" }] },
      "claims[1].value",
    ],
    ["memory.fact.added", { fact_id: "f" }, "value"],
    ["context.invalidated", {}, "context_key"],
    ["delegation.rejected", {}, "reason"],
    ["delegation.escalated", { reason: "x", progress_so_far: 3 }, "progress_so_far"],
    ["compensation.requested", { reason: "x" }, "description"],
    ["interruption.cancelled", {}, "reason"],
    ["provenance.chain.truncated", { reason: "x" }, "earliest_available"],
    ["freshness.expired", {}, "resource"],
    ["session.opened", {}, "session_id"],
    ["session.ready", { session_id: "s" }, "capabilities"],
    [
      "session.ready",
      { session_id: "s", capabilities: { protocol: "x" } },
      "capabilities.transports",
    ],
    ["session.error", {}, "error"],
    ["event.acknowledged", {}, "acknowledged_event_id"],
    ["task.failed", { error: { code: "x", message: "m" } }, "error.retryable"],
    ["task.progress", { progress: 42 }, "progress"],
    ["task.submitted", { task_id: 5 }, "task_id"],
  ];
  for (const [type, payload, path] of rows)
    assert.equal(inPayload(type, payload), `invalid_envelope payload.${path}`);
  for (const payload of [null, [], "x", 1])
    assert.equal(inPayload("task.started", payload), "invalid_envelope payload");
});

test("what the shared fixtures send is not refused", () => {
  const rows: [string, unknown][] = [
    ["session.heartbeat", {}],
    ["task.started", {}],
    ["event.dead_lettered", { original_event_id: "e", error: { code: "c", message: "m" } }],
    [
      "session.ready",
      {
        session_id: "s",
        capabilities: { protocol: "aep", aep_version: "0.1", transports: ["stdio"] },
      },
    ],
    ["session.opened", { session_id: "s", version: "0.1" }],
    ["capabilities.requested", {}],
    ["environment.observed", null],
    ["memory.episode.stored", [1]],
    ["query.response", { pagination: { next_cursor: null } }],
    ["adaptation.budget.established", { budget_id: "b", limit: 100 }],
  ];
  for (const [type, payload] of rows) assert.equal(inPayload(type, payload), "ok", type);
});

test("payload.state may only repeat what the event says", () => {
  for (const name of [
    "submitted",
    "accepted",
    "started",
    "blocked",
    "progress",
    "output",
    "completed",
    "failed",
    "cancelled",
    "timed_out",
  ]) {
    assert.equal(inPayload(`task.${name}`, { state: name }), "ok");
    for (const state of ["other", name.toUpperCase(), "", null, 1])
      assert.equal(inPayload(`task.${name}`, { state }), "invalid_envelope payload.state");
  }
  assert.equal(inPayload("task.cancel.requested", { state: "started" }), "ok");
});

test("H3 a grace period is a whole number of milliseconds, and 0 means at once", () => {
  for (const type of ["interruption.requested", "task.cancel.requested"]) {
    for (const good of [0, 1, 5000, 3_155_760_000_000])
      assert.equal(inPayload(type, { grace_period_ms: good }), "ok");
    for (const bad of [-1, 1.5, "5000", null, 2 ** 53, 3_155_760_000_001, true, []])
      assert.equal(
        inPayload(type, { grace_period_ms: bad }),
        "invalid_envelope payload.grace_period_ms",
      );
  }
});

test("time-outs are whole numbers of milliseconds up to 100 years", () => {
  for (const name of ["timeout_ms", "deadline_ms", "action_timeout_ms"]) {
    for (const good of [0, 5000, 3_155_760_000_000])
      assert.equal(inPayload("task.submitted", { [name]: good }), "ok");
    for (const bad of [-1, 0.5, "1", null, 3_155_760_000_001])
      assert.equal(
        inPayload("task.submitted", { [name]: bad }),
        `invalid_envelope payload.${name}`,
      );
  }
});

test("ids in the payload must equal the envelope's where both are present", () => {
  for (const type of ["task.started", "delegation.requested", "interruption.requested"]) {
    assert.equal(
      inPayload(type, { task_id: "a" }, { task_id: "b" }),
      "invalid_envelope payload.task_id",
    );
    assert.equal(inPayload(type, { task_id: "a" }, { task_id: "a" }), "ok");
    assert.equal(inPayload(type, { task_id: "a" }), "ok");
  }
  const parents = { parent_task_id: "a" };
  assert.equal(
    inPayload("task.submitted", parents, { parent_task_id: "b" }),
    "invalid_envelope payload.parent_task_id",
  );
  assert.equal(inPayload("task.submitted", parents, parents), "ok");
  // Composed and decomposed forms are different ids.
  assert.equal(
    inPayload("task.started", { task_id: "\u00e9" }, { task_id: "e\u0301" }),
    "invalid_envelope payload.task_id",
  );
  // In other families such a key is the application's own.
  assert.equal(inPayload("query.requested", { task_id: "a" }, { task_id: "b" }), "ok");
});

test("compensation names one original task", () => {
  const payload = { reason: "r", description: "d", original_task: "task_01" };
  assert.equal(
    inPayload("compensation.requested", payload, { compensation_id: "task_original_01" }),
    "invalid_envelope payload.original_task",
  );
  assert.equal(inPayload("compensation.requested", payload, { compensation_id: "task_01" }), "ok");
});

test("the last link of an evidence chain is the direct cause, for every type", () => {
  const chain = [
    { source: "a", id: "evt_1" },
    { source: "b", id: "evt_2" },
  ];
  for (const type of ["environment.observed", "task.started"]) {
    assert.equal(inPayload(type, {}, { evidence_chain: chain, causation_id: "evt_2" }), "ok");
    assert.equal(inPayload(type, {}, { evidence_chain: chain }), "ok");
    for (const cause of ["evt_1", "evt_3"])
      assert.equal(
        inPayload(type, {}, { evidence_chain: chain, causation_id: cause }),
        "invalid_envelope evidence_chain",
      );
  }
});

test("a subscription's filter has its own code", () => {
  for (const bad of [
    {},
    { types: [] },
    { session_id: "s" },
    { types: 1 },
    { types: ["a"], delivery_mode: "x" },
    { topic: [1] },
    null,
  ])
    assert.match(inPayload("subscription.requested", bad), /^subscription_rejected payload/);
  for (const good of [
    { types: ["task.*"] },
    { source: "a" },
    { topic: "" },
    { types: [], target: "t" },
  ])
    assert.equal(inPayload("subscription.requested", good), "ok");
});

test("a refusal quotes no value and is small", () => {
  const hidden = "sk-secret-".repeat(50);
  const rows = [
    checkEnvelope(envelope({ target: hidden })),
    checkEnvelope(envelope({ evidence_chain: [{ source: "s", id: hidden }] })),
    checkPayload(envelope({ type: "task.progress", payload: { state: hidden } })),
    checkType(envelope({ type: `x.${"y".repeat(100)}` })),
    parseJson(bytesOf(`{"${hidden}":1,"${hidden}":2}`)),
  ];
  for (const result of rows.slice(0, 3)) assert.ok(!JSON.stringify(result).includes("sk-"));
  for (const result of rows) assert.ok(JSON.stringify(result).length < 1000);
});

test("a refusal says which stage found it and what to do", () => {
  const result = checkPayload(envelope({ type: "task.progress", payload: { progress: 2 } }));
  assert.ok(!result.ok);
  assert.deepEqual(result.error, {
    code: "invalid_envelope",
    message: "payload.progress must be a number from 0 to 1",
    retryable: false,
    details: {
      path: "payload.progress",
      failure: {
        category: "validation",
        code: "invalid_envelope",
        stage: "payload",
        class_retryable: false,
        action: "correct_and_resend",
      },
    },
  });
});

test("a list with a hundred thousand wrong items is refused at the first", () => {
  const claims = Array.from({ length: 100_000 }, () => 0);
  assert.equal(
    inPayload("belief.conflict.detected", { subject: "s", claims }),
    "invalid_envelope payload.claims",
  );
});

test("any envelope value gets a verdict and is not changed by it", () => {
  fc.assert(
    fc.property(fc.anything(), fc.constantFrom(...Object.keys(FULL_ENVELOPE)), (value, field) => {
      const whole = { ...FULL_ENVELOPE, [field]: value };
      const result = checkEnvelope(whole);
      if (result.ok) assert.equal(result.value, whole);
      assert.equal(Reflect.get(whole, field), value);
    }),
  );
});
