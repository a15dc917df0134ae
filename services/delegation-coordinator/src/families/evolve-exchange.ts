import type { Envelope, EventEntry, Instant } from "@harmovela/envelope";
import { reject } from "@harmovela/failure";
import { millisecondsOf, payloadObject, textOf } from "../rules/identity.ts";
import { LAST_INSTANT } from "../settings.ts";
import { addTimer } from "./agenda.ts";
import { derive, type Origin } from "./derived.ts";
import {
  correlationOf,
  type ExchangeRules,
  exchangeRulesOf,
  exchangesOf,
  findExchange,
} from "./exchange-types.ts";
import type { FamilySettings } from "./settings.ts";
import { release, settle } from "./settle.ts";
import { rememberVersion, versionKey } from "./snapshot-version.ts";
import type { Exchange, FamilyState, TenantFamilies } from "./state.ts";
import { remember } from "./unused.ts";

type Settings = FamilySettings & { service: string };

const INHERITED = ["session_id", "conversation_id", "correlation_id", "tenant_id"] as const;

export function evolveExchange(
  state: FamilyState,
  settings: Settings,
  tenant: TenantFamilies,
  entry: EventEntry,
  isDerived: boolean,
): void {
  const { envelope } = entry;
  const rules = exchangeRulesOf(envelope.type);
  if (rules === undefined) return;
  if (envelope.type === `${rules.kind}.requested`) {
    open(state, settings, tenant, rules, entry);
    return;
  }
  const live = findExchange(state, tenant.name, rules.kind, correlationOf(envelope));
  if (live === undefined) return;
  if (!isDerived && envelope.source !== live.target) return;
  if (envelope.type === "command.accepted") {
    live.state = "accepted";
    release(state, tenant, live);
    return;
  }
  const version = payloadObject(envelope)?.snapshot_version;
  if (envelope.type === "query.response" && isVersion(version)) {
    const key = versionKey(live.target, live.scope);
    rememberVersion(state, tenant, { key, version, at: entry.at });
  }
  settle(state, tenant, live);
}

function isVersion(value: unknown): value is string | number {
  return typeof value === "string" || typeof value === "number";
}

function open(
  state: FamilyState,
  settings: Settings,
  tenant: TenantFamilies,
  rules: ExchangeRules,
  entry: EventEntry,
): void {
  const { envelope, at, seq } = entry;
  const { target, correlation_id: correlation, source: requester } = envelope;
  if (!target || !correlation) return;
  const exchanges = exchangesOf(tenant, rules.kind);
  const before = exchanges.get(correlation);
  if (before) settle(state, tenant, before);
  const named = millisecondsOf(envelope, "negotiation_window_ms");
  const exchange: Exchange = {
    kind: rules.kind,
    correlation,
    requester,
    target,
    requestedBy: envelope.id,
    seq,
    at,
    scope: textOf(envelope, "query_scope"),
    windowMs: typeof named === "number" ? named : settings.negotiationWindowMs,
    memory: remember(state, tenant, { kind: rules.kind, key: correlation, at }),
    request: withoutContent(envelope),
    duty: undefined,
    state: "requested",
  };
  exchanges.set(correlation, exchange);
  if (tenant.sources.has(target)) {
    if (rules.kind === "command") oweAcceptance(state, settings.service, tenant, exchange, at);
    return;
  }
  const group = tenant.awaited.get(target) ?? new Set();
  tenant.awaited.set(target, group.add(exchange));
  oweRefusal(state, settings, tenant, rules, exchange);
}

/** What an answer inherits of the request; its arguments may be large. */
function withoutContent(envelope: Envelope): Envelope {
  const { spec_version, id, type, source, created_at } = envelope;
  const kept: Envelope = { spec_version, id, type, source, created_at, payload: null };
  for (const field of INHERITED) {
    if (envelope[field] !== undefined) kept[field] = envelope[field];
  }
  return kept;
}

function originOf(tenant: TenantFamilies, { request, at }: Exchange): Origin {
  return { tenant: tenant.name, at, envelope: request };
}

function oweAcceptance(
  state: FamilyState,
  service: string,
  tenant: TenantFamilies,
  exchange: Exchange,
  at: Instant,
): void {
  const event = derive(service, originOf(tenant, exchange), {
    index: "command.accepted",
    type: "command.accepted",
    at,
    target: exchange.requester,
    payload: {
      correlation_id: exchange.correlation,
      target: exchange.target,
      negotiation_window_ms: exchange.windowMs,
    },
  });
  exchange.duty = event.id;
  addTimer(state.agenda, tenant.name, event, at);
}

/** X1: what is owed when the window ends, no later than the request is forgotten, and the target has not spoken. */
function oweRefusal(
  state: FamilyState,
  { service, retentionMs }: Settings,
  tenant: TenantFamilies,
  rules: ExchangeRules,
  exchange: Exchange,
): void {
  const { correlation, target, windowMs } = exchange;
  const due = Math.min(exchange.at + Math.min(windowMs, retentionMs), LAST_INSTANT);
  const reason = "negotiation_timeout";
  const error = reject(rules.invalid, "nobody has seen the target of this request", {
    correlation_id: correlation,
    target,
    reason,
  });
  const event = derive(service, originOf(tenant, exchange), {
    index: reason,
    type: rules.rejected,
    at: due,
    target: exchange.requester,
    payload: {
      acknowledged_event_id: exchange.requestedBy,
      correlation_id: correlation,
      target,
      reason,
      negotiation_window_ms: windowMs,
      error: { ...error },
    },
  });
  exchange.duty = event.id;
  addTimer(state.agenda, tenant.name, event, due);
}

/** Somebody has spoken for the first time: commands that awaited it are accepted, queries stay open. */
export function followFirstWord(
  state: FamilyState,
  service: string,
  tenant: TenantFamilies,
  entry: { source: string; at: Instant },
): void {
  const group = tenant.awaited.get(entry.source);
  if (group === undefined) return;
  tenant.awaited.delete(entry.source);
  for (const exchange of group) {
    release(state, tenant, exchange);
    if (exchange.kind === "command") oweAcceptance(state, service, tenant, exchange, entry.at);
  }
}
