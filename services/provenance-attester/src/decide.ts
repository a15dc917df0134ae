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
  parseInstant,
  proofRefusal,
  rightsRefusal,
  tellProof,
} from "@harmovela/envelope";
import { type ErrorPayload, type JsonObject, reject } from "@harmovela/failure";
import { attestationRefusal, attestorRefusal, revocationRefusal } from "./rules/attestation.ts";
import { badLinks, comesBack, type LinkReason } from "./rules/chain.ts";
import { linksOf, namedBy } from "./rules/evidence.ts";
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
    chainRefusal(state, tenant, envelope);
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

/** What is wrong with a chain whatever may still come; what is not seen yet is no reason. */
const FINAL: ReadonlySet<LinkReason> = new Set([
  "duplicate",
  "cycle",
  "out_of_order",
  "source",
  "digest",
]);

function chainRefusal(
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

/** Conclusions are put in doubt by it: only the side that asserts them, or an authority, may say so. */
function truncationRefusal(
  tenant: TenantState | undefined,
  { authorities }: AttesterSettings,
  envelope: Envelope,
): ErrorPayload | undefined {
  const event = tenant?.events.get(namedBy(envelope) ?? "");
  if (event?.source === envelope.source || authorities.includes(envelope.source)) return undefined;
  return reject("unauthorized", "only the asserting side or an authority calls a chain truncated");
}
