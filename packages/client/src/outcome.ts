/** The end of a delegated task as the delegator's code meets it: a value or an error. */
import { HarmovelaError, type JsonObject, type JsonValue } from "@harmovela/failure";
import type { Observed } from "./lane.ts";
import { isObject, toErrorPayload } from "./rejected-error.ts";
import type { Settled } from "./settled.ts";

/** The result of a completed task, null when it has none. Throws what it failed with. */
export function toResult({ taskId, state, envelope, by }: Settled): JsonValue {
  const payload = (isObject(envelope.payload) ? envelope.payload : {}) as JsonObject;
  const facts = { task_id: taskId, state, by, event_id: envelope.id };
  switch (state) {
    case "completed":
      return payload.result ?? null;
    case "cancelled":
      throw new HarmovelaError("task_cancelled", "the task was cancelled", { details: facts });
    case "timed_out":
      throw new HarmovelaError("task_timeout", "the task was not done in time", { details: facts });
    case "failed": {
      const { code, message, retryable, details } = toErrorPayload(payload.error);
      throw new HarmovelaError(code, message, {
        retry: retryable ? "now" : "never",
        details: { ...details, ...facts },
      });
    }
  }
}

/** An offer that was refused: by its delegate, or by the service when nobody accepted it in time. */
export function toRefusal(taskId: string, { envelope }: Observed): HarmovelaError {
  const payload = (isObject(envelope.payload) ? envelope.payload : {}) as JsonObject;
  const { reason, retry_after: retryAfter, error } = payload;
  const code = isObject(error) ? toErrorPayload(error).code : "task_error";
  const afterMs = typeof retryAfter === "string" ? Date.parse(retryAfter) - Date.now() : Number.NaN;
  return new HarmovelaError(code, "the delegation was rejected", {
    retry: Number.isNaN(afterMs) ? "never" : { afterMs: Math.max(0, afterMs) },
    details: {
      task_id: taskId,
      by: envelope.source,
      event_id: envelope.id,
      ...(reason === undefined ? {} : { reason }),
      ...(retryAfter === undefined ? {} : { retry_after: retryAfter }),
    },
  });
}
