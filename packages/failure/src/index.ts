export {
  boundedDetails,
  boundedText,
  DETAIL_DEPTH_MAX,
  DETAIL_KEYS_MAX,
  DETAIL_LIST_MAX,
  DETAIL_TEXT_MAX,
} from "./bounded.ts";
export {
  CATEGORIES,
  CATEGORY_BY_CODE,
  type FailureAction,
  type FailureCategory,
} from "./categories.ts";
export { type ErrorCode, RETRYABLE_BY_CODE } from "./codes.ts";
export type { ErrorPayload, JsonObject, JsonValue } from "./error-payload.ts";
export { type FailureFacts, failureRecord, STAGES, type Stage } from "./failure-record.ts";
export {
  HarmovelaError,
  type HarmovelaErrorOptions,
  isWireCode,
  type Retry,
} from "./harmovela-error.ts";
export { LOCAL_ERROR_CODES, type LocalErrorCode } from "./local-codes.ts";
export { reject } from "./reject.ts";
export { toHarmovelaError } from "./to-harmovela-error.ts";
