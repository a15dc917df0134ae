/** When an offer ends by itself (spec 5.6, section 11 C10). */
import {
  deriveId,
  type Envelope,
  formatInstant,
  type Instant,
  isInstant,
  parseInstant,
} from "@harmovela/envelope";
import { type JsonObject, reject } from "@harmovela/failure";
import { textOf } from "../rules/identity.ts";
import type { Delegation } from "./state.ts";

/** An event that is older than this when it arrives is a recording of other days. */
const RECORDED_MS_MIN = 24 * 3_600_000;

/**
 * When a request's `payload.deadline` falls due: at its time, at once when that has passed. A
 * recording that is played back keeps the time it gave, counted from its arrival.
 */
export function deadlineOf(envelope: Envelope, at: Instant): Instant | undefined {
  const stated = instantOf(envelope, "deadline");
  if (stated === undefined) return undefined;
  const createdAt = parseInstant(envelope.created_at);
  const isRecording = at - createdAt > RECORDED_MS_MIN && stated < at;
  return isRecording ? at + Math.max(0, stated - createdAt) : Math.max(at, stated);
}

export function instantOf(envelope: Envelope, key: string): Instant | undefined {
  const text = textOf(envelope, key);
  return isInstant(text) ? parseInstant(text) : undefined;
}

export function expiredIdOf({ tenant, opening }: Delegation, due: Instant): string {
  return deriveId(tenant, `delegation:${opening.id}`, "deadline_expired", due);
}

/** `delegation.rejected` of an offer that nobody accepted in time, stamped with the due time. */
export function derivedExpired(service: string, delegation: Delegation, due: Instant): Envelope {
  const { tenant, taskId, parentId, delegatedBy, delegatedTo, opening } = delegation;
  const error = reject("task_timeout", `nobody accepted ${taskId} before the deadline`);
  return {
    spec_version: "0.2",
    id: expiredIdOf(delegation, due),
    type: "delegation.rejected",
    source: service,
    target: delegatedBy,
    created_at: formatInstant(due),
    causation_id: opening.id,
    task_id: taskId,
    ...(parentId === undefined ? {} : { parent_task_id: parentId }),
    delegated_by: delegatedBy,
    ...(delegatedTo === undefined ? {} : { delegated_to: delegatedTo }),
    ...(delegation.namesTenant ? { tenant_id: tenant } : {}),
    payload: { reason: "deadline_expired", error: { ...error } as JsonObject },
  };
}
