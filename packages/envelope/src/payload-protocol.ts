/** Payloads that the protocol describes in prose (spec 3.2): sessions, delivery, tasks, commands, budgets. */
import { deliveryModes } from "./envelope-fields.ts";
import {
  anyObject,
  anything,
  either,
  type Field,
  type Fields,
  flag,
  id,
  instant,
  integer,
  list,
  nonEmptyText,
  nonNegative,
  nullable,
  number,
  type ObjectField,
  object,
  oneOf,
  ratio,
  spanMs,
  text,
} from "./field.ts";

const texts = list(text);
const textOrTexts = either(text, texts);

/** Spec 5.3. */
export const filterField: ObjectField = object(
  {},
  {
    types: textOrTexts,
    source: textOrTexts,
    target: textOrTexts,
    topic: textOrTexts,
    session_id: textOrTexts,
    conversation_id: textOrTexts,
    task_id: textOrTexts,
    from_cursor: text,
    delivery_mode: deliveryModes,
  },
);

/** Spec 9.5. `retryable` is wanted only where senders are known to say it (spec section 11, C28). */
const error = object(
  { code: nonEmptyText, message: text, retryable: flag },
  { details: anyObject },
);
const lenientError = object(
  { code: nonEmptyText, message: text },
  { retryable: flag, details: anyObject },
);

const capabilityFields: Fields = {
  protocol: text,
  spec_version: text,
  transports: texts,
  delivery_modes: texts,
  features: texts,
  compression: texts,
  max_payload_size: nonNegative,
  heartbeat_interval_ms: nonNegative,
  profiles: texts,
  required_profiles: texts,
  auth: anyObject,
  delivery: anyObject,
  budget: anyObject,
  timeouts: anyObject,
  termination: anyObject,
};
const capabilities = object({}, capabilityFields);
const readyCapabilities = object({ protocol: text, transports: texts }, capabilityFields);

/**
 * Task payloads (spec 3.2). `state` may only repeat what the event itself says, so that no reader
 * of the payload can be told another story than the state machine's.
 */
function task(state: string | undefined, optional: Fields = {}): ObjectField {
  const stated: Field = state === undefined ? text : oneOf(state);
  return object({}, { task_id: id, parent_task_id: id, state: stated, reason: text, ...optional });
}

const work: Fields = { message: text, progress: ratio, result: anything };

const commandAnswer: Fields = {
  correlation_id: id,
  target: text,
  reason: text,
  error: lenientError,
  negotiation_window_ms: spanMs,
};
const freshness = object({}, { max_age_ms: nonNegative, require_consistent: flag });
const pagination = object(
  {},
  { limit: integer(0), cursor: nullable(text), next_cursor: nullable(text) },
);
const version = either(text, nonNegative);

export const PROTOCOL_ROWS: Readonly<Record<string, ObjectField>> = {
  "session.opened": object({ session_id: id, version: nonEmptyText }, { capabilities }),
  "session.ready": object({ session_id: id, capabilities: readyCapabilities }),
  "capabilities.declared": capabilities,
  "capabilities.changed": capabilities,
  "session.heartbeat": object({}, { session_id: id }),
  "session.closed": object({}, { session_id: id, reason: text }),
  "session.error": object({ error }, { session_id: id }),
  "subscription.requested": filterField,
  "subscription.created": object(
    { subscription_id: nonEmptyText, filter: filterField },
    { created_at: instant, expires_at: nullable(instant) },
  ),
  "subscription.rejected": object(
    {},
    { subscription_id: text, filter: anyObject, error: lenientError },
  ),
  "subscription.cancelled": object({ subscription_id: nonEmptyText }),
  "subscription.expired": object({ subscription_id: nonEmptyText }),
  "event.acknowledged": object({ acknowledged_event_id: id }, { cursor: text }),
  "event.rejected": object({ error: lenientError }, { acknowledged_event_id: id }),
  "event.redelivered": object({ original_event_id: id, attempt: integer(1) }),
  "event.replayed": object({ from_cursor: text, to_cursor: text, events_replayed: integer(0) }),
  "event.dead_lettered": object(
    { original_event_id: id },
    {
      subscription_id: text,
      target: text,
      attempts: integer(0),
      last_attempt_at: instant,
      error: lenientError,
      last_error: lenientError,
      original_event: anyObject,
    },
  ),

  "task.submitted": task("submitted", {
    description: text,
    timeout_ms: spanMs,
    deadline_ms: spanMs,
    action_timeout_ms: spanMs,
  }),
  "task.accepted": task("accepted"),
  "task.started": task("started"),
  "task.blocked": task("blocked"),
  "task.progress": task("progress", work),
  "task.output": task("output", work),
  "task.completed": task("completed", work),
  "task.failed": task("failed", { error }),
  "task.cancel.requested": task(undefined, { grace_period_ms: spanMs }),
  "task.cancelled": task("cancelled"),
  "task.timed_out": task("timed_out", { error }),

  "tool.call.failed": object({}, { error: lenientError }),

  // Without target, correlation_id or query_scope these are refused by their own state rules with
  // codes of their own (spec 5.9), so nothing is demanded here.
  "command.requested": object(
    {},
    {
      command: text,
      args: anything,
      authorization_scope: texts,
      delegation_chain: texts,
      negotiation_window_ms: spanMs,
    },
  ),
  "command.accepted": object({}, commandAnswer),
  "command.rejected": object({}, commandAnswer),
  "command.completed": object({}, { correlation_id: id }),
  "command.failed": object({}, { correlation_id: id, reason: text, error: lenientError }),
  "query.requested": object(
    {},
    { query_scope: text, freshness, pagination, since_version: version },
  ),
  "query.response": object(
    {},
    { correlation_id: id, query_scope: text, snapshot_version: version, freshness, pagination },
  ),
  "query.rejected": object({}, { correlation_id: id, reason: text, error: lenientError }),
  "query.error": object({}, { correlation_id: id, reason: text, error: lenientError }),

  // Two forms are in use and both are accepted (spec section 11, C22).
  "adaptation.budget.established": object(
    {},
    {
      budget_id: id,
      limit: nonNegative,
      scope_type: oneOf("task", "goal", "session"),
      scope_id: id,
      budget: object(
        {},
        {
          max_cost_usd_millicents: nonNegative,
          max_duration_ms: nonNegative,
          max_actions: nonNegative,
          warning_ratio: ratio,
        },
      ),
      authority: anyObject,
      delegation_chain: texts,
      established_at: instant,
    },
  ),
  "adaptation.cost.exceeded": object({}, { budget_id: id, actual_cost: number, limit: number }),
  "adaptation.budget.exhausted": object({}, { budget_id: id, remaining: number }),
};
