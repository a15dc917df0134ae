/** Events that the service writes by itself; each a function of what owes it, so that its id is known before it exists. */
import { deriveId, type Envelope, formatInstant, type Instant } from "@harmovela/envelope";
import { boundedText, type JsonObject, type JsonValue } from "@harmovela/failure";
import { compare } from "./rules/conflict.ts";
import { LISTED_CLAIMS_MAX, QUOTED_LENGTH_MAX } from "./settings.ts";
import type { Claim, Duty, Fallen, Subject, TenantState, Walk, Window, Work } from "./state.ts";
import { endingWith } from "./windows.ts";

interface Fields {
  id: string;
  type: string;
  at: Instant;
  cause: string;
  tenant: TenantState;
  namesTenant: boolean;
  payload: JsonObject;
}

/** For everybody who listens; it names its tenant when what it follows from does (spec 9.9). */
function derive(service: string, fields: Fields, more: Partial<Envelope> = {}): Envelope {
  return {
    spec_version: "0.2",
    id: fields.id,
    type: fields.type,
    source: service,
    created_at: formatInstant(fields.at),
    causation_id: fields.cause,
    ...(fields.namesTenant ? { tenant_id: fields.tenant.name } : {}),
    ...more,
    payload: fields.payload,
  };
}

export function expiredIdOf({ claim, setBy, end, due }: Window): string {
  const { tenant, key } = claim.subject;
  return deriveId(tenant.name, setBy, `expired:${end}:${key}:${claim.source}`, due);
}

/** `freshness.expired`, its end in the envelope and in the payload (spec 6.2; section 11, C26). */
export function derivedExpired(service: string, window: Window): Envelope {
  const { claim, end, due, setBy } = window;
  const until = formatInstant(end);
  const payload: JsonObject = {
    resource: claim.subject.key,
    source: claim.source,
    cached_at: formatInstant(claim.createdAt),
    valid_until: until,
    detected_at: formatInstant(due),
  };
  if (setBy !== claim.event) payload.changed_by = setBy;
  Object.assign(payload, togetherIn(window));
  const { refreshHint } = claim;
  return derive(
    service,
    {
      id: expiredIdOf(window),
      type: "freshness.expired",
      at: due,
      cause: claim.event,
      tenant: claim.subject.tenant,
      namesTenant: claim.namesTenant,
      payload,
    },
    {
      valid_from: formatInstant(claim.validFrom),
      valid_until: until,
      ...(refreshHint === undefined ? {} : { refresh_hint: refreshHint }),
    },
  );
}

/** Several claims on one subject that end together: who holds them, and how many they are. */
function togetherIn(window: Window): JsonObject {
  const together = endingWith(window);
  if (together.length === 1) return {};
  const claims = together
    .slice(0, LISTED_CLAIMS_MAX)
    .map(({ source, event }) => ({ source, event_id: event }));
  return { claims, claim_count: together.length };
}

/** The event that a duty owes. */
export function derivedOf(service: string, duty: Duty): Envelope {
  switch (duty.kind) {
    case "conflict":
      return derivedConflict(service, duty);
    case "resolution":
      return derivedResolution(service, duty);
    case "mark":
      return derivedMark(service, { ...duty, claim: duty.claim }, duty.because);
  }
}

/** `belief.conflict.detected`: the claims in the order of their sources, with their count (spec 6.1). */
function derivedConflict(service: string, duty: Extract<Duty, { kind: "conflict" }>): Envelope {
  const { subject, contested } = duty;
  const claims = [...contested].slice(0, LISTED_CLAIMS_MAX).map(([source, text]) => {
    const claim = subject.claims.get(source);
    const listed: JsonObject = { source, ...quoted(text) };
    if (claim?.confidence !== undefined) listed.confidence = claim.confidence;
    if (claim !== undefined) listed.event_id = claim.event;
    return listed;
  });
  const payload: JsonObject = { subject: subject.key, claims, claim_count: contested.size };
  const type = "belief.conflict.detected";
  return derive(service, { ...duty, type, payload }, { belief_status: "contradicted" });
}

/** A value as it is, or the beginning of its JSON when it is long. */
function quoted(text: string): JsonObject {
  if (text.length <= QUOTED_LENGTH_MAX) return { value: JSON.parse(text) as JsonValue };
  return { value: boundedText(text, QUOTED_LENGTH_MAX), is_cut: true };
}

/** `belief.revised` when a conflict has ended without one: consumers defer until they see it (spec 6.1). */
function derivedResolution(service: string, duty: Extract<Duty, { kind: "resolution" }>): Envelope {
  const { subject, conflict, cause } = duty;
  const payload: JsonObject = {
    subject: subject.key,
    previous: listOf(conflict.contested.values()),
    corrected: remaining(subject),
    reason: "the claims on this subject no longer contradict each other",
  };
  const fields = { ...duty, type: "belief.revised", cause: conflict.id, payload };
  return derive(service, fields, {
    belief_status: "revised",
    belief_scope: "fact",
    correlation_id: cause,
  });
}

/** The value on which the remaining claims agree; "null" when nothing is left. */
function remaining(subject: Subject): string {
  const texts = new Set<string>();
  for (const { text, overruledBy } of subject.claims.values()) {
    if (text !== undefined && overruledBy === undefined) texts.add(text);
  }
  const [only] = texts;
  if (only === undefined) return "null";
  return texts.size === 1 ? boundedText(only, QUOTED_LENGTH_MAX) : listOf(texts);
}

function listOf(texts: Iterable<string>): string {
  const distinct = [...new Set(texts)].sort(compare).slice(0, LISTED_CLAIMS_MAX);
  return boundedText(`[${distinct.join(",")}]`, QUOTED_LENGTH_MAX);
}

export function markIdOf({ tenant, id, at }: Work, claim: Claim): string {
  return deriveId(tenant.name, id, `mark:${claim.event}`, at);
}

/** `state.invalidated` of a conclusion that has to be evaluated again (spec 6.1). */
export function derivedMark(
  service: string,
  owed: { id: string; at: Instant; claim: Claim },
  { retraction, key, dependsOn }: Fallen,
): Envelope {
  const { claim } = owed;
  const payload: JsonObject = {
    resource: claim.subject.key,
    event_id: claim.event,
    source: claim.source,
    depends_on: [dependsOn],
    retracted: key,
    reason: "rests on what was retracted",
  };
  const { tenant } = claim.subject;
  const { id, at } = owed;
  const { namesTenant } = claim;
  const fields = { id, at, tenant, namesTenant, type: "state.invalidated", cause: retraction };
  return derive(service, { ...fields, payload }, { belief_status: "unknown" });
}

/** The mark that a walk owes next. */
export function derivedStep(service: string, walk: Walk, claim: Claim): Envelope {
  return derivedMark(
    service,
    { id: markIdOf(walk, claim), at: walk.at, claim },
    { retraction: walk.retraction, key: walk.key, dependsOn: currentEvent(walk) },
  );
}

function currentEvent({ current, id }: Walk): string {
  if (current === undefined) return id;
  return current.kind === "claim" ? current.event : current.id;
}
