/** What an event of the domain `beliefs` asserts something about, or takes back (spec 6.1, tracker key). */
import { type Envelope, isService } from "@harmovela/envelope";
import type { Known } from "../state.ts";
import { textIn } from "./evidence.ts";

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

/** The subject of an assertion; undefined for what asserts nothing. `revised`: what the event that it names is about. */
export function assertedKey(envelope: Envelope, revised: Known | undefined): string | undefined {
  const { type, id, source, causation_id: cause } = envelope;
  switch (type) {
    case "memory.fact.added":
    case "memory.fact.updated":
      return `memory:${textIn(envelope, "fact_id") ?? ""}`;
    case "context.updated":
      return isRemoval(envelope) ? undefined : contextKey(envelope);
    case "context.snapshot.ready":
      return `context:${textIn(envelope, "context_key") ?? textIn(envelope, "snapshot_id") ?? id}`;
    case "belief.revised": {
      // A revision of one's own claim changes that claim; any other is a claim about the event it names.
      const own = revised?.source === source ? revised.key : undefined;
      return own ?? `belief:${cause ?? id}`;
    }
    default:
      return UNNAMED.has(type) ? (textIn(envelope, "resource") ?? `belief:${id}`) : undefined;
  }
}

export interface Invalidation {
  key: string;
  isRetraction: boolean;
}

/** What an event takes back; undefined for any other. What the tracker marks by itself takes nothing back. */
export function invalidationOf(envelope: Envelope): Invalidation | undefined {
  if (isService(envelope.source)) return undefined;
  switch (envelope.type) {
    case "memory.fact.invalidated": {
      const isRetraction = envelope.belief_status === "retracted";
      return { key: `memory:${textIn(envelope, "fact_id") ?? ""}`, isRetraction };
    }
    case "context.invalidated":
      return { key: contextKey(envelope), isRetraction: true };
    case "context.updated":
      return isRemoval(envelope) ? { key: contextKey(envelope), isRetraction: false } : undefined;
    case "state.invalidated": {
      const key = textIn(envelope, "resource");
      return key === undefined ? undefined : { key, isRetraction: true };
    }
    default:
      return undefined;
  }
}

function isRemoval(envelope: Envelope): boolean {
  return textIn(envelope, "change_type") === "removed";
}

function contextKey(envelope: Envelope): string {
  return `context:${textIn(envelope, "context_key") ?? ""}`;
}

/** The asserting side: its own source, or the memory or context system of its subject (spec 6.2). */
export function isSystemOf(key: string, source: string): boolean {
  return ["memory:", "context:"].some((kind) => key.startsWith(kind) && source.startsWith(kind));
}
