/** Requests to the server's JetStream API, and the form of its answers. */
import { HarmovelaError } from "@harmovela/failure";
import type { NatsConnection } from "@nats-io/nats-core";
import { type ApiError, toApiFailure } from "../api-error.ts";
import { toBusError } from "./errors.ts";

const API_TIMEOUT_MS = 5_000;

/** Asks the API; throws a typed error (`details.api_code`) when it refuses or does not answer. */
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
