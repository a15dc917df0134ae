/** What an event says that it rests on: `causation_id`, `evidence_chain`, `payload.replaced_by` (spec 6.1). */
import { type Envelope, payloadText } from "@harmovela/envelope";

/** Ids of events, each once, in the order in which they are named. */
export function evidenceOf(envelope: Envelope): string[] {
  const ids = new Set<string>();
  for (const link of envelope.evidence_chain ?? []) ids.add(link.id);
  if (envelope.causation_id !== undefined) ids.add(envelope.causation_id);
  const replacement = payloadText(envelope, "replaced_by");
  if (replacement !== undefined) ids.add(replacement);
  ids.delete(envelope.id);
  return [...ids];
}
