/**
 * May something be done because of an event? For gateways in front of tools (spec section 8: nothing
 * irreversible rests on unverified assertions alone).
 */
import { formatInstant } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import { inspectChain } from "./rules/chain.ts";
import type { AttesterSettings } from "./settings.ts";
import { type AttesterState, type Known, vouchersOf } from "./state.ts";
import { type Archive, lookAtStored } from "./stored.ts";

export type Objection =
  | "unknown_event"
  | "ambiguous"
  | "withdrawn"
  | "truncated"
  | "chain"
  | "unverified"
  | "signature"
  | "altered";

/** What speaks against relying on an event for good, the gravest first. */
export async function objectionsTo(
  state: AttesterState,
  settings: Pick<AttesterSettings, "attestationsNeeded">,
  event: Known,
  archive: Archive,
): Promise<JsonObject[]> {
  const against: JsonObject[] = [];
  const object = (reason: Objection, text: string, details: JsonObject = {}): void => {
    against.push({ reason, text, ...details });
  };
  const { withdrawn, truncated, tenant } = event;
  if (event.isAmbiguous) object("ambiguous", "different events stand under this id");
  if (withdrawn !== undefined) {
    object("withdrawn", `was taken back by ${withdrawn.by}`, { event_id: withdrawn.id });
  }
  if (truncated !== undefined) {
    object("truncated", "its evidence can no longer be had", { event_id: truncated });
  }
  const { result, firstBad } = inspectChain(state, tenant, event);
  if (firstBad !== undefined) {
    const { id, reason } = firstBad;
    object("chain", `its evidence is not intact: ${result}`, {
      result,
      link: id,
      link_reason: reason,
    });
  }
  await judgeTrust(settings, event, archive, object);
  return against;
}

/**
 * `verified` is its sender's word; `signed` is proved; everything else, and nothing said, needs others who
 * vouch for it.
 */
async function judgeTrust(
  { attestationsNeeded }: Pick<AttesterSettings, "attestationsNeeded">,
  event: Known,
  archive: Archive,
  object: (reason: Objection, text: string, details?: JsonObject) => void,
): Promise<void> {
  const { trust } = event;
  if (trust === "verified") return;
  if (trust === "signed") {
    const problem = await lookAtStored(event, archive);
    if (problem === undefined) return;
    if (problem.reason === "signature") {
      object("signature", "its signature proves nothing", { problem: problem.problem });
    } else object("altered", "the log does not hold it as it was", { result: problem.result });
    return;
  }
  const count = vouchersOf(event).size;
  if (count >= attestationsNeeded) return;
  object("unverified", "nobody but its source vouches for it", {
    source_trust: trust ?? "unverified",
    attestation_count: count,
    attestations_needed: attestationsNeeded,
    asserted_at: formatInstant(event.createdAt),
  });
}
