import assert from "node:assert/strict";
import { test } from "node:test";
import { type Envelope, governanceRefusal } from "@harmovela/envelope";
import { ev, world } from "./support.ts";

const ROLES: Record<string, string[]> = {
  viewer: ["event.subscribe", "query.read"],
  publisher: ["event.publish", "task.submit", "query.read"],
  operator: [
    "event.publish",
    "event.subscribe",
    "task.submit",
    "task.manage",
    "command.execute",
    "query.read",
  ],
};
ROLES["tenant-admin"] = [...(ROLES.operator ?? []), "governance.audit.read"];
ROLES["cross-tenant-operator"] = [...(ROLES.operator ?? []), "tenant.cross_access"];
const ACTIONS = [...new Set(Object.values(ROLES).flat())];

function asked(fields: Partial<Envelope>): Envelope {
  return {
    ...ev("submitted", "t"),
    actor_id: "actor",
    tenant_id: "alpha",
    target_tenant_id: "alpha",
    roles: ["publisher"],
    requested_action: "event.publish",
    ...fields,
  };
}

function reasonOf(fields: Partial<Envelope>): unknown {
  const refused = governanceRefusal(asked(fields));
  if (refused === undefined) return undefined;
  assert.equal(refused.code, "unauthorized");
  return refused.details?.reason;
}

for (const [role, granted] of Object.entries(ROLES)) {
  for (const action of ACTIONS) {
    const isGranted = granted.includes(action);
    test(`9.8 ${role} ${isGranted ? "may" : "may not"} ${action}`, () => {
      const reason = reasonOf({ roles: [role], requested_action: action });
      assert.equal(reason, isGranted ? undefined : "missing_role");
    });
  }
}

test("9.8 it runs only when actor and action are named", () => {
  const { actor_id: _a, ...actorless } = asked({ roles: [] });
  const { requested_action: _b, ...actionless } = asked({ roles: [] });
  assert.equal(governanceRefusal(actorless), undefined);
  assert.equal(governanceRefusal(actionless), undefined);
});

test("9.8 the order of the reasons", () => {
  const nothing = { actor_id: "", tenant_id: "", target_tenant_id: "beta", roles: [] };
  assert.equal(reasonOf(nothing), "missing_identity");
  assert.equal(reasonOf({ ...nothing, actor_id: "actor" }), "missing_tenant");
  assert.equal(reasonOf({ target_tenant_id: "", roles: [] }), "missing_tenant");
  assert.equal(reasonOf({ target_tenant_id: "beta", roles: [] }), "missing_role");
  assert.equal(reasonOf({ target_tenant_id: "beta" }), "tenant_access_denied");
  assert.equal(
    reasonOf({ target_tenant_id: "beta", roles: ["tenant-admin"] }),
    "tenant_access_denied",
  );
  assert.equal(reasonOf({ target_tenant_id: "beta", roles: ["cross-tenant-operator"] }), undefined);
});

test("9.8 one of several roles is enough, unknown ones grant nothing", () => {
  assert.equal(reasonOf({ roles: ["viewer", "publisher"] }), undefined);
  for (const role of ["root", "__proto__", "constructor", "Publisher"]) {
    assert.equal(reasonOf({ roles: [role] }), "missing_role");
  }
  assert.equal(reasonOf({ requested_action: "__proto__" }), "missing_role");
});

test("9.8 every family is asked, before anything else", () => {
  for (const type of [
    "session.heartbeat",
    "event.acknowledged",
    "tool.call.started",
    "task.started",
  ]) {
    const scenario = world();
    scenario.when({ ...asked({ roles: [] }), type }).rejected("unauthorized", {
      reason: "missing_role",
    });
  }
});
