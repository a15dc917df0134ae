import assert from "node:assert/strict";
import { test } from "node:test";
import {
  closure,
  EVENT_TYPES,
  isKnownProfile,
  missingConditionalFields,
  PROFILE_DEPENDENCIES,
} from "../src/index.ts";
import { CONDITIONS } from "../src/profiles.ts";
import { FULL_PAYLOADS } from "./full-payloads.ts";
import { envelope, FULL_ENVELOPE } from "./samples.ts";

const SEMANTICS = "harmovela.runtime-semantics.v1";
const missing = (
  type: string,
  fields: Record<string, unknown> = {},
  profiles = [SEMANTICS],
): string[] => missingConditionalFields(envelope({ type, ...fields }), profiles);

test("adopting a profile adopts what it stands on", () => {
  assert.deepEqual(closure(["harmovela.adaptation.v1"]), [
    "harmovela.adaptation.v1",
    "harmovela.coordination.v1",
    "harmovela.core.v1",
    SEMANTICS,
    "harmovela.security.v1",
  ]);
  assert.deepEqual(closure([]), []);
  assert.deepEqual(closure(["x.y", "x.y", "constructor"]), ["constructor", "x.y"]);
});

test("every dependency and every type in the tables is known", () => {
  for (const dependencies of Object.values(PROFILE_DEPENDENCIES))
    for (const profile of dependencies) assert.ok(isKnownProfile(profile), profile);
  assert.equal(isKnownProfile("harmovela.nonexistent.v9"), false);
  for (const [profile, rows] of Object.entries(CONDITIONS)) {
    assert.ok(isKnownProfile(profile));
    for (const type of Object.keys(rows)) assert.ok(EVENT_TYPES.includes(type), type);
  }
});

test("conditional fields are demanded only under the profile", () => {
  const rows: [string, string[]][] = [
    ["belief.revised", ["belief_status", "belief_scope"]],
    ["belief.conflict.detected", ["belief_status"]],
    ["freshness.expired", ["valid_until|stale_after"]],
    ["freshness.window.changed", ["payload.new_valid_until"]],
    ["delegation.requested", ["task_id", "delegated_by", "delegated_to", "parent_task_id"]],
    [
      "delegation.handoff.completed",
      ["task_id", "delegated_by", "delegated_to", "parent_task_id", "handoff_token"],
    ],
    ["interruption.requested", ["task_id", "interruption_policy"]],
    ["interruption.saved", ["task_id", "checkpoint_id", "checkpoint_at"]],
    ["interruption.resumed", ["task_id", "checkpoint_id"]],
    ["compensation.completed", ["task_id", "compensation_id"]],
    ["provenance.attestation.added", ["evidence_chain|causation_id"]],
    ["provenance.attestation.revoked", []],
    ["task.submitted", []],
  ];
  for (const [type, fields] of rows) {
    assert.deepEqual(missing(type), fields, type);
    assert.deepEqual(missing(type, {}, []), [], type);
    assert.deepEqual(missing(type, {}, ["harmovela.core.v1"]), [], type);
    assert.deepEqual(missing(type, {}, ["harmovela.coordination.v1"]), fields, type);
    const full = { ...FULL_ENVELOPE, type, payload: FULL_PAYLOADS.get(type) ?? {} };
    assert.deepEqual(missing(type, full), [], type);
  }
});

test("one of two fields is enough where the table says so", () => {
  assert.deepEqual(missing("freshness.expired", { stale_after: "PT1M" }), []);
  assert.deepEqual(missing("freshness.expired", { valid_until: "2026-01-01T00:00:00Z" }), []);
  assert.deepEqual(missing("provenance.attestation.added", { causation_id: "e" }), []);
  assert.deepEqual(missing("freshness.window.changed", { payload: null }), [
    "payload.new_valid_until",
  ]);
});
