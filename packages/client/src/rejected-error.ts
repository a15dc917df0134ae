import type { Envelope } from "@harmovela/envelope";
import {
  type ErrorPayload,
  HarmovelaError,
  isWireCode,
  type JsonObject,
  RETRYABLE_BY_CODE,
  type Retry,
} from "@harmovela/failure";

/**
 * A service has refused (spec 9.5). `retryable` is what it says about trying again; a code outside
 * the protocol's table counts as `protocol_error`.
 */
export class RejectedError extends HarmovelaError {
  readonly retryable: boolean;
  /** The rejection as it stands in the log; undefined for a refused read. */
  readonly envelope: Envelope | undefined;

  constructor(error: ErrorPayload, envelope?: Envelope) {
    super(error.code, error.message, {
      retry: error.retryable ? whenAgain(error.details) : "never",
      ...(error.details === undefined ? {} : { details: error.details }),
    });
    this.retryable = error.retryable;
    this.envelope = envelope;
  }
}

/** A service that is told too much says when it will listen again (architecture, section 4). */
function whenAgain(details: JsonObject = {}): Retry {
  const { retry_after_ms: afterMs } = details;
  return typeof afterMs === "number" && afterMs > 0 ? { afterMs } : "now";
}

/** The error object of a rejection or of a refused read; what is missing is filled in (spec 11, C28). */
export function toErrorPayload(value: unknown): ErrorPayload {
  const given = isObject(value) ? value : {};
  const code =
    typeof given.code === "string" && isWireCode(given.code) ? given.code : "protocol_error";
  return {
    code,
    message: typeof given.message === "string" ? given.message : "refused",
    retryable: typeof given.retryable === "boolean" ? given.retryable : RETRYABLE_BY_CODE[code],
    ...(isObject(given.details) ? { details: given.details as JsonObject } : {}),
  };
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
