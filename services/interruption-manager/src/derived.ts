/** What the service writes and asks by itself; each a function of what owes it, so that its id is known before it exists. */
import { deriveId, type Envelope, formatInstant, type Instant } from "@harmovela/envelope";
import { boundedText, type JsonObject, RETRYABLE_BY_CODE } from "@harmovela/failure";
import { payloadObject, textIn } from "./rules/payload.ts";
import { DESCRIPTION_LENGTH_MAX, type ManagerSettings, REASON_LENGTH_MAX } from "./settings.ts";
import type {
  Compensation,
  Instance,
  Interruption,
  TaskRecord,
  TreePlan,
  TreeResume,
} from "./state.ts";

interface Fields {
  id: string;
  type: string;
  at: Instant;
  cause: string;
  correlation?: string;
  payload: JsonObject;
}

/** To whoever runs the task; it names its tenant when the task did (spec 9.9). */
function derive(
  service: string,
  task: TaskRecord,
  fields: Fields,
  more: Partial<Envelope> = {},
): Envelope {
  const target = task.owner ?? task.target ?? task.submitter;
  return {
    spec_version: "0.2",
    id: fields.id,
    type: fields.type,
    source: service,
    ...(target === undefined ? {} : { target }),
    created_at: formatInstant(fields.at),
    task_id: task.id,
    causation_id: fields.cause,
    ...(fields.correlation === undefined ? {} : { correlation_id: fields.correlation }),
    ...(task.namesTenant ? { tenant_id: task.tenant.name } : {}),
    ...more,
    payload: { task_id: task.id, ...fields.payload },
  };
}

export function expiredIdOf({ task, id, due }: Interruption): string {
  return deriveId(task.tenant.name, id, "expired", due);
}

/** The grace has passed and nothing was saved: stopped by force (section 11, C10). */
export function derivedExpired(
  { service, onGraceExpired }: ManagerSettings,
  interruption: Interruption,
): Envelope {
  const { task, id, due } = interruption;
  return derive(
    service,
    task,
    {
      id: expiredIdOf(interruption),
      type: "interruption.requested",
      at: due,
      cause: id,
      payload: {
        reason: "no checkpoint within the grace period",
        grace_period_ms: 0,
        expired: true,
        // Decided here, so that folds under other settings say the same.
        on_grace_expired: onGraceExpired,
      },
    },
    { interruption_policy: "force_stop" },
  );
}

export function sessionStepIdOf({ endedBy }: Instance, { id, tenant }: TaskRecord): string {
  return deriveId(tenant.name, endedBy?.id ?? "", `interrupt:${id}`, endedBy?.at ?? 0);
}

/** The session that had the task has ended (spec 5.1). */
export function derivedOfSession(
  { service, saveGraceMs }: ManagerSettings,
  instance: Instance,
  task: TaskRecord,
): Envelope {
  const { session, endedBy } = instance;
  const cause = endedBy?.id ?? "";
  const at = endedBy?.at ?? 0;
  return derive(
    service,
    task,
    {
      id: sessionStepIdOf(instance, task),
      type: "interruption.requested",
      at,
      cause,
      payload: {
        reason: "the session that had the task has ended",
        grace_period_ms: saveGraceMs,
        ended_session_id: session,
      },
    },
    { interruption_policy: "save_and_stop" },
  );
}

/** One task of a subtree that is stopped: policy and grace as requested for its root. */
export function derivedOfTree(service: string, plan: TreePlan, task: TaskRecord): Envelope {
  const { id, at, root, policy, graceMs, envelope } = plan;
  const payload: JsonObject = {
    reason: boundedText(textIn(envelope, "reason") ?? "parent task interrupted", REASON_LENGTH_MAX),
    root_task_id: root.id,
  };
  if (graceMs !== undefined) payload.grace_period_ms = graceMs;
  return derive(
    service,
    task,
    {
      id: deriveId(task.tenant.name, id, `interrupt:${task.id}`, at),
      type: "interruption.requested",
      at,
      cause: id,
      correlation: id,
      payload,
    },
    { interruption_policy: policy },
  );
}

/** One task of a subtree that goes on, with what it saved last. */
export function derivedResume(
  service: string,
  { id, at }: TreeResume,
  task: TaskRecord,
  checkpoint: string,
): Envelope {
  return derive(
    service,
    task,
    {
      id: deriveId(task.tenant.name, id, `resume:${task.id}`, at),
      type: "interruption.resumed",
      at,
      cause: id,
      correlation: id,
      payload: { reason: "parent task resumed" },
    },
    { checkpoint_id: checkpoint },
  );
}

export function endingIdOf({ task, id }: Interruption): string {
  const { ended } = task;
  return deriveId(task.tenant.name, id, `ended:${ended?.id ?? ""}`, ended?.at ?? 0);
}

/** The task has ended, and with it what was open. Its checkpoints stay. */
export function derivedEnding(service: string, interruption: Interruption): Envelope {
  const { task, id, saved } = interruption;
  const { ended } = task;
  const payload: JsonObject = { reason: "the task has ended", task_state: stateOf(ended?.type) };
  if (saved) payload.checkpoint_id = saved.checkpoint;
  return derive(service, task, {
    id: endingIdOf(interruption),
    type: "interruption.cancelled",
    at: ended?.at ?? 0,
    cause: ended?.id ?? "",
    correlation: id,
    payload,
  });
}

function stateOf(type = ""): string {
  return type.slice(type.lastIndexOf(".") + 1);
}

interface Failure {
  code: "interruption_timeout" | "checkpoint_missing";
  message: string;
  /** The entry that owes it. */
  cause: string;
  at: Instant;
  details: JsonObject;
}

/** Asks for `task.failed`. */
export function failedDraft(service: string, task: TaskRecord, failure: Failure): Envelope {
  const { code, message, details, cause, at } = failure;
  const error = { code, message, retryable: RETRYABLE_BY_CODE[code], details };
  const payload = { state: "failed", error };
  return derive(service, task, { id: "", type: "task.failed", at, cause, payload });
}

/** Asks for `task.cancelled`, as an `interruption.cancelled` wants it. */
export function cancelledDraft(
  service: string,
  task: TaskRecord,
  { envelope, at }: { envelope: Envelope; at: Instant },
): Envelope {
  const reason = boundedText(textIn(envelope, "reason") ?? "cancelled", REASON_LENGTH_MAX);
  const payload = { state: "cancelled", reason };
  const cause = envelope.id;
  return derive(service, task, { id: "", type: "task.cancelled", at, cause, payload });
}

/** Asks for `task.completed`, as a `compensation.completed` wants it. */
export function completedDraft(
  service: string,
  task: TaskRecord,
  { envelope, at }: { envelope: Envelope; at: Instant },
): Envelope {
  const result = payloadObject(envelope)?.result;
  const payload: JsonObject = { state: "completed", ...(result === undefined ? {} : { result }) };
  return derive(service, task, { id: "", type: "task.completed", at, cause: envelope.id, payload });
}

/** Asks for the task that undoes another one (spec 5.8). */
export function submittedDraft(
  service: string,
  { taskId, original, id, at, tenant }: Compensation,
  envelope: Envelope,
  timeoutMs: number | undefined,
): Envelope {
  const payload: JsonObject = {
    task_id: taskId,
    state: "submitted",
    description: boundedText(textIn(envelope, "description") ?? "", DESCRIPTION_LENGTH_MAX),
    reason: boundedText(textIn(envelope, "reason") ?? "", REASON_LENGTH_MAX),
    compensation_of: original,
  };
  if (timeoutMs !== undefined) payload.timeout_ms = timeoutMs;
  const { target, tenant_id: named } = envelope;
  return {
    spec_version: "0.2",
    id: "",
    type: "task.submitted",
    source: service,
    ...(target === undefined ? {} : { target }),
    created_at: formatInstant(at),
    task_id: taskId,
    compensation_id: original,
    causation_id: id,
    ...(named === undefined ? {} : { tenant_id: tenant.name }),
    payload,
  };
}
