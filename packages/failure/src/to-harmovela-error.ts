import { HarmovelaError } from "./harmovela-error.ts";

/** Errors of the operating system that say: the other side is not there now. */
const CONNECTION_CODES: ReadonlySet<unknown> = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "ECONNABORTED",
  "EPIPE",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
]);

/**
 * Any caught value as a HarmovelaError. Nothing of a foreign error's text or stack enters the new
 * message; the error itself is kept as `cause`, for logs on this side. Never throws.
 */
export function toHarmovelaError(caught: unknown): HarmovelaError {
  const known = knownError(caught);
  if (known !== undefined) return known;
  const code = propertyOf(caught, "code");
  if (CONNECTION_CODES.has(code))
    return new HarmovelaError("connection_error", "the connection failed", { cause: caught });
  if (code === "ETIMEDOUT" || propertyOf(caught, "name") === "TimeoutError")
    return new HarmovelaError("timeout", "no answer in time", { cause: caught });
  return new HarmovelaError("internal_error", "internal error", { cause: caught });
}

/** Even asking what a foreign value is may run foreign code (proxy). */
function knownError(caught: unknown): HarmovelaError | undefined {
  try {
    return caught instanceof HarmovelaError ? caught : undefined;
  } catch {
    // A value that cannot even be asked is none of ours.
    return undefined;
  }
}

/** Reading a property of a foreign value may run foreign code (getter, proxy). */
function propertyOf(value: unknown, key: string): unknown {
  if (typeof value !== "object" || value === null) return undefined;
  try {
    return (value as Record<string, unknown>)[key];
  } catch {
    // A value that cannot even be read says nothing about itself.
    return undefined;
  }
}
