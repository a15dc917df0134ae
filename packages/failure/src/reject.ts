import { boundedDetails, boundedText } from "./bounded.ts";
import { type ErrorCode, RETRYABLE_BY_CODE } from "./codes.ts";
import type { ErrorPayload, JsonObject } from "./error-payload.ts";
import { type FailureFacts, failureRecord } from "./failure-record.ts";

/**
 * The error object of a refusal (spec 9.5): `retryable` from the table of codes, `details` bounded,
 * `details.failure` the allow-listed record. The message is the caller's own words and must not
 * quote what an agent sent.
 */
export function reject(
  code: ErrorCode,
  message: string,
  details?: Readonly<Record<string, unknown>>,
  facts?: FailureFacts,
): ErrorPayload {
  const bounded: JsonObject = details === undefined ? {} : { ...boundedDetails(details) };
  bounded.failure = failureRecord(code, facts);
  return {
    code,
    message: boundedText(message),
    retryable: RETRYABLE_BY_CODE[code],
    details: bounded,
  };
}
