/** Requests to the server's JetStream API, and the form of its answers. */
import { HarmovelaError } from "@harmovela/failure";
import type { NatsConnection } from "@nats-io/nats-core";
import { type ApiError, apiErrorToHarmovela, toBusError } from "./errors.ts";

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
  if (error) throw apiErrorToHarmovela(error);
  return answer as T;
}

/** The API error number of a caught value; 0 when it has none. */
export function apiCodeOf(caught: unknown): number {
  if (!(caught instanceof HarmovelaError)) return 0;
  const code = caught.details?.api_code;
  return typeof code === "number" ? code : 0;
}
