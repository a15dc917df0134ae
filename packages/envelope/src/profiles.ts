/** Profiles and what they make required, as data (spec 4.1, 4.2). */
import type { Envelope } from "./envelope.ts";
import { isRecord } from "./field.ts";

/** What each profile stands on directly. Coordination includes runtime-semantics (spec section 11, C7). */
export const PROFILE_DEPENDENCIES: Readonly<Record<string, readonly string[]>> = {
  "harmovela.core.v1": [],
  "harmovela.delivery.v1": ["harmovela.core.v1"],
  "harmovela.security.v1": ["harmovela.core.v1"],
  "harmovela.runtime-semantics.v1": ["harmovela.core.v1"],
  "harmovela.coordination.v1": [
    "harmovela.core.v1",
    "harmovela.security.v1",
    "harmovela.runtime-semantics.v1",
  ],
  "harmovela.adaptation.v1": ["harmovela.coordination.v1", "harmovela.security.v1"],
  "harmovela.transport.stdio.v1": [],
  "harmovela.transport.websocket.v1": [],
  "harmovela.transport.sse.v1": [],
  "harmovela.transport.grpc.v1": [],
  "harmovela.transport.nats.v1": [],
  "harmovela.transport.kafka.v1": [],
  "harmovela.transport.redis-streams.v1": [],
};

const DEPENDENCIES: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries(PROFILE_DEPENDENCIES),
);

/** Whether a profile is one that this project knows; ids are opaque strings otherwise. */
export function isKnownProfile(profile: string): boolean {
  return DEPENDENCIES.has(profile);
}

/**
 * The profiles together with all that they stand on, sorted. Unknown ids are kept as they are:
 * whether they are available is for the negotiation to say.
 */
export function closure(profiles: Iterable<string>): string[] {
  const found = new Set<string>();
  const pending = [...profiles];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    if (found.has(next)) continue;
    found.add(next);
    pending.push(...(DEPENDENCIES.get(next) ?? []));
  }
  return [...found].sort();
}

/**
 * One condition: a field that must be there, or (`a|b`) at least one of several. `payload.` in
 * front looks into the payload.
 */
export type Condition = string;

const DELEGATION: readonly Condition[] = [
  "task_id",
  "delegated_by",
  "delegated_to",
  "parent_task_id",
];

/** What a profile makes required, by event type. */
export const CONDITIONS: Readonly<Record<string, Readonly<Record<string, readonly Condition[]>>>> =
  {
    "harmovela.runtime-semantics.v1": {
      "belief.revised": ["belief_status", "belief_scope"],
      "belief.conflict.detected": ["belief_status"],
      "freshness.expired": ["valid_until|stale_after"],
      "freshness.window.changed": ["payload.new_valid_until"],
      "delegation.requested": DELEGATION,
      "delegation.accepted": DELEGATION,
      "delegation.rejected": DELEGATION,
      "delegation.escalated": DELEGATION,
      "delegation.handoff.completed": [...DELEGATION, "handoff_token"],
      "interruption.requested": ["task_id", "interruption_policy"],
      "interruption.acknowledged": ["task_id"],
      "interruption.saved": ["task_id", "checkpoint_id", "checkpoint_at"],
      "interruption.resumed": ["task_id", "checkpoint_id"],
      "interruption.cancelled": ["task_id"],
      "compensation.requested": ["task_id", "compensation_id"],
      "compensation.completed": ["task_id", "compensation_id"],
      "provenance.attestation.added": ["evidence_chain|causation_id"],
    },
  };

const CONDITIONS_BY_PROFILE = new Map(
  Object.entries(CONDITIONS).map(([profile, rows]) => [profile, new Map(Object.entries(rows))]),
);

/**
 * Conditions that an event does not meet under the profiles in force, in the order of the table;
 * empty when all are met. The caller refuses `invalid_envelope` with these as `details.missing`.
 */
export function missingConditionalFields(
  envelope: Envelope,
  profiles: Iterable<string>,
): Condition[] {
  const missing = new Set<Condition>();
  for (const profile of closure(profiles))
    for (const condition of CONDITIONS_BY_PROFILE.get(profile)?.get(envelope.type) ?? [])
      if (!condition.split("|").some((field) => isPresent(envelope, field))) missing.add(condition);
  return [...missing];
}

function isPresent(envelope: Envelope, field: string): boolean {
  if (!field.startsWith("payload.")) return envelope[field] !== undefined;
  return isRecord(envelope.payload) && envelope.payload[field.slice(8)] !== undefined;
}
