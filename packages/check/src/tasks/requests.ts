/** What the manager of interruptions asks of tasks, and why (spec 5.7, 5.8; architecture, section 2). */
import { payloadField } from "../domain-event.ts";
import type { Reason } from "../interruptions/view.ts";
import { isObject } from "../record.ts";
import type { TaskContext, TaskEvent } from "./context.ts";

const MANAGER = "service:interruption-manager";

/** What may follow from which entry of its log. */
const REASONS: ReadonlyMap<string, readonly Reason[]> = new Map([
  ["failed", ["expired", "checkpoint_missing"]],
  ["cancelled", ["cancelled"]],
  ["submitted", ["compensation.requested"]],
  ["completed", ["compensation.completed"]],
]);

/** The error with which a task fails for a reason. */
const ERRORS: ReadonlyMap<Reason, string> = new Map([
  ["expired", "interruption_timeout"],
  ["checkpoint_missing", "checkpoint_missing"],
]);

/** Whether the event is a request of the manager. */
export function isRequest({ envelope, owedBy }: TaskEvent): boolean {
  return envelope.source === MANAGER && owedBy === undefined;
}

/** A request names the entry that it follows from, which had been seen and is of the same task. */
export function checkRequest(
  context: TaskContext,
  event: TaskEvent,
  id: string,
  name: string,
): void {
  const { sink, interruptions } = context;
  if (!isRequest(event) || interruptions === undefined) return;
  const { causation_id: cause } = event.envelope;
  const reason = cause === undefined ? undefined : interruptions.reason(event.tenant, id, cause);
  if (reason === undefined && interruptions.isLenient) return;
  if (reason === undefined || REASONS.get(name)?.includes(reason) !== true) {
    sink.add("request-reason", `${name} of ${id} is asked for by ${cause ?? "nothing"}`, id);
    return;
  }
  const error = payloadField(event.envelope, "error");
  const code = isObject(error) ? error.code : undefined;
  if (name === "failed" && code !== ERRORS.get(reason)) {
    sink.add("request-error", `${id} fails with the error ${String(code)}`, id);
  }
}
