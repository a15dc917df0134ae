/** Who vouches for an event (spec section 8). Called by the fold alone. */
import { type EventEntry, payloadText } from "@harmovela/envelope";
import { boundedText } from "@harmovela/failure";
import { namedBy } from "./rules/evidence.ts";
import { TEXT_LENGTH_MAX } from "./settings.ts";
import { type Attestation, type AttesterState, openTenant, type Revocation } from "./state.ts";

/** An attestation is logged; `revoked`: it was taken back while it waited. */
export function addAttestation(
  state: AttesterState,
  { envelope, tenant: name, at }: EventEntry,
  revoked: Revocation | undefined,
): void {
  const tenant = openTenant(state, name);
  const of = tenant.events.get(namedBy(envelope) ?? "");
  if (of === undefined || tenant.attestations.has(envelope.id)) return;
  const claimed = payloadText(envelope, "attestor");
  const attestation: Attestation = {
    id: envelope.id,
    source: envelope.source,
    claimed: claimed === envelope.source ? undefined : short(claimed),
    method: short(payloadText(envelope, "method")) ?? "",
    result: short(payloadText(envelope, "result")),
    at,
    of,
    revoked,
  };
  of.attestations ??= [];
  of.attestations.push(attestation);
  tenant.attestations.set(attestation.id, attestation);
}

/** An attestation is taken back, one that waits too. */
export function revokeAttestation(
  state: AttesterState,
  { envelope, tenant: name, at }: EventEntry,
): void {
  const tenant = state.tenants.get(name);
  const id = namedBy(envelope) ?? "";
  const attestation = tenant?.attestations.get(id) ?? tenant?.waits.get(id);
  if (attestation === undefined) return;
  const reason = short(payloadText(envelope, "reason")) ?? "";
  attestation.revoked ??= { id: envelope.id, by: envelope.source, reason, at };
}

function short(text: string | undefined): string | undefined {
  return text === undefined ? undefined : boundedText(text, TEXT_LENGTH_MAX);
}
