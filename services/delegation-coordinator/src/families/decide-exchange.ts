/**
 * What a command or query, or an answer to one, means (spec 5.9).
 *
 * X1 A request to an agent that has never spoken is taken: it may speak before the window ends.
 *    Whether it did is known when the window ends, and not before.
 * X2 Only the target answers. Its end of a request that nobody accepted is taken as both.
 */
import { type Decision, type Envelope, isHarness, type Judged } from "@harmovela/envelope";
import { type JsonObject, reject } from "@harmovela/failure";
import { grantsCrossTenant } from "../rules/governance.ts";
import { payloadObject, textOf } from "../rules/identity.ts";
import {
  correlationOf,
  type ExchangeRules,
  exchangeRulesOf,
  findExchange,
} from "./exchange-types.ts";
import { isNewer, versionKey } from "./snapshot-version.ts";
import type { Exchange, FamilyState } from "./state.ts";

export function decideExchange(state: FamilyState, input: Judged): Decision {
  const { envelope, source } = input;
  const rules = exchangeRulesOf(envelope.type);
  if (rules === undefined) return { accept: envelope };
  if (envelope.type === `${rules.kind}.requested`) return decideRequest(state, rules, input);
  const asked = findExchange(state, input.tenant, rules.kind, correlationOf(envelope));
  const isEcho = isHarness(source) && source !== asked?.target;
  if (isEcho && rules.echoed.has(envelope.type)) return { accept: envelope };
  return decideAnswer(state, rules, input);
}

function decideRequest(state: FamilyState, rules: ExchangeRules, input: Judged): Decision {
  const { envelope, tenant } = input;
  const refuse = (message: string, details: JsonObject): Decision => ({
    reject: reject(rules.invalid, message, details),
    as: rules.rejected,
  });
  const missing = missingOf(envelope, rules);
  if (missing.length > 0) return refuse(`${envelope.type} lacks fields`, { missing });
  if (isForeign(envelope, tenant)) {
    const details = { reason: "tenant_access_denied" };
    const error = reject("unauthorized", "another tenant may not be addressed", details);
    return { reject: error, as: rules.rejected };
  }
  const live = findExchange(state, tenant, rules.kind, envelope.correlation_id);
  if (live) {
    return refuse("this correlation id belongs to a live request", {
      correlation_id: live.correlation,
      live_request: live.requestedBy,
    });
  }
  return { accept: envelope };
}

function missingOf(envelope: Envelope, rules: ExchangeRules): string[] {
  const missing: string[] = [];
  if (!envelope.target) missing.push("target");
  if (!envelope.correlation_id) missing.push("correlation_id");
  if (rules.kind === "query" && textOf(envelope, "query_scope") === undefined) {
    missing.push("payload.query_scope");
  }
  return missing;
}

function isForeign(envelope: Envelope, tenant: string): boolean {
  const { target_tenant_id: other, tenant_id: own = tenant } = envelope;
  return other !== undefined && other !== own && !grantsCrossTenant(envelope.roles);
}

function decideAnswer(state: FamilyState, rules: ExchangeRules, input: Judged): Decision {
  const { envelope, tenant, source } = input;
  const correlation = correlationOf(envelope);
  if (correlation === undefined) {
    const details = { missing: ["correlation_id"] };
    return { reject: reject(rules.invalid, `${envelope.type} answers nothing`, details) };
  }
  const live = findExchange(state, tenant, rules.kind, correlation);
  if (live === undefined) {
    return {
      reject: reject(rules.invalid, "no live request has this correlation id", {
        correlation_id: correlation,
      }),
    };
  }
  if (source !== live.target) {
    return {
      reject: reject("unauthorized", "only the target answers", {
        correlation_id: correlation,
        target: live.target,
      }),
    };
  }
  if (rules.early.has(envelope.type) && live.state !== "requested") {
    return {
      reject: reject(rules.invalid, "this request was accepted already", {
        correlation_id: correlation,
        from: live.state,
      }),
    };
  }
  const stale = envelope.type === "query.response" ? staleResponse(state, live, input) : undefined;
  return stale ?? { accept: envelope };
}

/** A response speaks of the scope that was asked for, and of no older snapshot than one before. */
function staleResponse(
  state: FamilyState,
  live: Exchange,
  { envelope, tenant }: Judged,
): Decision | undefined {
  const scope = textOf(envelope, "query_scope");
  if (scope !== undefined && scope !== live.scope) {
    const details = { correlation_id: live.correlation };
    return { reject: reject("invalid_query", "the response has another query_scope", details) };
  }
  const version = payloadObject(envelope)?.snapshot_version;
  const key = versionKey(live.target, live.scope);
  const newest = state.tenants.get(tenant)?.versions.get(key);
  if (typeof version !== "string" && typeof version !== "number") return undefined;
  if (newest === undefined || !isNewer(newest, version)) return undefined;
  const details = { correlation_id: live.correlation, newest_version: newest };
  return { reject: reject("invalid_query", "snapshot_version goes back", details) };
}
