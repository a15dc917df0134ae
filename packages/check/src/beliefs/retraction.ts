import type { Envelope } from "@harmovela/envelope";
import { payloadField } from "../domain-event.ts";

/** A fact, a context or a state that is said not to hold any more (spec 6.1). */
export interface Retraction {
  readonly id: string;
  readonly at: number;
  /** How often it has marked what goes by a name. */
  readonly marks: Map<string, number>;
}

const INVALIDATIONS: ReadonlySet<string> = new Set([
  "memory.fact.invalidated",
  "context.invalidated",
  "state.invalidated",
]);

export const isInvalidation = (envelope: Envelope): boolean =>
  INVALIDATIONS.has(envelope.type) || isRemoval(envelope);

/** Whether dependents must be marked; a fact that is invalidated otherwise is only withdrawn (spec 6.1). */
export function mustMark(envelope: Envelope): boolean {
  if (envelope.type === "memory.fact.invalidated") return envelope.belief_status === "retracted";
  return !isRemoval(envelope);
}

const isRemoval = (envelope: Envelope): boolean =>
  envelope.type === "context.updated" && payloadField(envelope, "change_type") === "removed";
