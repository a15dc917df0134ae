/** Who may vouch for what, and take that back (spec section 8). Undefined: nothing speaks against it. */
import { type Envelope, payloadText } from "@harmovela/envelope";
import { type ErrorPayload, reject } from "@harmovela/failure";
import type { AttesterSettings } from "../settings.ts";
import type { TenantState } from "../state.ts";
import { namedBy } from "./evidence.ts";

/**
 * `payload.attestor` is a claim: an attestation counts for its source. Where identity comes from the
 * connection (security.v1) nobody speaks for another.
 */
export function attestorRefusal(envelope: Envelope, isSecure: boolean): ErrorPayload | undefined {
  const attestor = payloadText(envelope, "attestor");
  if (!isSecure || attestor === undefined || attestor === envelope.source) return undefined;
  return reject("unauthorized", "under security.v1 an attestation is its source's own", {
    check: "attestor",
    attestor,
    source: envelope.source,
  });
}

/** What is found out only when the event that is vouched for is there. */
export function attestationRefusal(
  tenant: TenantState,
  { attestationsMax }: Pick<AttesterSettings, "attestationsMax">,
  envelope: Envelope,
): ErrorPayload | undefined {
  const event = tenant.events.get(namedBy(envelope) ?? "");
  const { length = 0 } = event?.attestations ?? [];
  if (length < attestationsMax) return undefined;
  return reject("protocol_error", "this event has too many attestations", {
    attestations_max: attestationsMax,
  });
}

/** Revoked once, by who attested or by an authority, and only what there is. */
export function revocationRefusal(
  tenant: TenantState | undefined,
  { authorities }: Pick<AttesterSettings, "authorities">,
  envelope: Envelope,
): ErrorPayload | undefined {
  const id = namedBy(envelope);
  const attestation =
    id === undefined ? undefined : (tenant?.attestations.get(id) ?? tenant?.waits.get(id));
  if (attestation === undefined) {
    return reject("protocol_error", "there is no such attestation", {
      reason: "unknown_attestation",
    });
  }
  const source = "source" in attestation ? attestation.source : attestation.envelope.source;
  if (source !== envelope.source && !authorities.includes(envelope.source)) {
    return reject("unauthorized", "only who attested revokes it, or an authority", {
      attestor: source,
    });
  }
  const { revoked } = attestation;
  if (revoked === undefined) return undefined;
  return reject("protocol_error", "this attestation is revoked already", {
    reason: "already_revoked",
    revoked_by: revoked.id,
  });
}
