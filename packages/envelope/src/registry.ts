import type { Domain } from "./judging.ts";

/** All event types (spec section 2): 107 that every reference knows, and two that only the texts specify. */
const NAMES_BY_FAMILY: Readonly<Record<string, string>> = {
  session: "opened ready heartbeat closed error",
  capabilities: "requested declared changed",
  subscription: "requested created rejected cancelled expired",
  event: "acknowledged rejected redelivered replayed dead_lettered",
  task: "submitted accepted started blocked progress output completed failed cancel.requested cancelled timed_out",
  context:
    "updated invalidated snapshot.requested snapshot.ready retrieval.started retrieval.completed retrieval.failed",
  memory:
    "fact.added fact.updated fact.invalidated episode.stored preference.updated constraint.updated summary.ready retrieval.ready",
  belief: "revised conflict.detected",
  provenance: "attestation.added attestation.revoked chain.truncated",
  state: "snapshot.requested snapshot.ready delta.applied invalidated",
  freshness: "expired window.changed",
  delegation: "requested accepted rejected handoff.completed escalated",
  interruption: "requested acknowledged saved resumed cancelled",
  compensation: "requested completed",
  tool: "call.requested call.accepted call.rejected call.started call.progress call.output call.completed call.failed call.cancel.requested call.cancelled call.timed_out",
  agent:
    "message.sent message.received message.failed request.created response.created decision.recorded",
  environment: "observed changed alerted error",
  command: "requested accepted rejected completed failed",
  query: "requested response rejected error",
  adaptation:
    "outcome.correlated goal.created goal.updated goal.achieved goal.abandoned cost.exceeded budget.established budget.adjusted budget.limit_exceeded budget.exhausted goal.blocked budget.limit_approaching",
};

function typesIn(namesByFamily: Readonly<Record<string, string>>): string[] {
  return Object.entries(namesByFamily).flatMap(([family, names]) =>
    names.split(" ").map((name) => `${family}.${name}`),
  );
}

export const EVENT_TYPES: readonly string[] = typesIn(NAMES_BY_FAMILY);

const REGISTERED: ReadonlySet<string> = new Set(EVENT_TYPES);

/** Whether the type is in the registry. Names that occur only in prose (spec section 2) are not. */
export function isRegistered(type: string): boolean {
  return REGISTERED.has(type);
}

/**
 * What begins something, or says something new, by family: tasks, offers, sessions, exchanges, goals; facts, contexts,
 * observations, attestations. What ends or answers something, puts right or takes back, stops or undoes is not among it.
 */
const BEGINNINGS_BY_FAMILY: Readonly<Record<string, string>> = {
  session: "opened",
  subscription: "requested",
  task: "submitted",
  delegation: "requested",
  tool: "call.requested",
  agent: "message.sent request.created decision.recorded",
  command: "requested",
  query: "requested",
  adaptation: "outcome.correlated goal.created budget.established",
  memory:
    "fact.added episode.stored preference.updated constraint.updated summary.ready retrieval.ready",
  context: "updated snapshot.requested snapshot.ready retrieval.started",
  state: "snapshot.requested snapshot.ready delta.applied",
  environment: "observed changed",
  provenance: "attestation.added",
};

const BEGINNINGS: ReadonlySet<string> = new Set(typesIn(BEGINNINGS_BY_FAMILY));

/** Whether an event of this type can wait where there is little room left (architecture, section 4). */
export function isBeginning(type: string): boolean {
  return BEGINNINGS.has(type);
}

/** The form of a type (spec 1.1): no underscore in the first word. */
export const TYPE_PATTERN = /^[a-z][a-z0-9]*(\.[a-z][a-z0-9_]*)+$/;

/** Longest type, characters: it becomes subject tokens. */
export const TYPE_LENGTH_MAX = 128;

/** Whether a text has the form of an event type (spec 1.1). */
export function isWellFormedType(type: string): boolean {
  return REGISTERED.has(type) || (type.length <= TYPE_LENGTH_MAX && TYPE_PATTERN.test(type));
}

const DOMAIN_BY_FAMILY: ReadonlyMap<string, Domain> = new Map([
  ["belief", "beliefs"],
  ["freshness", "beliefs"],
  ["memory", "beliefs"],
  ["context", "beliefs"],
  ["state", "beliefs"],
  ["interruption", "interruptions"],
  ["compensation", "interruptions"],
  ["provenance", "provenance"],
]);

const DOMAIN_BY_TYPE: ReadonlyMap<string, Domain> = new Map(
  EVENT_TYPES.map((type) => [type, domainOfFamily(type)]),
);

/** The domain whose service judges the type (architecture, section 3): `tasks` for every unknown one. */
export function domainOf(type: string): Domain {
  return DOMAIN_BY_TYPE.get(type) ?? domainOfFamily(type);
}

/** The first segment of a type. */
export function familyOf(type: string): string {
  const dot = type.indexOf(".");
  return dot < 0 ? type : type.slice(0, dot);
}

function domainOfFamily(type: string): Domain {
  return DOMAIN_BY_FAMILY.get(familyOf(type)) ?? "tasks";
}
