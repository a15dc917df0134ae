/** What an agent holds true, as the envelopes that say so (spec 3.1, 6). */
import { canonicalJson, type Envelope, type EvidenceLink } from "@harmovela/envelope";
import { HarmovelaError, type JsonObject, type JsonValue } from "@harmovela/failure";
import type { Draft } from "./draft.ts";

/** Something that an agent has said, and that others can rest on or take back. */
export interface Belief {
  /** What it is a claim on: `memory:<fact>`, `context:<name>`, or `belief:<event>` for a revision of what another said. */
  readonly key: string;
  /** The event that says it. */
  readonly id: string;
  readonly source: string;
  readonly value: JsonValue;
}

/** What it rests on: beliefs of one's own or of others, or events, with who said them. */
export type Ground = Pick<Belief, "id" | "source"> | EvidenceLink;

export interface BeliefOptions {
  /** What it was concluded from: when one of these is retracted, it is marked for re-evaluation (spec 6.1). */
  restsOn?: readonly Ground[];
  /** 0 to 1; shown to others, and never the sole basis of anything. */
  confidence?: number;
  scope?: NonNullable<Envelope["belief_scope"]>;
  trust?: NonNullable<Envelope["source_trust"]>;
  /** Default: when it is said. */
  validFrom?: Date;
  /** The earlier of this and `staleAfter` ends it (spec 6.2). */
  validUntil?: Date;
  /** ISO 8601 duration from when it is said, as in `PT5M`: `P1M` is a month. */
  staleAfter?: string;
  /** URI of a fresher copy. */
  refreshHint?: string;
  /** Further fields of the envelope, as `session_id`. */
  envelope?: Partial<Envelope>;
}

export interface ReviseOptions extends BeliefOptions {
  reason?: string;
}

export interface RetractOptions {
  reason?: string;
  /** What holds instead: the id of the event that says so. */
  replacedBy?: string;
  /** Further fields of the envelope, as `session_id`. */
  envelope?: Partial<Envelope>;
}

/** A claim on a fact of a memory or a part of a context. Throws `invalid_argument` for another key. */
export function toAssertion(key: string, value: JsonValue, options: BeliefOptions): Draft {
  const { kind, name } = partsOf(key);
  const fields = { belief_status: "asserted", ...fieldsOf(options, undefined) } as const;
  return kind === "memory"
    ? { ...fields, type: "memory.fact.added", payload: { fact_id: name, value } }
    : { ...fields, type: "context.updated", payload: { context_key: name, new_value: value } };
}

/** What was said turns out to be otherwise; values travel as canonical JSON (spec 11, C31). */
export function toRevision(
  of: Ground,
  { previous, corrected }: { previous: JsonValue; corrected: JsonValue },
  options: ReviseOptions,
): Draft {
  const payload: JsonObject = {
    previous: canonicalJson(previous),
    corrected: canonicalJson(corrected),
  };
  if (options.reason !== undefined) payload.reason = options.reason;
  return {
    belief_status: "revised",
    belief_scope: "fact",
    ...fieldsOf(options, of),
    type: "belief.revised",
    payload,
  };
}

/** What was said is taken back, and with it whatever rests on it. */
export function toRetraction(
  key: string,
  id: string | undefined,
  { reason, replacedBy, envelope }: RetractOptions,
): Draft {
  const payload: JsonObject = {};
  if (reason !== undefined) payload.reason = reason;
  if (replacedBy !== undefined) payload.replaced_by = replacedBy;
  const fields: Partial<Envelope> = { belief_status: "retracted", ...envelope };
  if (id !== undefined) fields.causation_id = id;
  if (key.startsWith("memory:") || key.startsWith("context:")) {
    const { kind, name } = partsOf(key);
    return kind === "memory"
      ? { ...fields, type: "memory.fact.invalidated", payload: { fact_id: name, ...payload } }
      : { ...fields, type: "context.invalidated", payload: { context_key: name, ...payload } };
  }
  return { ...fields, type: "state.invalidated", payload: { resource: key, ...payload } };
}

/** `last`: what caused it stands at the end of its evidence (spec 8, C13). */
function fieldsOf(options: BeliefOptions, last: Ground | undefined): Partial<Envelope> {
  const { restsOn = [], confidence, scope, trust, validFrom, validUntil } = options;
  const grounds = restsOn.map(({ source, id }) => ({ source, id }));
  // A revision without evidence of its own says only what it puts right.
  if (last !== undefined && grounds.length > 0) grounds.push({ source: last.source, id: last.id });
  const cause = last?.id ?? grounds.at(-1)?.id;
  return {
    ...(cause === undefined ? {} : { causation_id: cause }),
    ...(grounds.length === 0 ? {} : { evidence_chain: grounds }),
    ...(confidence === undefined ? {} : { confidence }),
    ...(scope === undefined ? {} : { belief_scope: scope }),
    ...(trust === undefined ? {} : { source_trust: trust }),
    ...(validFrom === undefined ? {} : { valid_from: validFrom.toISOString() }),
    ...(validUntil === undefined ? {} : { valid_until: validUntil.toISOString() }),
    ...(options.staleAfter === undefined ? {} : { stale_after: options.staleAfter }),
    ...(options.refreshHint === undefined ? {} : { refresh_hint: options.refreshHint }),
    ...options.envelope,
  };
}

function partsOf(key: string): { kind: "memory" | "context"; name: string } {
  for (const kind of ["memory", "context"] as const) {
    const name = key.startsWith(`${kind}:`) ? key.slice(kind.length + 1) : "";
    if (name !== "") return { kind, name };
  }
  throw new HarmovelaError("invalid_argument", "a claim is on memory:<fact> or context:<name>");
}
