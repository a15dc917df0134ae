/** The envelope's own fields (spec 1.1). */
import { z } from "zod";
import {
  absent,
  anything,
  duration,
  type Field,
  id,
  instant,
  integer,
  list,
  nonEmptyText,
  nonNegative,
  nullable,
  number,
  type ObjectField,
  object,
  oneOf,
  ratio,
  text,
  textOf,
  uri,
} from "./field.ts";
import { EVIDENCE_LINKS_MAX, HANDOFF_TOKEN_MAX } from "./limits.ts";
import { TYPE_LENGTH_MAX, TYPE_PATTERN } from "./registry.ts";

export const deliveryModes = oneOf("best_effort", "at_least_once", "replayable");

/** Spec 9.4; advisory. */
const retryPolicy = object(
  {},
  {
    max_attempts: integer(1),
    backoff_ms: nonNegative,
    backoff_multiplier: nonNegative,
    max_backoff_ms: nonNegative,
    ack_timeout_ms: nonNegative,
  },
);

const delivery = object(
  {},
  { mode: deliveryModes, sequence: integer(0), cursor: text, retry: retryPolicy },
);

/** Oldest first; an empty chain claims evidence and names none (spec section 8). */
const evidenceChain: Field = list(object({ source: id, id }), 1, EVIDENCE_LINKS_MAX);

/**
 * Any string passes here although the schema wants the form of a type: that is judged after all
 * other fields, because it has an error code of its own (spec section 11, C2).
 */
const eventType: Field = {
  ...text,
  schema: z.string().max(TYPE_LENGTH_MAX).regex(TYPE_PATTERN),
};

export const envelopeField: ObjectField = object(
  {
    spec_version: id,
    id,
    type: eventType,
    source: id,
    created_at: instant,
    payload: anything,
  },
  {
    target: id,
    topic: text,
    session_id: id,
    conversation_id: id,
    task_id: id,
    correlation_id: id,
    causation_id: id,
    expires_at: nullable(instant),
    delivery,
    payload_schema: uri,
    belief_status: oneOf("asserted", "retracted", "revised", "contradicted", "unknown"),
    belief_scope: oneOf("fact", "inference", "observation", "preference", "hypothesis"),
    confidence: ratio,
    valid_from: instant,
    valid_until: instant,
    stale_after: duration,
    refresh_hint: uri,
    delegated_by: id,
    delegated_to: id,
    parent_task_id: id,
    handoff_token: textOf(1, HANDOFF_TOKEN_MAX),
    checkpoint_id: id,
    checkpoint_at: instant,
    interruption_policy: oneOf("save_and_stop", "drain_then_stop", "force_stop"),
    compensation_id: id,
    evidence_chain: evidenceChain,
    source_trust: oneOf("verified", "attested", "unverified", "signed"),
    attestation_count: nonNegative,
    data_provenance: uri,
    tenant_id: id,
    authorization: object({ scheme: nonEmptyText }, { token: text }),
    actor_id: id,
    roles: list(text),
    requested_action: text,
    target_tenant_id: id,
    budget_id: id,
    budget_cost: number,
    // The former name of spec_version: refused also beside it (spec section 11, C1).
    aep_version: absent,
  },
);
