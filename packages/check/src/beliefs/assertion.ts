import { canonicalJson, type Envelope } from "@harmovela/envelope";
import { type DomainEvent, payloadField, payloadText } from "../domain-event.ts";
import type { Retraction } from "./retraction.ts";
import { type Window, windowOf } from "./window.ts";

/** How sure one can be from the log alone: where the protocol is silent, nothing is demanded and nothing forbidden. */
export type Certainty = "surely" | "perhaps";

/** How a retraction reaches an assertion (spec 6.1). */
export interface Taint {
  certainty: Certainty;
  /** It is what was retracted, not what rests on it. */
  isSeed: boolean;
}

/**
 * `replaced`: its source has said something else since. `unsure`: somebody invalidated it of whom the
 * protocol does not say whether he may.
 */
export type Standing = "live" | "replaced" | "withdrawn" | "unsure";

/**
 * What one source has said about one subject without having been marked or withdrawn in between: who
 * cites one version perhaps rests on the others as well.
 */
export interface Lineage {
  readonly versions: Set<Assertion>;
  /** What has put one of the versions in doubt. */
  readonly retractions: Set<Retraction>;
}

/** Something an agent holds true: a claim on a subject, or a conclusion. */
export interface Assertion {
  readonly id: string;
  readonly type: string;
  readonly source: string;
  readonly seq: number;
  readonly subject: string;
  readonly at: number;
  /** What it is a claim on (spec 6.1, tracker key); undefined where the protocol names none. */
  readonly key: string | undefined;
  /** What marks and expiries may call it. */
  readonly names: readonly string[];
  /** Its value as canonical JSON; undefined when it says none. An update without one keeps it. */
  value: string | undefined;
  /** What it may mean since its source has decided a conflict. */
  readonly otherValues: Set<string>;
  readonly confidence: number | undefined;
  /** Ids of the events that it rests on. */
  readonly grounds: Set<string>;
  /** Those of them that it rests on only perhaps. */
  readonly weakGrounds: Set<string>;
  /** The one of these that it puts right, and does not argue from. */
  readonly revises: string | undefined;
  readonly window: Window;
  standing: Standing;
  readonly taints: Map<Retraction, Taint>;
  lineage: Lineage;
  isMarked: boolean;
}

/** Types whose value is a claim that others can contradict, by the field that holds the value. */
const VALUE_FIELDS: ReadonlyMap<string, string> = new Map([
  ["memory.fact.added", "value"],
  ["memory.fact.updated", "new_value"],
  ["context.updated", "new_value"],
  ["context.snapshot.ready", "data"],
  ["belief.revised", "corrected"],
]);

/** Types that are a claim on the resource that they name, or on the event itself, and state no value. */
const VALUELESS: ReadonlySet<string> = new Set([
  "memory.episode.stored",
  "memory.preference.updated",
  "memory.constraint.updated",
  "memory.summary.ready",
  "memory.retrieval.ready",
  "context.retrieval.completed",
  "state.snapshot.ready",
  "state.delta.applied",
]);

/** Types of the domain that hold nothing true: they ask, withdraw, or speak of others. */
const ASSERTS_NOTHING: ReadonlySet<string> = new Set([
  "belief.conflict.detected",
  "freshness.expired",
  "freshness.window.changed",
  "memory.fact.invalidated",
  "context.invalidated",
  "state.invalidated",
  "context.snapshot.requested",
  "state.snapshot.requested",
  "context.retrieval.started",
  "context.retrieval.failed",
]);

export const assertsSomething = ({ type }: Envelope): boolean => !ASSERTS_NOTHING.has(type);

/** Whether the protocol says what it is a claim on. */
export const isClaim = ({ type }: { type: string }): boolean =>
  VALUE_FIELDS.has(type) || VALUELESS.has(type);

/** `cause`: what it names as its cause, as far as that is an assertion. */
export function assertionOf(
  { envelope, frame }: DomainEvent,
  cause: Assertion | undefined,
): Assertion {
  const { id, type, source, confidence } = envelope;
  const key = keyOf(envelope, cause);
  return {
    id,
    type,
    source,
    seq: frame.seq,
    subject: frame.subject,
    at: frame.at,
    key,
    names: namesOf(envelope, key),
    value: claimedBy(envelope),
    otherValues: new Set(),
    confidence,
    grounds: groundsOf(envelope),
    weakGrounds: new Set(),
    revises: revisedBy(envelope),
    window: windowOf(envelope),
    standing: "live",
    taints: new Map(),
    lineage: { versions: new Set(), retractions: new Set() },
    isMarked: false,
  };
}

/** The tracker key of spec 6.1; whoever revises his own words speaks of what they spoke of. */
export function keyOf(envelope: Envelope, cause?: Assertion): string | undefined {
  const { type, id, source, causation_id: revised } = envelope;
  if (type === "belief.revised") {
    return cause?.source === source ? cause.key : `belief:${revised ?? id}`;
  }
  if (VALUELESS.has(type)) return payloadText(envelope, "resource") ?? `belief:${id}`;
  if (type === "context.snapshot.ready") {
    const name = payloadText(envelope, "context_key") ?? payloadText(envelope, "snapshot_id");
    return `context:${name ?? id}`;
  }
  const fact = payloadText(envelope, "fact_id");
  if (type.startsWith("memory.fact.") && fact !== undefined) return `memory:${fact}`;
  const context = payloadText(envelope, "context_key");
  if (type.startsWith("context.") && context !== undefined) return `context:${context}`;
  // A snapshot of no named context is told apart by its own id.
  if (type === "context.snapshot.ready")
    return `context:${payloadText(envelope, "snapshot_id") ?? id}`;
  return undefined;
}

/** Its id and its key; what has no key goes by its resource, or by its event. */
function namesOf(envelope: Envelope, key: string | undefined): string[] {
  const { id } = envelope;
  if (key !== undefined) return [id, key];
  const resource = payloadText(envelope, "resource");
  return resource === undefined ? [id, `belief:${id}`] : [id, resource];
}

function claimedBy(envelope: Envelope): string | undefined {
  if (envelope.type === "belief.revised") return revisedTo(envelope);
  const field = VALUE_FIELDS.get(envelope.type);
  const value = field === undefined ? undefined : payloadField(envelope, field);
  return value === undefined ? undefined : textOf(value);
}

/** A revision carries text; the canonical form of a JSON value means that value (C31). */
export function revisedTo(envelope: Envelope): string {
  const text = String(payloadField(envelope, "corrected"));
  try {
    if (textOf(JSON.parse(text)) === text) return text;
  } catch {
    // No JSON: the text is the value.
  }
  return textOf(text);
}

/** Equal texts are equal values (spec 6.1, deep-equal); nothing is no value. */
export const textOf = (value: unknown): string =>
  value === undefined ? "" : canonicalJson(value as object);

/** `causation_id` and `evidence_chain` (spec 6.1, dependency edges). */
function groundsOf({ id, causation_id: cause, evidence_chain: chain = [] }: Envelope): Set<string> {
  const grounds = new Set(chain.map((link) => link.id));
  if (cause !== undefined) grounds.add(cause);
  grounds.delete(id);
  return grounds;
}

/** Who revises a belief names it as the cause; as evidence only if it rests on it as well. */
function revisedBy({ type, causation_id: cause, evidence_chain: chain = [] }: Envelope) {
  return type === "belief.revised" && !chain.some(({ id }) => id === cause) ? cause : undefined;
}
