/**
 * Everything that is judged before the domain (architecture, section 4): from bytes to an envelope
 * whose sender is who the subject says. Pure.
 */
import {
  type IntakeAddress,
  NO_TENANT,
  parseIntakeSubject,
  type StoredMessage,
} from "@harmovela/bus";
import {
  checkEnvelope,
  checkPayload,
  checkType,
  checkVersion,
  type Domain,
  domainOf,
  type Envelope,
  isDerivedId,
  isId,
  parseJson,
  type RejectionType,
  rejectionTypeOf,
  type SignatureFacts,
  type TokenFacts,
} from "@harmovela/envelope";
import { type ErrorPayload, reject } from "@harmovela/failure";

export interface Valid {
  kind: "valid";
  envelope: Envelope;
  tenant: string;
  source: string;
  /** What is known of its handoff token, once it was looked at. */
  token?: TokenFacts;
  /** What is known of its signature, once it was looked at. */
  signature?: SignatureFacts;
}

/** `sent` is what could be read of the envelope; `isOccupying`: the refusal takes the id (the sender was proved). */
export interface Refused {
  kind: "refused";
  error: ErrorPayload;
  tenant: string;
  source: string;
  sent: Partial<Envelope> | undefined;
  isOccupying: boolean;
  /** The type of its refusal, of what is understood so far; default `event.rejected`. */
  as?: RejectionType;
  /** Its source sends too much: nothing of it was looked at. */
  isLimited?: boolean;
  /** There is no room for an entry that says so. */
  isWithoutRoom?: boolean;
}

/** Not even a sender to answer. */
export interface Dropped {
  kind: "dropped";
  reason: "non_canonical_subject";
}

/** Whose intake it is. */
export interface Judge {
  domain: Domain;
  /** The source of what the service itself says. */
  service: string;
}

/** Judges one intake message up to its payload (spec 1.4, architecture section 4). */
export function validate(message: StoredMessage, judge: Judge): Valid | Refused | Dropped {
  const subject = senderOf(message);
  if (subject === undefined) return { kind: "dropped", reason: "non_canonical_subject" };
  const { tenant, source } = subject;
  const refused = (
    error: ErrorPayload,
    sent?: Partial<Envelope>,
    isOccupying = false,
  ): Refused => ({ kind: "refused", error, tenant, source, sent, isOccupying });

  const json = parseJson(message.data);
  if (!json.ok) return refused(json.error);
  const checked = checkEnvelope(json.value);
  if (!checked.ok) return refused(checked.error, readable(json.value));
  const envelope = checked.value;

  const disagreement = disagreesWith(envelope, subject, judge);
  if (disagreement !== undefined) return refused(disagreement, envelope);
  for (const check of [checkVersion, checkType]) {
    const result = check(envelope);
    if (!result.ok) return refused(result.error, envelope, true);
  }
  const payload = checkPayload(envelope);
  if (!payload.ok) {
    return { ...refused(payload.error, envelope, true), as: rejectionTypeOf(envelope.type) };
  }
  return { kind: "valid", envelope, tenant, source };
}

/** Who speaks, as the subject says; undefined when it is nobody who could be answered. */
export function senderOf(message: StoredMessage): IntakeAddress | undefined {
  const subject = parseIntakeSubject(message.subject);
  return subject !== undefined && isNaming(subject) ? subject : undefined;
}

/** Whether sender and tenant could be answered and logged; `-` is how a subject says "none". */
function isNaming({ tenant, source }: { tenant: string; source: string }): boolean {
  return isId(tenant) && isId(source) && tenant !== NO_TENANT;
}

function disagreesWith(
  envelope: Envelope,
  subject: IntakeAddress,
  { domain, service }: Judge,
): ErrorPayload | undefined {
  const mismatch = (field: string): ErrorPayload =>
    reject("unauthorized", `the subject names another ${field} than the envelope`, {
      field,
      reason: "subject_mismatch",
    });
  if (envelope.source !== subject.source) return mismatch("source");
  if (envelope.source === service) {
    // What it says it writes into its log by itself: an entry under its name is its word.
    return reject("unauthorized", "this name is the service's own", {
      field: "source",
      reason: "own_service",
    });
  }
  if (envelope.type !== subject.type) return mismatch("type");
  if (envelope.tenant_id !== undefined && envelope.tenant_id !== subject.tenant) {
    return mismatch("tenant_id");
  }
  if (domainOf(envelope.type) !== domain) return mismatch("domain");
  if (isDerivedId(envelope.id) && !envelope.source.startsWith("service:")) {
    return reject("invalid_envelope", "ids of this form are reserved for derived events", {
      path: "id",
    });
  }
  return undefined;
}

const NAMING_FIELDS = ["id", "type", "task_id", "correlation_id", "session_id"] as const;

/** The strings of a malformed envelope that a refusal may repeat, so that its sender knows it again. */
function readable(value: unknown): Partial<Envelope> | undefined {
  if (value === null || typeof value !== "object") return undefined;
  const sent: Record<string, string> = {};
  for (const field of NAMING_FIELDS) {
    const text = (value as Record<string, unknown>)[field];
    if (isId(text)) sent[field] = text;
  }
  return sent;
}
