import type { JsonObject, JsonValue } from "@harmovela/failure";

/** How the sender wants the event delivered, and what the judge stamps on it (spec 9.1, 9.3). */
export interface Delivery {
  mode?: "best_effort" | "at_least_once" | "replayable";
  sequence?: number;
  cursor?: string;
  retry?: JsonObject;
  [extra: string]: unknown;
}

export interface EvidenceLink {
  source: string;
  id: string;
  [extra: string]: unknown;
}

/** One event (spec 1.1). Fields that are not listed here are allowed and survive a round trip. */
export interface Envelope {
  spec_version: string;
  id: string;
  type: string;
  source: string;
  created_at: string;
  payload: JsonValue;
  target?: string;
  topic?: string;
  session_id?: string;
  conversation_id?: string;
  task_id?: string;
  correlation_id?: string;
  causation_id?: string;
  expires_at?: string | null;
  delivery?: Delivery;
  payload_schema?: string;
  belief_status?: "asserted" | "retracted" | "revised" | "contradicted" | "unknown";
  belief_scope?: "fact" | "inference" | "observation" | "preference" | "hypothesis";
  confidence?: number;
  valid_from?: string;
  valid_until?: string;
  stale_after?: string;
  refresh_hint?: string;
  delegated_by?: string;
  delegated_to?: string;
  parent_task_id?: string;
  handoff_token?: string;
  checkpoint_id?: string;
  checkpoint_at?: string;
  interruption_policy?: "save_and_stop" | "drain_then_stop" | "force_stop";
  compensation_id?: string;
  evidence_chain?: EvidenceLink[];
  source_trust?: "verified" | "attested" | "unverified" | "signed";
  attestation_count?: number;
  data_provenance?: string;
  tenant_id?: string;
  authorization?: JsonObject;
  actor_id?: string;
  roles?: string[];
  requested_action?: string;
  target_tenant_id?: string;
  budget_id?: string;
  budget_cost?: number;
  [extra: string]: unknown;
}
