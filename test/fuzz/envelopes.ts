/** Envelopes of every type about few things, so that many of them meet something that is there. */
import { EVENT_TYPES } from "@harmovela/envelope";
import type { SimRandom } from "@harmovela/testkit";
import { FULL_PAYLOADS } from "../../packages/envelope/test/full-payloads.ts";

export type Fields = Record<string, unknown>;

/** What stories are made of; every other type comes too, less often. */
const LIVELY: readonly string[] = [
  ...["task.submitted", "task.accepted", "task.started", "task.progress", "task.completed"],
  ...["task.failed", "task.cancelled", "task.cancel.requested", "task.blocked", "task.timed_out"],
  ...["delegation.requested", "delegation.accepted", "delegation.rejected", "delegation.escalated"],
  ...["delegation.handoff.completed", "session.opened", "session.ready", "session.heartbeat"],
  ...["session.closed", "capabilities.declared", "command.requested", "command.accepted"],
  ...["query.requested", "query.response", "tool.call.requested", "tool.call.started"],
  ...["subscription.requested", "subscription.created", "adaptation.budget.established"],
  ...["memory.fact.added", "memory.fact.updated", "memory.fact.invalidated", "context.updated"],
  ...[
    "belief.revised",
    "belief.conflict.detected",
    "freshness.window.changed",
    "state.invalidated",
  ],
  ...["interruption.requested", "interruption.acknowledged", "interruption.saved"],
  ...["interruption.resumed", "interruption.cancelled", "compensation.requested"],
  ...["compensation.completed", "provenance.attestation.added", "provenance.attestation.revoked"],
  ...["provenance.chain.truncated"],
];

export const TENANTS = ["acme", "acme", "acme", "beta"] as const;
export const SOURCES = ["agent:a", "agent:a", "agent:b", "agent:c", "harness:x"] as const;
const POLICIES = ["save_and_stop", "drain_then_stop", "force_stop"] as const;
const TASKS = 12;
const SESSIONS = 4;
/** Ids come again now and then. */
const IDS = 4_000;
/** The clock of the world stands there at first. */
const STARTS = Date.UTC(2026, 10, 30, 10);

const eventId = (random: SimRandom): string => `e${random.whole(0, IDS)}`;
const taskId = (random: SimRandom): string => `t${random.whole(0, TASKS)}`;
const instant = (random: SimRandom): string =>
  new Date(STARTS + random.whole(-60_000, 600_000)).toISOString();

/** A well-formed envelope, though not always a sensible one. */
export function anyEnvelope(random: SimRandom): Fields {
  const type = (random.chance(0.75) ? random.pick(LIVELY) : random.pick(EVENT_TYPES)) ?? "";
  const task = taskId(random);
  const envelope: Fields = {
    spec_version: "0.2",
    id: eventId(random),
    type,
    source: random.pick(SOURCES),
    created_at: instant(random),
    task_id: task,
    payload: payloadOf(type, task, random),
  };
  for (const [field, value] of Object.entries(optionalFields(random))) {
    if (random.chance(0.2)) envelope[field] = value;
  }
  for (const [prefix, fields] of Object.entries(USUAL)) {
    if (type.startsWith(prefix) && random.chance(0.9)) Object.assign(envelope, fields(random));
  }
  return envelope;
}

function optionalFields(random: SimRandom): Fields {
  return {
    target: random.pick(["agent:a", "agent:b", "agent:c"]),
    session_id: `s${random.whole(0, SESSIONS)}`,
    correlation_id: `c${random.whole(0, 20)}`,
    causation_id: eventId(random),
    parent_task_id: taskId(random),
    expires_at: random.chance(0.3) ? null : instant(random),
    belief_status: random.pick(["asserted", "retracted", "revised", "contradicted", "unknown"]),
    belief_scope: random.pick(["fact", "inference", "observation"]),
    confidence: random.fraction(),
    valid_from: instant(random),
    valid_until: instant(random),
    stale_after: random.pick(["PT5S", "PT1M", "P1W"]),
    evidence_chain: [{ source: random.pick(SOURCES), id: eventId(random) }],
    source_trust: random.pick(["verified", "attested", "unverified", "signed"]),
    handoff_token: `ht_${random.whole(0, 3)}`,
    tenant_id: random.pick(TENANTS),
    budget_id: "b",
    budget_cost: random.whole(0, 5),
    actor_id: random.pick(SOURCES),
    roles: ["viewer"],
    checkpoint_id: `k${random.whole(0, 6)}`,
    checkpoint_at: instant(random),
    authorization: { scheme: "jws-detached", token: "a..b" },
    topic: "t",
  };
}

/** What makes a type of a family acceptable in the right moment. */
const USUAL: Readonly<Record<string, (random: SimRandom) => Fields>> = {
  "delegation.": (random) => ({
    delegated_by: random.pick(SOURCES),
    delegated_to: random.pick(SOURCES),
  }),
  "interruption.": (random) => ({
    interruption_policy: random.pick(POLICIES),
    checkpoint_id: `k${random.whole(0, 6)}`,
    checkpoint_at: instant(random),
  }),
  "compensation.": (random) => ({ compensation_id: taskId(random) }),
  "provenance.": (random) => ({ causation_id: eventId(random) }),
  "session.": (random) => ({ session_id: `s${random.whole(0, SESSIONS)}` }),
  "command.": (random) => ({ correlation_id: `c${random.whole(0, 20)}`, target: "agent:b" }),
  "query.": (random) => ({ correlation_id: `c${random.whole(0, 20)}`, target: "agent:b" }),
  "tool.": (random) => ({ correlation_id: `c${random.whole(0, 20)}` }),
};

/** The full payload of the type or a part of it, about the same few things. */
function payloadOf(type: string, task: string, random: SimRandom): Fields {
  const full = FULL_PAYLOADS.get(type) ?? { text: "x" };
  const isWhole = random.chance(0.5);
  const payload: Fields = {};
  for (const [key, value] of Object.entries(full)) {
    if (isWhole || random.chance(0.7)) payload[key] = value;
  }
  const named: Fields = {
    task_id: task,
    session_id: `s${random.whole(0, SESSIONS)}`,
    fact_id: `f${random.whole(0, 5)}`,
    context_key: `x${random.whole(0, 3)}`,
    resource: random.pick(["memory:f1", "memory:f2", "context:x1", "r"]),
    value: random.whole(0, 2),
    original_task: taskId(random),
    attestor: random.pick(SOURCES),
    grace_period_ms: random.whole(0, 5_000),
    timeout_ms: random.whole(0, 20_000),
    limit: random.whole(0, 20),
    version: "0.2",
    heartbeat_interval_ms: random.whole(0, 3_000),
  };
  for (const key of Object.keys(payload)) if (key in named) payload[key] = named[key];
  delete payload.parent_task_id;
  return payload;
}
