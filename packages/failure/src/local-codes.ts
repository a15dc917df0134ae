/**
 * Codes that never travel: what a process on this side of the wire can meet. On the wire they
 * become `internal_error`.
 */
export const LOCAL_ERROR_CODES = [
  "effect_outcome_uncertain",
  "no_service",
  "connection_error",
  "timeout",
  "append_conflict",
  "append_refused",
  "stream_mismatch",
  "invariant_broken",
  "invalid_argument",
  "closed",
  "interrupted",
  "checkpoint_too_large",
  "store_full",
  "quota_exceeded",
] as const;

export type LocalErrorCode = (typeof LOCAL_ERROR_CODES)[number];
