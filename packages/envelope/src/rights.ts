/** What the sender of an envelope may say (architecture, section 4): claims, governance and scopes. Pure. */
import { type ErrorPayload, type JsonObject, reject } from "@harmovela/failure";
import type { Envelope } from "./envelope.ts";
import { isRecord } from "./field.ts";
import { governanceDenial, governanceRefusal, grantsCrossTenant } from "./governance.ts";
import type { Grants, Judged } from "./judging.ts";
import { domainOf } from "./registry.ts";
import { isGranted, mayWrite, participantsIn, subscriptionGap } from "./scopes.ts";
import { isHarness, isService } from "./sessions/identity.ts";

/**
 * Undefined when it may. Where the connection proves the sender (`grants`), what the body says of actor,
 * roles and scopes is compared with that and never believed; elsewhere the body is taken at its word
 * (spec 9.8). Refused: `unauthorized`, with `details.check` where the connection was asked.
 */
export function rightsRefusal({ envelope, tenant, grants }: Judged): ErrorPayload | undefined {
  if (grants === undefined) return governanceRefusal(envelope);
  return (
    claimRefusal(envelope, grants) ??
    tenantRefusal(envelope, tenant, grants) ??
    writeRefusal(envelope, grants) ??
    targetRefusal(envelope, grants) ??
    requestRefusal(envelope, grants)
  );
}

function denied(check: string, message: string, details: JsonObject): ErrorPayload {
  return reject("unauthorized", message, { check, ...details });
}

/** Who speaks, and as what, is the connection's to say; fewer roles than it has may be named. */
function claimRefusal(
  { source, actor_id: actor, roles }: Envelope,
  grants: Grants,
): ErrorPayload | undefined {
  if (actor !== undefined && actor !== source) {
    return denied("actor", "the connection is not that actor's", { reason: "claim_mismatch" });
  }
  if (roles === undefined) return undefined;
  const isTrue = Array.isArray(roles) && roles.every((role) => grants.roles.includes(role));
  if (isTrue) return undefined;
  return denied("roles", "the connection has other roles", { reason: "claim_mismatch" });
}

/** The decision of spec 9.8 with the actor, the tenant and the roles of the connection. */
function tenantRefusal(
  envelope: Envelope,
  tenant: string,
  { roles }: Grants,
): ErrorPayload | undefined {
  const { requested_action: action, target_tenant_id: other } = envelope;
  if (typeof action === "string") {
    const denial = governanceDenial({ actor: envelope.source, action, own: tenant, other, roles });
    if (denial === undefined) return undefined;
    return { ...denial, details: { check: "governance", ...denial.details } };
  }
  if (other === undefined || other === tenant || grantsCrossTenant(roles)) return undefined;
  const reason = "tenant_access_denied";
  return denied("governance", "another tenant may not be addressed", { reason });
}

function writeRefusal(envelope: Envelope, grants: Grants): ErrorPayload | undefined {
  const domain = domainOf(envelope.type);
  return mayWrite(grants, domain) ? undefined : scopeRefusal(`write:${domain}`);
}

/** Whoever is confined to some targets addresses these, itself and the runtime, and gives work to nobody else. */
function targetRefusal(
  { target, delegated_to: delegate, source }: Envelope,
  grants: Grants,
): ErrorPayload | undefined {
  const named = participantsIn(grants, "write");
  if (named === undefined) return undefined;
  for (const whom of [target, delegate]) {
    if (whom === undefined || whom === source || isService(whom) || isHarness(whom)) continue;
    if (!named.includes(whom)) return scopeRefusal(`write:${whom}`);
  }
  return undefined;
}

function requestRefusal(envelope: Envelope, grants: Grants): ErrorPayload | undefined {
  const payload: JsonObject = isRecord(envelope.payload) ? (envelope.payload as JsonObject) : {};
  switch (envelope.type) {
    case "subscription.requested": {
      const filter = { types: textsIn(payload.types), sources: textsIn(payload.source) };
      const gap = subscriptionGap(grants, filter);
      return gap === undefined ? undefined : scopeRefusal(gap);
    }
    case "command.requested":
    case "query.requested":
      return scopesRefusal(payload.authorization_scope, grants, "authorization_scope");
    case "session.opened": {
      const declared = isRecord(payload.capabilities) ? payload.capabilities.auth : undefined;
      return scopesRefusal(isRecord(declared) ? declared.scopes : undefined, grants, "scopes");
    }
    default:
      return undefined;
  }
}

/** Scopes that an envelope claims must all be the connection's. */
function scopesRefusal(claimed: unknown, grants: Grants, check: string): ErrorPayload | undefined {
  const missing = textsIn(claimed).find((scope) => !isGranted(grants, scope));
  if (missing === undefined) return undefined;
  return denied(check, "the connection does not have a scope that is claimed", { scope: missing });
}

function scopeRefusal(scope: string): ErrorPayload {
  return denied("scope", "the connection lacks a scope", { scope });
}

function textsIn(value: unknown): string[] {
  const values = Array.isArray(value) ? value : [value];
  return values.filter((item) => typeof item === "string");
}
