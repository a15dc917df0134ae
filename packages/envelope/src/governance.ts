import { type ErrorPayload, RETRYABLE_BY_CODE } from "@harmovela/failure";
import type { Envelope } from "./envelope.ts";

const CROSS_ACCESS = "tenant.cross_access";
const OPERATOR = [
  "event.publish",
  "event.subscribe",
  "task.submit",
  "task.manage",
  "command.execute",
  "query.read",
];

/** The role table of spec 9.8, with `command.execute` and `query.read` placed as resolved there. */
const ACTIONS_OF_ROLE: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  ["viewer", new Set(["event.subscribe", "query.read"])],
  ["publisher", new Set(["event.publish", "task.submit", "query.read"])],
  ["operator", new Set(OPERATOR)],
  ["tenant-admin", new Set([...OPERATOR, "governance.audit.read"])],
  ["cross-tenant-operator", new Set([...OPERATOR, CROSS_ACCESS])],
]);

function grants(roles: unknown, action: string): boolean {
  if (!Array.isArray(roles)) return false;
  return roles.some(
    (role) => typeof role === "string" && (ACTIONS_OF_ROLE.get(role)?.has(action) ?? false),
  );
}

/** Whether a role is one of the table. */
export function isRole(role: string): boolean {
  return ACTIONS_OF_ROLE.has(role);
}

/** Whether any of the roles may address another tenant (spec 5.9, 9.8). */
export function grantsCrossTenant(roles: unknown): boolean {
  return grants(roles, CROSS_ACCESS);
}

/**
 * The governance decision of spec 9.8 on what an envelope claims: undefined when allowed, or when it does not
 * name both an actor and an action. Denied: `unauthorized` with `details.reason`.
 */
export function governanceRefusal(envelope: Envelope): ErrorPayload | undefined {
  const { actor_id: actor, requested_action: action, roles } = envelope;
  if (typeof actor !== "string" || typeof action !== "string") return undefined;
  const { tenant_id: own, target_tenant_id: other } = envelope;
  return governanceDenial({ actor, action, own, other, roles });
}

/** The same about an actor whose tenant and roles are known from elsewhere. */
export function governanceDenial(asked: {
  actor: string;
  action: string;
  own: string | undefined;
  other: string | undefined;
  roles: unknown;
}): ErrorPayload | undefined {
  const { actor, action, own, other, roles } = asked;
  const deny = (reason: string) => denial(`governance denies ${action}: ${reason}`, reason);
  if (actor === "") return deny("missing_identity");
  if (!own || !other) return deny("missing_tenant");
  if (!grants(roles, action)) return deny("missing_role");
  if (own !== other && !grants(roles, CROSS_ACCESS)) return deny("tenant_access_denied");
  return undefined;
}

function denial(message: string, reason: string): ErrorPayload {
  const code = "unauthorized";
  return { code, message, retryable: RETRYABLE_BY_CODE[code], details: { reason } };
}
