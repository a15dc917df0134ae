/** Questions to a service (architecture, section 3): answered from its fold, with the position it is true at. */
import { type Bus, type Clock, rpcSubject } from "@harmovela/bus";
import type { Domain } from "@harmovela/envelope";
import {
  HarmovelaError,
  type JsonObject,
  type JsonValue,
  toHarmovelaError,
} from "@harmovela/failure";
import { isObject, RejectedError, toErrorPayload } from "./rejected-error.ts";

/** `position`: the log position that the result is true at. */
export interface Reading {
  position: string | undefined;
  result: JsonValue;
}

export interface ReadOptions {
  /** Default 10,000: a service waits up to 5 s for the cursor of a question. */
  timeoutMs?: number;
}

export interface ReadContext {
  bus: Bus;
  clock: Clock;
  tenant: string;
  agent: string;
  noServiceMs: number;
}

const TIMEOUT_MS = 10_000;
const RETRY_MS = 150;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Throws RejectedError, `no_service` when nobody listens for a while, `timeout`. */
export async function askService(
  context: ReadContext,
  domain: Domain,
  verb: string,
  params: JsonObject,
  options: ReadOptions = {},
): Promise<Reading> {
  const { bus, clock, tenant, agent, noServiceMs } = context;
  const subject = rpcSubject({ tenant, source: agent, domain, verb });
  const data = encoder.encode(JSON.stringify(params));
  const timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
  const startedAt = clock.monotonic();
  for (;;) {
    try {
      const answer = await bus.request(subject, {}, data, timeoutMs);
      return toReading(answer.data);
    } catch (caught) {
      const error = toHarmovelaError(caught);
      // A service that is being replaced is back in a moment.
      const isLate = clock.monotonic() - startedAt >= noServiceMs;
      if (error.code !== "no_service" || isLate) throw error;
    }
    await new Promise<void>((resolve) => clock.after(RETRY_MS, resolve));
  }
}

function toReading(data: Uint8Array): Reading {
  let answer: unknown;
  try {
    answer = JSON.parse(decoder.decode(data));
  } catch (cause) {
    throw new HarmovelaError("internal_error", "the answer is not JSON", { cause });
  }
  if (!isObject(answer)) throw new HarmovelaError("internal_error", "the answer is no object");
  if (answer.error !== undefined) throw new RejectedError(toErrorPayload(answer.error));
  const { position, result, status } = answer;
  return {
    position: typeof position === "string" ? position : undefined,
    result: (result ?? status ?? null) as JsonValue,
  };
}
