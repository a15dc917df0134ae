/**
 * What is signed and what is compared when an envelope proves itself (spec 4.2 security.v1, section 8;
 * section 11, C15): its RFC 8785 form without what the log stamps on it.
 */
import { hash } from "node:crypto";
import type { Envelope } from "./envelope.ts";
import { isRecord } from "./field.ts";
import { canonicalJson } from "./json.ts";

/** `authorization.scheme` of a signature; the other place is `payload.evidence.signature`. */
export const SIGNATURE_SCHEME = "jws-detached";
/** `typ` of the protected header: what is signed as an envelope is good for nothing else. */
export const SIGNATURE_TYPE = "harmovela-envelope+jws";
/** Longest detached signature that is looked at, UTF-16 units; one has a few hundred. */
export const SIGNATURE_MAX = 4096;

/**
 * The detached signature that an envelope carries; undefined when it carries none. "" when it is none, or when
 * something stands beside it that it could not cover: a second signature, or more than scheme and token.
 */
export function signatureIn(envelope: Envelope): string | undefined {
  const { authorization } = envelope;
  const second = signatureInEvidence(envelope);
  if (!isRecord(authorization) || authorization.scheme !== SIGNATURE_SCHEME) return second;
  const isAlone = second === undefined && Object.keys(authorization).length === 2;
  return isAlone && typeof authorization.token === "string" ? authorization.token : "";
}

function signatureInEvidence(envelope: Envelope): string | undefined {
  const evidence = evidenceIn(envelope);
  if (evidence === undefined || !Object.hasOwn(evidence, "signature")) return undefined;
  return typeof evidence.signature === "string" ? evidence.signature : "";
}

/**
 * The text that is signed: the envelope without `delivery` and without the signature itself, its tenant
 * always named, so that a signature holds for one envelope of one tenant.
 */
export function signedForm(envelope: Envelope, tenant: string): string {
  const { delivery: _stamped, authorization, ...form } = envelope;
  const isSignature = isRecord(authorization) && authorization.scheme === SIGNATURE_SCHEME;
  return canonicalJson({
    ...form,
    ...(isSignature || authorization === undefined ? {} : { authorization }),
    tenant_id: tenant,
    payload: withoutSignature(envelope),
  });
}

/**
 * SHA-256 of the RFC 8785 form of an envelope without `delivery`, base64url: what `evidence_chain[].digest`
 * names, and by which a changed body is noticed.
 */
export function contentDigest(envelope: Envelope): string {
  const { delivery: _stamped, ...content } = envelope;
  return hash("sha256", canonicalJson(content), "base64url");
}

function evidenceIn({ payload }: Envelope): Record<string, unknown> | undefined {
  return isRecord(payload) && isRecord(payload.evidence) ? payload.evidence : undefined;
}

/** Evidence that held nothing but the signature goes with it. */
function withoutSignature(envelope: Envelope): unknown {
  const evidence = evidenceIn(envelope);
  if (evidence === undefined || !Object.hasOwn(evidence, "signature")) return envelope.payload;
  const { evidence: _all, ...payload } = envelope.payload as Record<string, unknown>;
  const { signature: _signature, ...rest } = evidence;
  return Object.keys(rest).length === 0 ? payload : { ...payload, evidence: rest };
}
