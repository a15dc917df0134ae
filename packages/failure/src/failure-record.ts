import { CATEGORIES, CATEGORY_BY_CODE, type FailureCategory } from "./categories.ts";
import type { ErrorCode } from "./codes.ts";
import type { JsonObject } from "./error-payload.ts";
import type { LocalErrorCode } from "./local-codes.ts";

/** Where a failure was noticed: the steps of judging (architecture, section 4) and what is around them. */
export const STAGES = [
  "parse",
  "envelope",
  "subject",
  "version",
  "registry",
  "payload",
  "duplicate",
  "session",
  "rights",
  "profile",
  "token",
  "rules",
  "append",
  "observe",
  "owed",
  "fold",
  "bus",
  "client",
] as const;

export type Stage = (typeof STAGES)[number];

/** What the one who fails may say about it; everything else follows from the code. */
export interface FailureFacts {
  category?: FailureCategory;
  stage?: Stage;
  attempt?: number;
  maxAttempts?: number;
}

const ATTEMPTS_MAX = 1_000_000;
const STAGE_SET: ReadonlySet<unknown> = new Set(STAGES);

/**
 * The record that stands in `details.failure`. Every field comes from a closed set or is a small
 * whole number, so nothing that a caller holds (secrets, prompts, payloads, stacks) can enter it.
 */
export function failureRecord(
  code: ErrorCode | LocalErrorCode,
  facts: FailureFacts = {},
): JsonObject {
  const known = Object.hasOwn(CATEGORY_BY_CODE, code);
  const byCode = known ? CATEGORY_BY_CODE[code] : "internal";
  const stated = facts.category;
  const category = stated !== undefined && Object.hasOwn(CATEGORIES, stated) ? stated : byCode;
  const record: JsonObject = { category, code: known ? code : "internal_error" };
  if (facts.stage !== undefined && STAGE_SET.has(facts.stage)) record.stage = facts.stage;
  if (isCount(facts.attempt)) record.attempt = facts.attempt;
  if (isCount(facts.maxAttempts)) record.max_attempts = facts.maxAttempts;
  record.class_retryable = CATEGORIES[category].retryable;
  record.action = CATEGORIES[category].action;
  return record;
}

function isCount(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= ATTEMPTS_MAX;
}
