import { boundedDetails } from "./bounded.ts";
import { CATEGORY_BY_CODE, type FailureCategory } from "./categories.ts";
import { type ErrorCode, RETRYABLE_BY_CODE } from "./codes.ts";
import type { ErrorPayload, JsonObject } from "./error-payload.ts";
import type { FailureFacts } from "./failure-record.ts";
import type { LocalErrorCode } from "./local-codes.ts";
import { reject } from "./reject.ts";

/** Whether the same thing may be tried again, and when. */
export type Retry = "never" | "now" | { afterMs: number };

export interface HarmovelaErrorOptions {
  /** Default: the category of the code. */
  category?: FailureCategory;
  /** Default: "now" for a retryable code, else "never". */
  retry?: Retry;
  /** Kept for logs on this side; never part of what goes on the wire. */
  cause?: unknown;
  details?: Readonly<Record<string, unknown>>;
}

const RETRYABLE_LOCAL_CODES: ReadonlySet<string> = new Set<LocalErrorCode>([
  "no_service",
  "connection_error",
  "timeout",
]);

/** The one error class. Branch on `code`, never on the message. */
export class HarmovelaError extends Error {
  override readonly name = "HarmovelaError";
  readonly code: ErrorCode | LocalErrorCode;
  readonly category: FailureCategory;
  readonly retry: Retry;
  readonly details?: JsonObject;

  constructor(
    code: ErrorCode | LocalErrorCode,
    message: string,
    options: HarmovelaErrorOptions = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.category = options.category ?? CATEGORY_BY_CODE[code];
    this.retry = options.retry ?? (isRetryable(code) ? "now" : "never");
    if (options.details !== undefined) this.details = boundedDetails(options.details);
  }

  /** What another party may see of it: no cause, no stack. Local codes become `internal_error`. */
  toErrorPayload(facts: FailureFacts = {}): ErrorPayload {
    const stated: FailureFacts = { category: this.category, ...facts };
    if (!isWireCode(this.code)) {
      const payload = reject("internal_error", "internal error", undefined, stated);
      return { ...payload, retryable: this.retry !== "never" };
    }
    const payload = reject(this.code, this.message, this.details, stated);
    return { ...payload, retryable: this.retry !== "never" };
  }
}

/** Whether the code belongs to the protocol's closed table (spec 9.5). */
export function isWireCode(code: string): code is ErrorCode {
  return Object.hasOwn(RETRYABLE_BY_CODE, code);
}

function isRetryable(code: ErrorCode | LocalErrorCode): boolean {
  return isWireCode(code) ? RETRYABLE_BY_CODE[code] : RETRYABLE_LOCAL_CODES.has(code);
}
