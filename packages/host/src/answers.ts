/** The envelopes in which a service speaks about somebody else's envelope (spec 9.2, 9.5). */
import {
  deriveId,
  type Envelope,
  formatInstant,
  type Instant,
  payloadObject,
  type RejectionType,
} from "@harmovela/envelope";
import type { ErrorPayload, JsonObject } from "@harmovela/failure";

/** A longer filter does not come back with its refusal: it would not fit beside it. */
const FILTER_LENGTH_MAX = 65_536;

export interface AnswerContext {
  service: string;
  tenant: string;
  /** The sender, who is answered. */
  source: string;
  intake: number;
  at: Instant;
}

function answer(
  context: AnswerContext,
  index: string,
  sent: Partial<Envelope> | undefined,
): Omit<Envelope, "type" | "payload"> {
  const { service, tenant, source, intake, at } = context;
  const envelope: Omit<Envelope, "type" | "payload"> = {
    spec_version: "0.2",
    id: deriveId(tenant, `${service}/in:${intake}`, index, at),
    source: service,
    target: source,
    created_at: formatInstant(at),
  };
  // The tenant proved by the subject, whatever the body claimed.
  if (sent?.tenant_id !== undefined) envelope.tenant_id = tenant;
  if (sent?.id !== undefined) envelope.causation_id = sent.id;
  for (const field of ["session_id", "conversation_id", "task_id", "correlation_id"] as const) {
    const value = sent?.[field];
    if (typeof value === "string") envelope[field] = value;
  }
  return envelope as Omit<Envelope, "type" | "payload">;
}

/** The refusal of an envelope, as logged and as sent (spec 3.2, 9.5). */
export function toRejection(
  context: AnswerContext,
  sent: Partial<Envelope> | undefined,
  error: ErrorPayload,
  type: RejectionType = "event.rejected",
): Envelope {
  const payload: JsonObject = {
    error: error as unknown as JsonObject,
    ...ofFamily(type, sent, error),
  };
  if (sent?.id !== undefined) payload.acknowledged_event_id = sent.id;
  return { ...answer(context, "rejected", sent), type, payload } as Envelope;
}

/** What the refusal of a request says in the terms of its family (spec 3.2). */
function ofFamily(
  type: RejectionType,
  sent: Partial<Envelope> | undefined,
  { message }: ErrorPayload,
): JsonObject {
  if (type === "event.rejected") return {};
  if (type === "subscription.rejected") {
    const filter = sent && payloadObject(sent);
    const isShort = filter && JSON.stringify(filter).length <= FILTER_LENGTH_MAX;
    return isShort ? { filter } : {};
  }
  const correlation = sent?.correlation_id;
  return { reason: message, ...(correlation === undefined ? {} : { correlation_id: correlation }) };
}

/** The acknowledgement of an accepted envelope: `cursor` is the position of what settled it (spec 9.2). */
export function toAcknowledgement(
  context: AnswerContext,
  sent: Envelope,
  cursor: string,
  more: JsonObject,
): Envelope {
  const payload: JsonObject = { acknowledged_event_id: sent.id, cursor, ...more };
  return {
    ...answer(context, "acknowledged", sent),
    type: "event.acknowledged",
    payload,
  } as Envelope;
}

/** Families that are never acknowledged, or two peers would answer each other for ever (spec 11, C16). */
export function isAcknowledged(type: string): boolean {
  return !type.startsWith("event.") && type !== "session.heartbeat";
}
