/** Events of the domain `provenance`, as the example logs say them. */
import type { Draft, LogBuilder } from "./log-builder.ts";

type Fields = { [field: string]: unknown; payload?: Record<string, unknown> };

const attestation = (of: string, source: string, fields: Fields = {}) => ({
  causation_id: of,
  payload: { attestor: source, method: "cross_reference" },
  ...fields,
});

/** Somebody vouches for an event. */
export function attest(
  log: LogBuilder,
  of: string,
  source = "agent:v",
  fields: Fields = {},
): Draft {
  return log.send("provenance.attestation.added", source, attestation(of, source, fields));
}

/** The same for an event that was not seen yet. */
export function beginAttest(
  log: LogBuilder,
  of: string,
  source = "agent:v",
  fields: Fields = {},
): Draft {
  const said = attestation(of, source, fields);
  return log.begin(log.draft("provenance.attestation.added", source, said));
}

export function revoke(
  log: LogBuilder,
  of: string | undefined,
  source = "agent:v",
  fields: Fields = {},
): Draft {
  return log.send("provenance.attestation.revoked", source, {
    causation_id: of,
    payload: { reason: "was wrong" },
    ...fields,
  });
}

/** What was waited for has come. */
export function seen(log: LogBuilder, envelope: Draft): void {
  log.push({ cause: `owed:${envelope.id}`, envelope });
}

/** It has not. */
export function refuse(log: LogBuilder, envelope: Draft, fields: Fields = {}): Draft {
  return log.owe(envelope.id, "event.rejected", {
    target: envelope.source,
    causation_id: envelope.id,
    payload: {
      acknowledged_event_id: envelope.id,
      error: {
        code: "protocol_error",
        message: "not seen in time",
        retryable: false,
        details: { reason: "unknown_event" },
      },
    },
    ...fields,
  });
}

/** The service tells of lost evidence. */
export function truncate(
  log: LogBuilder,
  assertion: string | undefined,
  fields: Fields = {},
): Draft {
  return log.owe(`truncated:${assertion}`, "provenance.chain.truncated", {
    causation_id: assertion,
    payload: { earliest_available: "b", missing_from: "a", reason: "retention" },
    ...fields,
  });
}

export function observed(log: LogBuilder, first: Record<string, unknown> | undefined): void {
  const body = first === undefined ? {} : { first };
  log.push({ tenant: undefined, cause: "owed:observed", kind: "observed", body });
}
