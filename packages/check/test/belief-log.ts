/** Events of the domain `beliefs`, as the example logs say them. */
import { formatInstant } from "@harmovela/envelope";
import type { Draft, LogBuilder } from "./log-builder.ts";

type Fields = { [field: string]: unknown; payload?: Record<string, unknown> };

/** An agent's event, created when it is received unless told. */
export function say(log: LogBuilder, type: string, source: string, fields: Fields = {}): Draft {
  return log.send(type, source, { created_at: formatInstant(log.at), ...fields });
}

/** A claim on `memory:<fact>`. */
export function claim(
  log: LogBuilder,
  fact: string,
  source: string,
  value: unknown,
  fields: Fields = {},
) {
  return say(log, "memory.fact.added", source, { ...fields, payload: { fact_id: fact, value } });
}

/** A conclusion from what was said before. */
export function conclude(
  log: LogBuilder,
  source: string,
  grounds: readonly Draft[],
  fields: Fields = {},
) {
  const chain = grounds.map(({ id, source }) => ({ source, id }));
  return say(log, "belief.revised", source, {
    belief_status: "revised",
    belief_scope: "inference",
    ...(chain.length === 0 ? {} : { evidence_chain: chain, causation_id: chain.at(-1)?.id }),
    payload: { previous: "x", corrected: "y" },
    ...fields,
  });
}

/** A retraction that nothing rests on, or that is logged without a plan. */
export function retract(log: LogBuilder, fact: string, source: string, fields: Fields = {}): Draft {
  return say(log, "memory.fact.invalidated", source, retraction(fact, fields));
}

export function retraction(fact: string, fields: Fields = {}): Fields {
  return { belief_status: "retracted", ...fields, payload: { fact_id: fact } };
}

/** A retraction whose dependents are marked before it is logged. */
export function beginRetract(log: LogBuilder, fact: string, source: string): Draft {
  return log.begin(log.draft("memory.fact.invalidated", source, retraction(fact)));
}

/** The service marks what rests on what was retracted. */
export function mark(log: LogBuilder, cause: Draft, resource: string, fields: Fields = {}): Draft {
  return log.owe(cause.id, "state.invalidated", {
    belief_status: "unknown",
    causation_id: cause.id,
    payload: { resource, depends_on: "evidence" },
    ...fields,
  });
}

/** The service marks what rests on evidence that was lost: the log of `provenance` tells of that. */
export function markLost(log: LogBuilder, of: Draft, fields: Fields = {}): Draft {
  const payload = { resource: `belief:${of.id}`, event_id: of.id, depends_on: ["evidence"] };
  const said = { belief_status: "unknown", causation_id: "cut", payload, ...fields };
  return log.owe("lost", "state.invalidated", said, { headers: { "Hv-Seen": "provenance:1" } });
}

/** The service says that a window has ended. */
export function expire(
  log: LogBuilder,
  of: Draft,
  resource: string,
  end: number,
  fields: Fields = {},
): Draft {
  const { payload, ...rest } = fields;
  const until = formatInstant(end);
  return log.owe(`window:${resource}`, "freshness.expired", {
    causation_id: of.id,
    valid_until: until,
    ...rest,
    payload: {
      resource,
      cached_at: of.created_at,
      valid_until: until,
      detected_at: formatInstant(Math.max(log.at, end)),
      ...payload,
    },
  });
}

export function changeWindow(
  log: LogBuilder,
  source: string,
  resource: string,
  end: number,
  fields: Fields = {},
): Draft {
  const payload = { resource, new_valid_until: formatInstant(end) };
  return say(log, "freshness.window.changed", source, { ...fields, payload });
}

/** The service has found a contradiction. */
export function conflict(
  log: LogBuilder,
  subject: string,
  claims: readonly Record<string, unknown>[],
  fields: Fields = {},
): Draft {
  return log.owe(`conflict:${subject}`, "belief.conflict.detected", {
    belief_status: "contradicted",
    payload: { subject, claims },
    ...fields,
  });
}

/** The service says that a conflict has ended. */
export function resolve(log: LogBuilder, ended: Draft, fields: Fields = {}): Draft {
  return log.owe(`resolved:${ended.id}`, "belief.revised", {
    belief_status: "revised",
    belief_scope: "fact",
    causation_id: ended.id,
    payload: { previous: "[1,2]", corrected: "1" },
    ...fields,
  });
}
