/** Evidence that contradicts itself, or what the logs have shown: no later event can mend it (spec section 8). */
import { type Envelope, parseInstant } from "@harmovela/envelope";
import { type ErrorPayload, type JsonObject, reject } from "@harmovela/failure";
import type { AttesterState, TenantState } from "../state.ts";
import { badLinks, comesBack, type LinkReason } from "./chain.ts";
import { linksOf } from "./evidence.ts";

/** What is wrong with a chain whatever may still come; what is not seen yet is no reason. */
const FINAL: ReadonlySet<LinkReason> = new Set([
  "duplicate",
  "cycle",
  "out_of_order",
  "source",
  "digest",
]);

/** Undefined: nothing that is known speaks against what an event says that it follows from. */
export function contradictionRefusal(
  state: AttesterState,
  tenant: TenantState | undefined,
  envelope: Envelope,
): ErrorPayload | undefined {
  const links = linksOf(envelope);
  const refuse = (reason: string, details: JsonObject): ErrorPayload =>
    reject("invalid_envelope", "the evidence of this event contradicts itself", {
      path: envelope.evidence_chain === undefined ? "causation_id" : "evidence_chain",
      reason,
      ...details,
    });
  if (tenant === undefined) return repeats(links, envelope.id, refuse);
  const bearer = { id: envelope.id, createdAt: parseInstant(envelope.created_at), links };
  for (const { reason, index, id } of badLinks(state, tenant, bearer)) {
    // Who names only a cause says nothing about an order of events.
    if (reason === "out_of_order" && envelope.evidence_chain === undefined) continue;
    if (FINAL.has(reason)) return refuse(reason, { link: id, index });
  }
  return comesBack(tenant, bearer) ? refuse("cycle", {}) : undefined;
}

/** Of a tenant of whom nothing is known: what a chain alone shows. */
function repeats(
  links: readonly { id: string }[],
  own: string,
  refuse: (reason: string, details: JsonObject) => ErrorPayload,
): ErrorPayload | undefined {
  const ids = new Set(links.map(({ id }) => id));
  if (ids.has(own)) return refuse("cycle", { link: own });
  return ids.size < links.length ? refuse("duplicate", {}) : undefined;
}
