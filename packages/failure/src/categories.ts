import type { ErrorCode } from "./codes.ts";
import type { LocalErrorCode } from "./local-codes.ts";

/** What kind of failure it is; the kind decides what may be done about it by itself. */
export type FailureCategory =
  | "validation"
  | "authorization"
  | "policy"
  | "dependency"
  | "conflict"
  | "uncertain_effect"
  | "internal";

/** What happens next, one word per category. */
export type FailureAction =
  | "correct_and_resend"
  | "operator_action"
  | "preserve_decision_context"
  | "bounded_retry"
  | "read_back"
  | "operator_reconciliation"
  | "observe";

/**
 * Only a dependency that may answer next time is worth a bounded retry. A conflict is read back
 * first, and what may have had an effect is never tried again by a machine.
 */
export const CATEGORIES = {
  validation: { action: "correct_and_resend", retryable: false },
  authorization: { action: "operator_action", retryable: false },
  policy: { action: "preserve_decision_context", retryable: false },
  dependency: { action: "bounded_retry", retryable: true },
  conflict: { action: "read_back", retryable: false },
  uncertain_effect: { action: "operator_reconciliation", retryable: false },
  internal: { action: "observe", retryable: false },
} as const satisfies Record<FailureCategory, { action: FailureAction; retryable: boolean }>;

/** The category of each code where the one who refuses says nothing more exact. */
export const CATEGORY_BY_CODE = {
  protocol_error: "validation",
  invalid_envelope: "validation",
  invalid_event_type: "validation",
  unsupported_version: "validation",
  internal_error: "internal",
  session_error: "conflict",
  session_timeout: "dependency",
  session_closed: "conflict",
  unauthorized: "authorization",
  subscription_error: "validation",
  subscription_rejected: "validation",
  task_error: "conflict",
  task_cancelled: "conflict",
  task_timeout: "dependency",
  tool_error: "dependency",
  tool_timeout: "dependency",
  unknown_event_type: "validation",
  unsupported_profile: "validation",
  checkpoint_missing: "conflict",
  budget_exceeded: "policy",
  invalid_capability: "policy",
  missing_capability: "policy",
  invalid_command: "validation",
  invalid_query: "validation",
  negotiation_timeout: "dependency",
  interruption_timeout: "dependency",
  effect_outcome_uncertain: "uncertain_effect",
  no_service: "dependency",
  connection_error: "dependency",
  timeout: "dependency",
  append_conflict: "conflict",
  append_refused: "dependency",
  stream_mismatch: "conflict",
  invariant_broken: "internal",
  invalid_argument: "validation",
  closed: "conflict",
  interrupted: "conflict",
  checkpoint_too_large: "validation",
  store_full: "dependency",
  quota_exceeded: "policy",
} as const satisfies Record<ErrorCode | LocalErrorCode, FailureCategory>;
