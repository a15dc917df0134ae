/** The rights of a proved sender are asked for by every service alike (spec 9.7, 9.8). */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createTracker } from "@harmovela/belief-tracker";
import { createCoordinator } from "@harmovela/delegation-coordinator";
import type { Envelope, Grants } from "@harmovela/envelope";
import type { ServiceDefinition } from "@harmovela/host";
import { createManager } from "@harmovela/interruption-manager";
import { createAttester } from "@harmovela/provenance-attester";
import { Given } from "@harmovela/testkit";

const settings = { authenticated: true };
const SERVICES = [
  [createCoordinator(settings), "environment.observed", {}],
  [createTracker(settings), "memory.fact.added", { fact_id: "f", value: 1 }],
  [createManager(settings), "interruption.requested", {}],
  [createAttester(settings), "provenance.attestation.added", { attestor: "agent:a", method: "m" }],
] as const;

for (const [definition, type, payload] of SERVICES) {
  const { domain, decider } = definition as ServiceDefinition<unknown>;
  const said = (more: Partial<Envelope>): Envelope => ({
    spec_version: "0.2",
    id: `evt_${JSON.stringify(more)}`,
    type,
    source: "agent:a",
    created_at: "2026-11-30T10:00:00Z",
    payload,
    ...more,
  });
  const checkedBy = (grants: Grants | undefined, more: Partial<Envelope>): unknown => {
    const scenario = new Given(decider, { grants: () => grants });
    const { decision } = scenario.judge(said(more));
    return "reject" in decision ? decision.reject.details?.check : undefined;
  };
  const foreign = { target_tenant_id: "beta" };

  test(`${domain}: invented roles, another's actor, a tenant beyond, a scope that is not there`, () => {
    const none: Grants = { roles: [] };
    assert.equal(checkedBy(none, { roles: ["operator"] }), "roles");
    assert.equal(checkedBy(none, { actor_id: "agent:b" }), "actor");
    assert.equal(checkedBy(none, foreign), "governance");
    assert.equal(checkedBy({ roles: [], scopes: ["read:*"] }, {}), "scope");
  });

  test(`${domain}: its own claims and no proof at all are another matter`, () => {
    const grants: Grants = { roles: ["operator"], scopes: [`write:${domain}`] };
    assert.equal(checkedBy(grants, { roles: ["operator"], actor_id: "agent:a" }), undefined);
    assert.equal(
      checkedBy(undefined, { roles: ["operator"], actor_id: "x", ...foreign }),
      undefined,
    );
  });
}
