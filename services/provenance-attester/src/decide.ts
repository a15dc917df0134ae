/** What an envelope of the domain is worth as its state knows it. Changes nothing. */
import {
  type DecideContext,
  type Decision,
  type Envelope,
  formatInstant,
  isHarness,
  isSecured,
  type Judged,
  judgeConditions,
  judgeSession,
  proofRefusal,
  rightsRefusal,
  tellProof,
} from "@harmovela/envelope";
import { type ErrorPayload, type JsonObject, reject } from "@harmovela/failure";
import { attestationRefusal, attestorRefusal, revocationRefusal } from "./rules/attestation.ts";
import { contradictionRefusal } from "./rules/contradiction.ts";
import { namedBy } from "./rules/evidence.ts";
import type { AttesterSettings } from "./settings.ts";
import { type AttesterState, type TenantState, vouchersOf } from "./state.ts";

export function decide(
  state: AttesterState,
  settings: AttesterSettings,
  input: Judged,
  { now }: DecideContext,
): Decision {
  const { envelope, tenant: name, source } = input;
  if (settings.authenticated && isHarness(source)) {
    return { reject: reject("unauthorized", "only the runtime speaks as a harness") };
  }
  const tenant = state.tenants.get(name);
  const refused =
    judgeSession(state.sessions, name, envelope, settings) ??
    rightsRefusal(input) ??
    judgeConditions(state.sessions, name, envelope, settings) ??
    proofRefusal(state.sessions, input, settings, now) ??
    attestorRefusal(envelope, isSecured(state.sessions, name, envelope, settings)) ??
    contradictionRefusal(state, tenant, envelope);
  if (refused) return { reject: refused };
  return tellProof(decideEvent(tenant, settings, envelope, now), input, settings, now);
}

function decideEvent(
  tenant: TenantState | undefined,
  settings: AttesterSettings,
  envelope: Envelope,
  now: number,
): Decision {
  switch (envelope.type) {
    case "provenance.attestation.added":
      return decideAttestation(tenant, settings, envelope, now);
    case "provenance.attestation.revoked": {
      const refusal = revocationRefusal(tenant, settings, envelope);
      return refusal ? { reject: refusal } : { accept: envelope };
    }
    case "provenance.chain.truncated": {
      const refusal = truncationRefusal(tenant, settings, envelope);
      return refusal ? { reject: refusal } : { accept: envelope };
    }
    default:
      return { accept: envelope };
  }
}

/** An attestation of what was not seen yet waits for it. */
function decideAttestation(
  tenant: TenantState | undefined,
  settings: AttesterSettings,
  envelope: Envelope,
  now: number,
): Decision {
  const of = namedBy(envelope);
  if (of === undefined) return { accept: envelope, verdict: { flags: ["names_no_event"] } };
  const event = tenant?.events.get(of);
  if (tenant === undefined || event === undefined) {
    const { waitingMax, evidenceWaitMs } = settings;
    if ((tenant?.waits.size ?? 0) >= waitingMax) {
      const why = "too many attestations wait for what they speak of";
      return { reject: reject("internal_error", why, undefined, { category: "dependency" }) };
    }
    const plan = { id: envelope.id, kind: envelope.type, envelope };
    const until = formatInstant(now + evidenceWaitMs);
    return { begin: plan, verdict: { waits_for: of, until } };
  }
  const refusal = attestationRefusal(tenant, settings, envelope);
  if (refusal) return { reject: refusal };
  const vouchers = vouchersOf(event);
  const isIndependent = event.source !== envelope.source;
  if (isIndependent) vouchers.add(envelope.source);
  const verdict: JsonObject = { attestation_count: vouchers.size };
  if (!isIndependent) verdict.flags = ["not_independent"];
  return { accept: envelope, verdict };
}

/** Conclusions are put in doubt by it: only the side that asserts them, a runtime or an authority may say so. */
function truncationRefusal(
  tenant: TenantState | undefined,
  { authorities, authenticated }: AttesterSettings,
  envelope: Envelope,
): ErrorPayload | undefined {
  const { source } = envelope;
  const event = tenant?.events.get(namedBy(envelope) ?? "");
  if (event?.source === source || authorities.includes(source)) return undefined;
  // Where senders are proved these are names as any other.
  if (!authenticated && (isHarness(source) || source.startsWith("runtime:"))) return undefined;
  return reject("unauthorized", "only the asserting side or an authority calls a chain truncated");
}
