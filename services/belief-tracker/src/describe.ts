/**
 * A canonical, JSON-able form of the state: equal logs give equal descriptions, and so do logs that
 * hold the same independent claims in another order (positions are left out).
 */
import { describeSessions } from "@harmovela/envelope";
import type { JsonObject, JsonValue } from "@harmovela/failure";
import type { BeliefState, Claim, Duty, Node, Subject, TenantState } from "./state.ts";

export function describeState(state: BeliefState): JsonObject {
  return {
    sessions: describeSessions(state.sessions),
    tenants: byKey(state.tenants).map(describeTenant),
    windows: state.windows.size,
    duties: [...state.duties.values()].map(describeDuty).sort(),
    over: state.over.size,
  };
}

function byKey<T>(map: ReadonlyMap<string, T>): T[] {
  return [...map.keys()].sort().flatMap((key) => map.get(key) ?? []);
}

function describeTenant(tenant: TenantState): JsonObject {
  return {
    name: tenant.name,
    subjects: byKey(tenant.subjects).map(describeSubject),
    events: [...tenant.events.keys()].sort().map((id) => `${id} ${kindOf(tenant.events.get(id))}`),
    walks: [...tenant.walks.keys()].sort(),
    losses: [...tenant.losses.keys()].sort(),
    stale: [...tenant.stale].map(nameOf).sort(),
  };
}

function kindOf(node: Node | undefined): string {
  return node === undefined ? "" : nameOf(node);
}

function nameOf(node: Node): string {
  return node.kind === "claim"
    ? `${node.subject.key} ${node.source} ${node.event}`
    : `evidence ${node.id} ${node.withdrawn?.id ?? ""}`;
}

function describeDuty(duty: Duty): string {
  return `${duty.kind} ${duty.id}`;
}

function describeSubject(subject: Subject): JsonObject {
  const { conflict } = subject;
  return {
    key: subject.key,
    claims: byKey(subject.claims).map(describeClaim),
    past: byKey(subject.past ?? new Map<string, Claim>()).map(describeClaim),
    remembered: subject.remembered,
    contested: conflict === undefined ? null : [...conflict.contested].map(String),
    resolved: subject.resolved === undefined ? null : subject.resolved.by,
    report: subject.report?.id ?? null,
    told: [...subject.told].sort((a, b) => a - b),
  };
}

function describeClaim(claim: Claim): JsonObject {
  const { window, mark, withdrawn } = claim;
  return {
    source: claim.source,
    event: claim.event,
    text: claim.text ?? null,
    createdAt: claim.createdAt,
    status: claim.status ?? null,
    validFrom: claim.validFrom,
    window:
      window === undefined
        ? null
        : { end: window.end, setBy: window.setBy, isTold: claim.subject.tenant.stale.has(claim) },
    change: claim.change === undefined ? null : claim.change.id,
    restsOn: claim.restsOn.map(nameOf).sort(),
    dependents: [...(claim.dependents ?? [])].map(nameOf).sort(),
    withdrawn: withdrawn?.id ?? null,
    mark: mark === undefined ? null : mark.retraction,
    due: claim.due?.because.retraction ?? null,
    overruledBy: claim.overruledBy ?? null,
    isForgotten: claim.isForgotten,
  } satisfies Record<string, JsonValue>;
}
