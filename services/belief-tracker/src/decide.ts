/** What an envelope means for the claims that it finds. Changes nothing. */
import {
  assertedKey,
  claimsMeant,
  type DecideContext,
  type Decision,
  type Envelope,
  invalidationOf,
  isHarness,
  type Judged,
  judgeConditions,
  judgeSession,
  payloadText,
  proofRefusal,
  rightsRefusal,
  tellProof,
} from "@harmovela/envelope";
import { type ErrorPayload, reject } from "@harmovela/failure";
import { namedBy } from "./claims.ts";
import { judgeChange } from "./rules/window.ts";
import { type BeliefSettings, KEY_LENGTH_MAX } from "./settings.ts";
import { type BeliefState, spokenBy, type TenantState } from "./state.ts";
import { hasToMark } from "./walks.ts";

export function decide(
  state: BeliefState,
  settings: BeliefSettings,
  input: Judged,
  { now }: DecideContext,
): Decision {
  const { envelope, tenant: name, source } = input;
  if (settings.authenticated && isHarness(source)) {
    return { reject: reject("unauthorized", "only the runtime speaks as a harness") };
  }
  const refused =
    judgeSession(state.sessions, name, envelope, settings) ??
    rightsRefusal(input) ??
    judgeConditions(state.sessions, name, envelope, settings) ??
    proofRefusal(state.sessions, input, settings, now) ??
    keyRefusal(envelope);
  if (refused) return { reject: refused };
  // What the service itself has said comes back: it claims nothing and takes nothing back.
  const isEcho = envelope.source === settings.service;
  const decision: Decision = isEcho
    ? { accept: envelope }
    : decideClaim(state.tenants.get(name), settings, envelope);
  return tellProof(decision, input, settings, now);
}

function decideClaim(
  tenant: TenantState | undefined,
  settings: BeliefSettings,
  envelope: Envelope,
): Decision {
  if (tenant === undefined) return { accept: envelope };
  if (tenant.walks.has(envelope.id)) {
    const details = { settling_by: envelope.id };
    return { reject: reject("protocol_error", "this id names a plan under way", details) };
  }
  if (envelope.type === "freshness.window.changed") return decideChange(tenant, envelope);
  if (invalidationOf(envelope) !== undefined) return decideInvalidation(tenant, envelope);
  const crowded = crowdRefusal(tenant, settings, envelope);
  return crowded ? { reject: crowded } : { accept: envelope };
}

/** A subject is repeated in every event about it. */
function keyRefusal(envelope: Envelope): ErrorPayload | undefined {
  const key =
    assertedKey(envelope, undefined) ??
    invalidationOf(envelope)?.key ??
    payloadText(envelope, "resource") ??
    payloadText(envelope, "subject");
  if (key === undefined || key.length <= KEY_LENGTH_MAX) return undefined;
  return reject("invalid_envelope", `a subject has at most ${KEY_LENGTH_MAX} characters`);
}

/** As many sources as a conflict can be looked for among. */
function crowdRefusal(
  tenant: TenantState,
  { sourcesMax }: BeliefSettings,
  envelope: Envelope,
): ErrorPayload | undefined {
  const revised = spokenBy(tenant.events.get(envelope.causation_id ?? ""));
  const key = assertedKey(envelope, revised);
  const claims = key === undefined ? undefined : tenant.subjects.get(key)?.claims;
  if (claims === undefined || claims.size < sourcesMax || claims.has(envelope.source)) return;
  return reject("protocol_error", "too many sources hold a claim on this subject", {
    subject: key,
    sources_max: sourcesMax,
  });
}

/** Only the asserting side takes a claim back (spec 6.1); what rests on it is marked first. */
function decideInvalidation(tenant: TenantState, envelope: Envelope): Decision {
  const nodes = namedBy(tenant, envelope);
  if (nodes === undefined) return { reject: stranger(envelope) };
  const { isRetraction = false } = invalidationOf(envelope) ?? {};
  if (!isRetraction || !hasToMark(nodes)) return { accept: envelope };
  return { begin: { id: envelope.id, kind: envelope.type, envelope } };
}

function stranger({ type, source }: Envelope): ErrorPayload {
  return reject("unauthorized", `only the asserting side may send ${type}`, { source });
}

/** What is odd about a decision is told to its sender (spec 6.2). */
function decideChange(tenant: TenantState, envelope: Envelope): Decision {
  const key = payloadText(envelope, "resource") ?? "";
  const named = tenant.events.get(envelope.causation_id ?? "");
  const held = tenant.subjects.get(key)?.claims;
  const claims = claimsMeant(key, held, envelope.source, spokenBy(named));
  if (claims === undefined) return { reject: stranger(envelope) };
  const verdicts = claims.map((claim) => judgeChange(claim, envelope));
  const flags: string[] = [...new Set(verdicts.flatMap((verdict) => verdict.flags))];
  if (claims.length === 0) flags.push("unknown_resource");
  const applied = verdicts.some(({ isApplied }) => isApplied);
  return { accept: envelope, verdict: { applied, ...(flags.length > 0 ? { flags } : {}) } };
}
