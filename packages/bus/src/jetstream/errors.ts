/** The one place where errors of the NATS client become errors of this system, by class. */
import { HarmovelaError } from "@harmovela/failure";
import { errors } from "@nats-io/nats-core";

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
