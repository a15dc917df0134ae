/** Requests to the server's JetStream API: through the client's own manager, or raw where that is not enough. */
import { HarmovelaError } from "@harmovela/failure";
import { jetstreamManager, type StreamAPI } from "@nats-io/jetstream";
// The public entry exports only one of the three classes that its calls throw.
import { jserrors } from "@nats-io/jetstream/internal";
import type { NatsConnection } from "@nats-io/nats-core";
import { type ApiError, toApiFailure } from "../api-error.ts";
import { toBusError } from "./errors.ts";

export const API_TIMEOUT_MS = 5_000;

/** Asks about streams; throws a typed error (`details.api_code`) when the server refuses or does not answer. */
export async function askStreams<T>(
  nats: NatsConnection,
  ask: (streams: StreamAPI) => Promise<T>,
): Promise<T> {
  try {
    const { streams } = await jetstreamManager(nats, { checkAPI: false, timeout: API_TIMEOUT_MS });
    return await ask(streams);
  } catch (caught) {
    throw toJetStreamFailure(caught);
  }
}

/** Asks the API as it is; throws a typed error (`details.api_code`) when it refuses or does not answer. */
export async function askApi<T extends object>(
  nats: NatsConnection,
  verb: string,
  body?: object,
  timeoutMs = API_TIMEOUT_MS,
): Promise<T> {
  let answer: unknown;
  try {
    const reply = await nats.request(
      `$JS.API.${verb}`,
      body === undefined ? undefined : JSON.stringify(body),
      { timeout: timeoutMs },
    );
    answer = reply.json();
  } catch (caught) {
    throw toBusError(caught);
  }
  if (typeof answer !== "object" || answer === null) {
    throw new HarmovelaError("connection_error", "the server's answer has no known form");
  }
  const { error } = answer as { error?: ApiError };
  if (error) throw toApiFailure(error);
  return answer as T;
}

/** Whatever the client's JetStream or key-value calls threw, as a typed error. */
export function toJetStreamFailure(caught: unknown): HarmovelaError {
  if (caught instanceof jserrors.JetStreamApiError) return toApiFailure(caught.apiError());
  // It stands for "nobody answered" and for "not for this account"; its cause says which.
  if (caught instanceof jserrors.JetStreamNotEnabled) {
    return caught.cause === undefined ? toBusError(caught) : toJetStreamFailure(caught.cause);
  }
  if (caught instanceof jserrors.InvalidNameError) {
    return new HarmovelaError("invalid_argument", "that is no name for a stream", {
      cause: caught,
    });
  }
  return toBusError(caught);
}
