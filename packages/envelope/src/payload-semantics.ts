/** Payloads of the families that carry meaning between agents (spec 3.1), each with a row of its own. */
import {
  anyObject,
  anything,
  type Fields,
  id,
  instant,
  integer,
  list,
  nonEmptyText,
  type ObjectField,
  object,
  oneOf,
  ratio,
  spanMs,
  text,
} from "./field.ts";

const texts = list(text);
const snapshotFormat = oneOf("json", "text", "binary");
const bytes = integer(0);
/** Whether the subtree is meant too. */
const interruptionScope = oneOf("task", "tree");
const delegationIds: Fields = { task_id: id, parent_task_id: id };

export const SEMANTIC_ROWS: Readonly<Record<string, ObjectField>> = {
  "context.invalidated": object(
    { context_key: nonEmptyText },
    {
      reason: text,
      scope: oneOf("full", "partial", "unknown"),
      previous_snapshot_id: text,
      affected_keys: texts,
      correction: anyObject,
    },
  ),
  "context.updated": object(
    { context_key: nonEmptyText },
    {
      change_type: oneOf("added", "modified", "removed", "replaced"),
      previous_snapshot_id: text,
      new_value: anything,
      diff: text,
    },
  ),
  "context.snapshot.requested": object(
    {},
    { context_key: text, format: snapshotFormat, filters: anyObject },
  ),
  "context.snapshot.ready": object(
    { snapshot_id: nonEmptyText },
    {
      context_key: text,
      format: snapshotFormat,
      data: anything,
      size_bytes: bytes,
      fingerprint: text,
    },
  ),
  "memory.fact.added": object(
    { fact_id: nonEmptyText, value: anything },
    { source: text, tags: texts, expires_at: instant },
  ),
  "memory.fact.updated": object(
    { fact_id: nonEmptyText },
    { previous_value: anything, new_value: anything, reason: text },
  ),
  "memory.fact.invalidated": object(
    { fact_id: nonEmptyText },
    { reason: text, replaced_by: text, previous_value: anything, corrected_value: anything },
  ),
  "belief.revised": object(
    { previous: nonEmptyText, corrected: nonEmptyText },
    { reason: text, domains_affected: texts },
  ),
  "belief.conflict.detected": object(
    {
      subject: nonEmptyText,
      claims: list(object({ source: text, value: anything }, { confidence: ratio }), 2),
    },
    { resolution_hint: text },
  ),
  "freshness.expired": object(
    { resource: nonEmptyText },
    { cached_at: instant, valid_until: instant, detected_at: instant },
  ),
  "freshness.window.changed": object(
    { resource: nonEmptyText },
    { previous_valid_until: instant, new_valid_until: instant, reason: text },
  ),
  "delegation.requested": object(
    {},
    {
      ...delegationIds,
      work_description: text,
      deadline: instant,
      priority: oneOf("low", "normal", "high", "critical"),
      context: anyObject,
    },
  ),
  "delegation.accepted": object({}, delegationIds),
  "delegation.rejected": object(
    { reason: nonEmptyText },
    { ...delegationIds, retry_after: instant },
  ),
  "delegation.handoff.completed": object({}, delegationIds),
  "delegation.escalated": object(
    { reason: nonEmptyText },
    { ...delegationIds, progress_so_far: ratio },
  ),
  "interruption.requested": object(
    {},
    { task_id: id, reason: text, grace_period_ms: spanMs, scope: interruptionScope },
  ),
  "interruption.acknowledged": object({}, { task_id: id }),
  "interruption.saved": object(
    {},
    { task_id: id, bytes_saved: bytes, location: text, digest: text },
  ),
  "interruption.resumed": object({}, { task_id: id, digest: text, scope: interruptionScope }),
  "interruption.cancelled": object({ reason: nonEmptyText }, { task_id: id, checkpoint_id: text }),
  "compensation.requested": object(
    { reason: nonEmptyText, description: nonEmptyText },
    { task_id: id, original_task: text, deadline: instant },
  ),
  "compensation.completed": object({}, { task_id: id, original_task: text }),
  "provenance.attestation.added": object(
    { attestor: nonEmptyText, method: nonEmptyText },
    { result: text, evidence: anyObject },
  ),
  "provenance.attestation.revoked": object({ reason: nonEmptyText }, { attestor: text }),
  "provenance.chain.truncated": object(
    { earliest_available: nonEmptyText, reason: nonEmptyText },
    { missing_from: text },
  ),
};
