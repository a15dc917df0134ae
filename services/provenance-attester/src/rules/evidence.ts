/** What an event says that it follows from, oldest first: its chain, else its cause (spec section 8). */
import type { Envelope } from "@harmovela/envelope";
import type { Link } from "../state.ts";

export function linksOf({ evidence_chain: chain, causation_id: cause }: Envelope): Link[] {
  if (chain === undefined) {
    return cause === undefined ? [] : [{ id: cause, source: undefined, digest: undefined }];
  }
  return chain.map(({ id, source, digest }) => ({
    id,
    source,
    digest: typeof digest === "string" ? digest : undefined,
  }));
}

/** The event that an attestation, a revocation or a truncation speaks of: its direct cause. */
export function namedBy({
  evidence_chain: chain,
  causation_id: cause,
}: Envelope): string | undefined {
  return cause ?? chain?.at(-1)?.id;
}
