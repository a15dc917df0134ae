/** The stages after parsing, each callable by itself (architecture, section 4). */
import type { ErrorCode, JsonValue, Stage } from "@harmovela/failure";
import { disagreementOf, evidenceDisagreementOf, repeatsTaskIds } from "./agreement.ts";
import type { Envelope } from "./envelope.ts";
import { envelopeField } from "./envelope-fields.ts";
import { type Field, faultOf, isRecord } from "./field.ts";
import { PAYLOAD_FIELDS } from "./payload-fields.ts";
import { EVENT_TYPES, isRegistered, isWellFormedType } from "./registry.ts";
import { boundedPath, type Result, refuse } from "./result.ts";

/** The versions of the envelope that are accepted (spec 1.2). */
export const SUPPORTED_VERSIONS: readonly string[] = ["0.2"];

/**
 * The envelope schema (spec 1.1). Refuses `invalid_envelope`, and a type without the form of one
 * `invalid_event_type`. Any version and any well-formed type pass: the caller compares subject and
 * body before it judges these.
 */
export function checkEnvelope(value: unknown): Result<Envelope> {
  if (!envelopeField.accepts(value))
    return refuseField(envelopeField, value, "", "invalid_envelope", "envelope");
  const envelope = value as Envelope;
  if (!isWellFormedType(envelope.type))
    return refuse({
      code: "invalid_event_type",
      message: "type must be lower-case words joined by dots, as in task.submitted",
      stage: "envelope",
      path: "type",
    });
  return { ok: true, value: envelope };
}

/** Refuses `unsupported_version`; `details.supported` lists what is accepted (spec 1.2). */
export function checkVersion(envelope: Envelope): Result<Envelope> {
  if (envelope.spec_version === "0.2") return { ok: true, value: envelope };
  return refuse({
    code: "unsupported_version",
    message: `spec_version must be one of ${SUPPORTED_VERSIONS.join(", ")}`,
    stage: "version",
    path: "spec_version",
    details: { supported: SUPPORTED_VERSIONS },
  });
}

/** Refuses `unknown_event_type` for a type that is not registered (spec section 2; section 11, C2). */
export function checkType(envelope: Envelope): Result<Envelope> {
  if (isRegistered(envelope.type)) return { ok: true, value: envelope };
  return refuse({
    code: "unknown_event_type",
    message: "the type is not registered",
    stage: "registry",
    path: "type",
    details: { legacy_code: "invalid_event_type" },
  });
}

interface PayloadRule {
  field: Field | undefined;
  repeatsTaskIds: boolean;
}

const PAYLOAD_RULES: ReadonlyMap<string, PayloadRule> = new Map(
  EVENT_TYPES.map((type) => [
    type,
    { field: PAYLOAD_FIELDS.get(type), repeatsTaskIds: repeatsTaskIds(type) },
  ]),
);

/**
 * The payload of a registered type (spec section 3) and what must agree between it and the
 * envelope. Refuses `invalid_envelope`; a subscription's filter `subscription_rejected` (5.2).
 */
export function checkPayload(envelope: Envelope): Result<Envelope> {
  const { type, payload } = envelope;
  const rule = PAYLOAD_RULES.get(type);
  if (rule !== undefined) {
    const isSubscription = type === "subscription.requested";
    const code = isSubscription ? "subscription_rejected" : "invalid_envelope";
    if (rule.field !== undefined && !rule.field.accepts(payload))
      return refuseField(rule.field, payload, "payload", code, "payload");
    if (isSubscription && isFilterless(payload))
      return refuse({
        code,
        message: "a subscription must name types, source, target or topic",
        stage: "payload",
        path: "payload",
      });
  }
  const disagreement =
    (rule?.repeatsTaskIds ? disagreementOf(envelope) : undefined) ??
    evidenceDisagreementOf(envelope);
  if (disagreement === undefined) return { ok: true, value: envelope };
  return refuse({ code: "invalid_envelope", stage: "payload", ...disagreement });
}

/** Whether a filter names none of what a subscription must name; empty arrays count as absent (spec 5.2). */
export function isFilterless(filter: JsonValue): boolean {
  if (!isRecord(filter)) return true;
  return [filter.types, filter.source, filter.target, filter.topic].every(
    (given) => given === undefined || (Array.isArray(given) && given.length === 0),
  );
}

function refuseField(
  field: Field,
  value: unknown,
  root: string,
  code: ErrorCode,
  stage: Stage,
): Result<Envelope> {
  const fault = faultOf(field, value, root);
  const path = boundedPath(fault.path);
  const subject = path === "" ? "the envelope" : path;
  const message = `${subject}${fault.isMissing ? " is missing; it" : ""} must be ${fault.expected}`;
  return refuse({ code, message, stage, path });
}
