/**
 * What an event of the domain `beliefs` asserts something about, or takes back (spec 6.1, tracker key). One
 * definition for every service that follows what is claimed, so that they hold the same claims for live.
 */
import type { Envelope } from "../envelope.ts";
import { payloadText } from "../payload-text.ts";

/** Types that assert what has no name of its own: the event, or the resource that it names. */
const UNNAMED: ReadonlySet<string> = new Set([
  "memory.episode.stored",
  "memory.preference.updated",
  "memory.constraint.updated",
  "memory.summary.ready",
  "memory.retrieval.ready",
  "context.retrieval.completed",
  "state.snapshot.ready",
  "state.delta.applied",
]);

/** What was claimed before: by whom, about what. */
export interface Spoken {
  readonly source: string;
  readonly key: string;
}

/**
 * The subject of an assertion; undefined for what asserts nothing: requests, failures, invalidations, news
 * of the tracker. `revised`: the assertion that the event names as its cause, if it names one. A revision
 * of one's own words is about what they were about; any other is about the event that it names.
 */
export function assertedKey(envelope: Envelope, revised: Spoken | undefined): string | undefined {
  const { type, id, source, causation_id: cause } = envelope;
  switch (type) {
    case "memory.fact.added":
    case "memory.fact.updated":
      return factKey(envelope);
    case "context.updated":
      return isRemoval(envelope) ? undefined : contextKey(envelope);
    case "context.snapshot.ready": {
      const name = payloadText(envelope, "context_key") ?? payloadText(envelope, "snapshot_id");
      return `context:${name ?? id}`;
    }
    case "belief.revised":
      return revised?.source === source ? revised.key : `belief:${cause ?? id}`;
    default:
      return UNNAMED.has(type) ? (payloadText(envelope, "resource") ?? `belief:${id}`) : undefined;
  }
}

export interface Invalidation {
  readonly key: string;
  /** What rests on it must be evaluated again. */
  readonly isRetraction: boolean;
}

/**
 * What an event takes back: a fact with its dependents only when it says `retracted`, a context or a state
 * always; undefined for any other event.
 */
export function invalidationOf(envelope: Envelope): Invalidation | undefined {
  const { type, belief_status: status } = envelope;
  switch (type) {
    case "memory.fact.invalidated":
      return { key: factKey(envelope), isRetraction: status === "retracted" };
    case "context.invalidated":
      return { key: contextKey(envelope), isRetraction: true };
    case "context.updated":
      return isRemoval(envelope) ? { key: contextKey(envelope), isRetraction: false } : undefined;
    case "state.invalidated": {
      const key = payloadText(envelope, "resource");
      return key === undefined ? undefined : { key, isRetraction: true };
    }
    default:
      return undefined;
  }
}

function isRemoval(envelope: Envelope): boolean {
  return payloadText(envelope, "change_type") === "removed";
}

function factKey(envelope: Envelope): string {
  return `memory:${payloadText(envelope, "fact_id") ?? ""}`;
}

function contextKey(envelope: Envelope): string {
  return `context:${payloadText(envelope, "context_key") ?? ""}`;
}
