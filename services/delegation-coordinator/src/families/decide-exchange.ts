/**
 * What a command or query, or an answer to one, means (spec 5.9).
 *
 * X1 A request to an agent that has never spoken is taken: it may speak before the window ends.
 *    Whether it did is known when the window ends, and not before.
 * X2 Only the target answers. Its end of a request that nobody accepted is taken as both.
 */
import {
  type DecideContext,
  type Decision,
  type Envelope,
  grantsCrossTenant,
  isHarness,
  type Judged,
} from "@harmovela/envelope";
import { type JsonObject, reject } from "@harmovela/failure";
import { payloadObject, textOf } from "../rules/identity.ts";
import {
  correlationOf,
  type ExchangeRules,
  exchangeRulesOf,
  findExchange,
} from "./exchange-types.ts";
import type { FamilySettings } from "./settings.ts";
import { isNewer, versionKey } from "./snapshot-version.ts";
import type { Exchange, FamilyState } from "./state.ts";
import { isUnused } from "./unused.ts";

export function decideExchange(
  state: FamilyState,
  { retentionMs }: FamilySettings,
  input: Judged,
  { now }: DecideContext,
): Decision {
  const { envelope, source, tenant } = input;
  const rules = exchangeRulesOf(envelope.type);
  if (rules === undefined) return { accept: envelope };
  const isRequest = envelope.type === `${rules.kind}.requested`;
  const correlation = isRequest ? envelope.correlation_id : correlationOf(envelope);
  const known = findExchange(state, tenant, rules.kind, correlation);
  // Whether it is still there is a matter of time, and not of who has looked.
  const live = known && !isUnused(known.memory, retentionMs, now) ? known : undefined;
  if (isRequest) return decideRequest(rules, input, live);
  const isEcho = isHarness(source) && source !== live?.target;
  if (isEcho && rules.echoed.has(envelope.type)) return { accept: envelope };
  return decideAnswer(state, rules, input, { correlation, live });
}

function decideRequest(rules: ExchangeRules, input: Judged, live: Exchange | undefined): Decision {
  const { envelope } = input;
  const refuse = (message: string, details: JsonObject): Decision => ({
    reject: reject(rules.invalid, message, details),
    as: rules.rejected,
  });
  const missing = missingOf(envelope, rules);
  if (missing.length > 0) return refuse(`${envelope.type} lacks fields`, { missing });
  if (isForeign(input)) {
    const details = { reason: "tenant_access_denied" };
    const error = reject("unauthorized", "another tenant may not be addressed", details);
    return { reject: error, as: rules.rejected };
  }
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

function isForeign({ envelope, tenant, grants }: Judged): boolean {
  const { target_tenant_id: other, tenant_id: own = tenant, roles } = envelope;
  return other !== undefined && other !== own && !grantsCrossTenant(grants?.roles ?? roles);
}

function decideAnswer(
  state: FamilyState,
  rules: ExchangeRules,
  input: Judged,
  { correlation, live }: { correlation: string | undefined; live: Exchange | undefined },
): Decision {
  const { envelope, source } = input;
  if (correlation === undefined) {
    const details = { missing: ["correlation_id"] };
    return { reject: reject(rules.invalid, `${envelope.type} answers nothing`, details) };
  }
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
  const newest = state.tenants.get(tenant)?.versions.get(key)?.newest;
  if (typeof version !== "string" && typeof version !== "number") return undefined;
  if (newest === undefined || !isNewer(newest, version)) return undefined;
  const details = { correlation_id: live.correlation, newest_version: newest };
  return { reject: reject("invalid_query", "snapshot_version goes back", details) };
}
