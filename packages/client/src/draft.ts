/** From what an agent wants to say to the bytes that travel. */
import {
  checkPayload,
  checkType,
  checkVersion,
  type Envelope,
  isDerivedId,
  newEventId,
  parseEnvelope,
} from "@harmovela/envelope";
import { type ErrorPayload, HarmovelaError } from "@harmovela/failure";

/** An envelope whose frame the agent fills in where it is absent. */
export type Draft = Partial<Envelope> & Pick<Envelope, "type" | "payload">;

export interface Sender {
  agent: string;
  tenant: string;
  /** Whether `tenant_id` is stamped on what names none. */
  stampsTenant: boolean;
}

/** Fills in `spec_version`, `id`, `source`, `created_at` and, if asked for, `tenant_id` (spec 1.1). */
export function completeDraft(draft: Draft, sender: Sender): Envelope {
  const envelope: Envelope = {
    ...draft,
    spec_version: draft.spec_version ?? "0.2",
    id: draft.id ?? newEventId(),
    source: draft.source ?? sender.agent,
    created_at: draft.created_at ?? new Date().toISOString(),
  };
  if (sender.stampsTenant && envelope.tenant_id === undefined) envelope.tenant_id = sender.tenant;
  return envelope;
}

/** The bytes of an envelope. Throws `invalid_envelope` for what has no JSON form. */
export function encodeEnvelope(envelope: Envelope): Uint8Array {
  try {
    return Buffer.from(JSON.stringify(envelope));
  } catch (cause) {
    // A cycle, a BigInt, nesting beyond the stack, or a `toJSON` that throws.
    throw new HarmovelaError("invalid_envelope", "the envelope has no JSON form", { cause });
  }
}

/** Throws what the judge would refuse whatever its state is (architecture, section 4). */
export function assertAcceptable(bytes: Uint8Array, sender: Sender): void {
  const parsed = parseEnvelope(bytes);
  if (!parsed.ok) throw toError(parsed.error);
  const envelope = parsed.value;
  assertOwn("source", envelope.source, sender.agent);
  if (envelope.tenant_id !== undefined) assertOwn("tenant_id", envelope.tenant_id, sender.tenant);
  if (isDerivedId(envelope.id))
    throw new HarmovelaError("invalid_envelope", "ids of this form are the services' own", {
      details: { path: "id" },
    });
  for (const check of [checkVersion, checkType, checkPayload]) {
    const result = check(envelope);
    if (!result.ok) throw toError(result.error);
  }
}

function assertOwn(field: "source" | "tenant_id", named: string, own: string): void {
  if (named === own) return;
  throw new HarmovelaError("unauthorized", `${field} must be the connection's own`, {
    details: { field },
  });
}

function toError({ code, message, details }: ErrorPayload): HarmovelaError {
  return new HarmovelaError(code, message, {
    retry: "never",
    ...(details === undefined ? {} : { details }),
  });
}
