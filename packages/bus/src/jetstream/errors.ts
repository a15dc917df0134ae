/** The one place where errors of the NATS client become errors of this system: by class and by number. */
import { HarmovelaError } from "@harmovela/failure";
import { errors } from "@nats-io/nats-core";

/** An error answer of the server's JetStream API. */
export interface ApiError {
  code?: number;
  err_code?: number;
  description?: string;
}

/** API error numbers that this package branches on. */
export const API_ERROR = {
  streamNotFound: 10059,
  streamNameInUse: 10058,
  noMessageFound: 10037,
  wrongLastSequence: 10071,
  wrongLastSequenceInFlight: 10164,
  wrongLastMessageId: 10070,
  consumerNotFound: 10014,
} as const;

/** Busy, without quorum, out of room, over a rate: nothing was stored and later it may be. */
const RETRYABLE: ReadonlySet<number> = new Set([
  10008, 10009, 10023, 10028, 10047, 10077, 10158, 10167,
]);
const RETRY_AFTER_MS = 250;

const CONFLICTS: ReadonlySet<number> = new Set([
  API_ERROR.wrongLastSequence,
  API_ERROR.wrongLastSequenceInFlight,
  API_ERROR.wrongLastMessageId,
]);

export function isConflict(apiCode: number): boolean {
  return CONFLICTS.has(apiCode);
}

/** An error answer of the API, with its number in `details.api_code`. */
export function apiErrorToHarmovela(error: ApiError): HarmovelaError {
  const apiCode = error.err_code ?? 0;
  const details = { api_code: apiCode, description: error.description ?? "" };
  if (isConflict(apiCode)) {
    return new HarmovelaError("append_conflict", "the stream is not where it was expected to be", {
      details,
    });
  }
  if (apiCode === API_ERROR.streamNotFound) {
    return new HarmovelaError("no_service", "there is no such stream", { details });
  }
  return new HarmovelaError("append_refused", "the server refused", {
    details,
    retry: RETRYABLE.has(apiCode) || error.code === 503 ? { afterMs: RETRY_AFTER_MS } : "never",
  });
}

/** Whatever the client threw; never a foreign message in the new one. */
export function toBusError(caught: unknown): HarmovelaError {
  if (caught instanceof HarmovelaError) return caught;
  // A failed request wraps what went wrong.
  const error = caught instanceof errors.RequestError ? (caught.cause ?? caught) : caught;
  if (error instanceof errors.NoRespondersError) {
    return new HarmovelaError("no_service", "nobody listens on that subject", {
      cause: caught,
      details: { subject: error.subject },
    });
  }
  if (error instanceof errors.TimeoutError) {
    return new HarmovelaError("timeout", "no answer in time", { cause: caught });
  }
  if (error instanceof errors.PermissionViolationError) {
    return new HarmovelaError("unauthorized", "the server forbids it", {
      cause: caught,
      details: { operation: error.operation, subject: error.subject },
    });
  }
  if (
    error instanceof errors.AuthorizationError ||
    error instanceof errors.UserAuthenticationExpiredError
  ) {
    return new HarmovelaError("unauthorized", "the server does not accept the credentials", {
      cause: caught,
    });
  }
  if (
    error instanceof errors.ClosedConnectionError ||
    error instanceof errors.DrainingConnectionError
  ) {
    return new HarmovelaError("closed", "the connection is closed", { cause: caught });
  }
  if (
    error instanceof errors.InvalidSubjectError ||
    error instanceof errors.InvalidArgumentError ||
    error instanceof errors.InvalidOperationError
  ) {
    return new HarmovelaError("invalid_argument", "the client refuses the argument", {
      cause: caught,
    });
  }
  return new HarmovelaError("connection_error", "the connection failed", { cause: caught });
}
