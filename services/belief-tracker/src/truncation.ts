/**
 * Evidence that can no longer be had (`provenance.chain.truncated`, spec section 8): whatever rests on
 * it has to be evaluated again. An entry of the log of `provenance`; called by `observe` alone.
 */
import { type DomainEntry, deriveId, type EventEntry } from "@harmovela/envelope";
import { addDuty } from "./duties.ts";
import { textIn } from "./rules/subject.ts";
import { type BeliefState, type Claim, isLive, type TenantState } from "./state.ts";

export function observeTruncation(state: BeliefState, entry: DomainEntry): void {
  if (entry.kind !== "event" || entry.envelope.type !== "provenance.chain.truncated") return;
  const { envelope, at } = entry;
  const tenant = state.tenants.get(entry.tenant);
  const missing = textIn(envelope, "missing_from") ?? envelope.causation_id ?? "";
  const node = tenant?.events.get(missing);
  if (tenant === undefined || node === undefined) return;
  if (node.kind === "claim") {
    owe(state, tenant, node, missing, entry);
    return;
  }
  const { id, source: by } = envelope;
  if (node.withdrawn === undefined)
    state.over.push({ kind: "evidence", at, tenant, evidence: node });
  node.withdrawn = { id, by, at, isRetraction: true, reason: textIn(envelope, "reason") };
  for (const claim of node.dependents) owe(state, tenant, claim, missing, entry);
}

function owe(
  state: BeliefState,
  tenant: TenantState,
  claim: Claim,
  missing: string,
  { envelope, at }: EventEntry,
): void {
  if (!isLive(claim) || claim.mark !== undefined || claim.due !== undefined) return;
  addDuty(state, {
    kind: "mark",
    id: deriveId(tenant.name, envelope.id, `mark:${claim.event}`, at),
    tenant,
    at,
    cause: envelope.id,
    namesTenant: claim.namesTenant,
    claim,
    because: { retraction: envelope.id, key: missing, dependsOn: missing },
  });
}
