/** What the service says by itself about sessions, subscriptions and exchanges. */
import { deriveId, type Envelope, formatInstant, type Instant } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";

/** The event from which another follows. */
export interface Origin {
  tenant: string;
  at: Instant;
  envelope: Envelope;
}

interface Fields {
  /** Names it among what follows from the same origin. */
  index: string;
  type: string;
  /** When it is owed; default the origin's time. */
  at?: Instant;
  target: string;
  sessionId?: string | undefined;
  payload: JsonObject;
}

/** Inherits session, conversation, correlation and tenant from what it follows from (spec 9.9). */
export function derive(service: string, origin: Origin, fields: Fields): Envelope {
  const { envelope: cause, tenant } = origin;
  const at = fields.at ?? origin.at;
  const sessionId = fields.sessionId ?? cause.session_id;
  return {
    spec_version: "0.2",
    id: derivedId(origin, fields.index),
    type: fields.type,
    source: service,
    target: fields.target,
    created_at: formatInstant(at),
    causation_id: cause.id,
    ...(sessionId === undefined ? {} : { session_id: sessionId }),
    ...(cause.conversation_id === undefined ? {} : { conversation_id: cause.conversation_id }),
    ...(cause.correlation_id === undefined ? {} : { correlation_id: cause.correlation_id }),
    ...(cause.tenant_id === undefined ? {} : { tenant_id: tenant }),
    payload: fields.payload,
  };
}

export function derivedId({ tenant, at, envelope }: Origin, index: string): string {
  return deriveId(tenant, envelope.id, index, at);
}

/** Spoken to the bus: to nobody by name, to a harness or to a service. */
export function isForBus({ target }: Envelope): boolean {
  return target === undefined || target.startsWith("harness:") || target.startsWith("service:");
}
