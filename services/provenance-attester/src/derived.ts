/** Events that the service writes by itself; each a function of what owes it. */
import { deriveId, type Envelope, formatInstant, type Instant } from "@harmovela/envelope";
import { type ErrorPayload, type JsonObject, reject } from "@harmovela/failure";
import type { AttesterSettings } from "./settings.ts";
import { type AttesterState, isLost, type Known, type Wait } from "./state.ts";
import type { Loss } from "./truncation.ts";

/** A session, a conversation and the like go on in the answer. */
const KEPT = ["session_id", "conversation_id", "task_id", "correlation_id"] as const;

/** `event.rejected` of an attestation that waited (spec 9.5), as the host would have answered it. */
export function derivedRefusal(service: string, wait: Wait, error: ErrorPayload): Envelope {
  const { envelope, tenant, due, of } = wait;
  // Not later than its event came, when that is what shows what is wrong with it.
  const at = Math.min(due, tenant.events.get(of)?.at ?? due);
  const kept: Partial<Envelope> = {};
  for (const field of KEPT) {
    const value = envelope[field];
    if (value !== undefined) kept[field] = value;
  }
  return {
    spec_version: "0.2",
    id: deriveId(tenant.name, wait.id, "refused", due),
    type: "event.rejected",
    source: service,
    target: envelope.source,
    created_at: formatInstant(at),
    causation_id: envelope.id,
    ...(envelope.tenant_id === undefined ? {} : { tenant_id: tenant.name }),
    ...kept,
    payload: {
      error: error as unknown as JsonObject,
      acknowledged_event_id: envelope.id,
    },
  };
}

export function neverSeen({ of }: Wait, { evidenceWaitMs }: AttesterSettings): ErrorPayload {
  return reject("protocol_error", "the event that this speaks of was not seen in time", {
    reason: "unknown_event",
    event_id: of,
    waited_ms: evidenceWaitMs,
  });
}

export function truncatedIdOf(assertion: Known): string {
  return deriveId(assertion.tenant.name, assertion.id, "truncated", assertion.at);
}

/** `provenance.chain.truncated` of an assertion (spec section 8), once. */
export function derivedTruncated(
  state: AttesterState,
  service: string,
  { lost, assertion, at, isTrimmed }: Loss,
): Envelope {
  const { tenant, links, namesTenant } = assertion;
  let missing = lost.id;
  let available = assertion.id;
  for (const { id } of links.toReversed()) {
    const event = tenant.events.get(id);
    if (event === undefined) continue;
    if (isLost(state, event)) missing = id;
    else available = id;
  }
  return {
    spec_version: "0.2",
    id: truncatedIdOf(assertion),
    type: "provenance.chain.truncated",
    source: service,
    created_at: formatInstant(at),
    causation_id: assertion.id,
    ...(namesTenant ? { tenant_id: tenant.name } : {}),
    payload: {
      earliest_available: available,
      missing_from: missing,
      reason: isTrimmed ? trimmedReason(state, lost, at) : "memory was needed for younger events",
    },
  };
}

function trimmedReason(state: AttesterState, { domain }: Known, at: Instant): string {
  const first = state.logs.get(domain)?.first ?? 1;
  return `the log of ${domain} begins with entry ${first} since ${formatInstant(at)}: what is older went with its retention`;
}
