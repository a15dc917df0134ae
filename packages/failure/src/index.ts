export { type ErrorCode, RETRYABLE_BY_CODE } from "./codes.ts";
export type { ErrorPayload, JsonObject, JsonValue } from "./error-payload.ts";
