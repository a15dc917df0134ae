/** Error answers of the server, by number. */
import { HarmovelaError, type JsonObject } from "@harmovela/failure";

/** An error answer of the server's JetStream API. */
export interface ApiError {
  code?: number;
  err_code?: number;
  description?: string;
}

/** The answer to a publish that a stream has taken, or has not. */
export interface PubAck {
  stream?: string;
  seq?: number;
  /** Not stored now: the server takes it for one that it has. */
  duplicate?: boolean;
  error?: ApiError;
}

/** Where a publish was stored, or what the server takes it for a duplicate of. */
export interface StoredAt {
  stream: string;
  seq: number;
  isDuplicate: boolean;
}

/** The numbers that this package branches on or gives. */
export const API_ERROR = {
  noMessageFound: 10037,
  messageTooLarge: 10054,
  streamNameInUse: 10058,
  streamNotFound: 10059,
  streamNotAsExpected: 10060,
  wrongLastMessageId: 10070,
  wrongLastSequence: 10071,
  storeFailed: 10077,
  wrongLastSequenceInFlight: 10164,
} as const;

const CONFLICTS: ReadonlySet<number> = new Set([
  API_ERROR.wrongLastMessageId,
  API_ERROR.wrongLastSequence,
  API_ERROR.wrongLastSequenceInFlight,
]);

/** Busy, without quorum, out of room, over a rate: nothing was stored and later it may be. */
const RETRYABLE: ReadonlySet<number> = new Set([
  10008, 10009, 10023, 10028, 10047, 10077, 10158, 10167,
]);
/** JetStream is not enabled, on the server or for the account: answered like trouble, and none that passes. */
const DISABLED: ReadonlySet<number> = new Set([10039, 10076]);
const RETRY_AFTER_MS = 250;

/** Whether the stream is not where the publisher expected it to be. */
export function isConflict(apiCode: number): boolean {
  return CONFLICTS.has(apiCode);
}

/** An error answer as a typed error, with its number in `details.api_code`. */
export function toApiFailure(error: ApiError): HarmovelaError {
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
  const isPassing = error.code === 503 && !DISABLED.has(apiCode);
  const isRetryable = RETRYABLE.has(apiCode) || isPassing;
  return new HarmovelaError("append_refused", "the server refused", {
    details,
    retry: isRetryable ? { afterMs: RETRY_AFTER_MS } : "never",
  });
}

/** The API error number of a caught value; 0 when it has none. */
export function apiCodeOf(caught: unknown): number {
  if (!(caught instanceof HarmovelaError)) return 0;
  const code = caught.details?.api_code;
  return typeof code === "number" ? code : 0;
}

/** Whether a publish that the server calls a duplicate is stored is not known (case M11). */
export function unconfirmed(details: JsonObject, cause?: unknown): HarmovelaError {
  const message = "the server calls it a duplicate, and what it names is not this message";
  return new HarmovelaError("effect_outcome_uncertain", message, { details, cause });
}

/** Reads the answer to a publish; throws a typed error unless a stream says that it is stored. */
export function readPubAck(data: Uint8Array): StoredAt {
  let ack: PubAck;
  try {
    ack = (JSON.parse(new TextDecoder().decode(data)) ?? {}) as PubAck;
  } catch (cause) {
    throw new HarmovelaError("no_service", "who answered was no stream", { cause });
  }
  if (ack.error) throw toApiFailure(ack.error);
  const { stream, seq } = ack;
  const isDuplicate = ack.duplicate === true;
  if (typeof stream === "string" && typeof seq === "number" && seq >= 1) {
    return { stream, seq, isDuplicate };
  }
  if (isDuplicate) throw unconfirmed({});
  throw new HarmovelaError("no_service", "who answered was no stream");
}
