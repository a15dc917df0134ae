import type { Envelope } from "./envelope.ts";
import { isRecord } from "./field.ts";
import { familyOf } from "./registry.ts";

/** Two places that must say the same and do not. */
export interface Disagreement {
  path: string;
  message: string;
}

/** Families whose payload may repeat the envelope's task ids. Elsewhere such keys are the application's own. */
const TASK_FAMILIES: ReadonlySet<string> = new Set([
  "task",
  "delegation",
  "interruption",
  "compensation",
]);

/** Whether payloads of this type may repeat ids of the envelope. */
export function repeatsTaskIds(type: string): boolean {
  return TASK_FAMILIES.has(familyOf(type));
}

/**
 * The first pair of fields that must be equal where both are present and are not: `task_id`,
 * `parent_task_id` (spec 3.2), `compensation_id` with `payload.original_task` (5.8).
 */
export function disagreementOf(envelope: Envelope): Disagreement | undefined {
  const payload = envelope.payload;
  if (!isRecord(payload)) return undefined;
  return (
    differing(payload.task_id, envelope.task_id, "task_id", "task_id") ??
    differing(
      payload.parent_task_id,
      envelope.parent_task_id,
      "parent_task_id",
      "parent_task_id",
    ) ??
    differing(payload.original_task, envelope.compensation_id, "original_task", "compensation_id")
  );
}

/**
 * The last link of an evidence chain is the event that directly caused this one: its id equals
 * `causation_id` where both are present (spec section 8).
 */
export function evidenceDisagreementOf(envelope: Envelope): Disagreement | undefined {
  const chain = envelope.evidence_chain;
  if (chain === undefined || envelope.causation_id === undefined) return undefined;
  if (chain.at(-1)?.id === envelope.causation_id) return undefined;
  return {
    path: "evidence_chain",
    message: "the last entry of evidence_chain must be the event that causation_id names",
  };
}

function differing(
  inPayload: unknown,
  inEnvelope: string | undefined,
  payloadKey: string,
  envelopeKey: string,
): Disagreement | undefined {
  if (inPayload === undefined || inEnvelope === undefined || inPayload === inEnvelope)
    return undefined;
  return {
    path: `payload.${payloadKey}`,
    message: `payload.${payloadKey} must equal the envelope's ${envelopeKey}`,
  };
}
