/** Where the connection proves who speaks: scopes and roles of tasks and of the families around them (spec 9.7, 9.8). */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Grants } from "@harmovela/envelope";
import { derived, event, opened } from "./family-support.ts";
import { ev, payloadOf, type World, world } from "./support.ts";

const SCOPED: Grants = {
  roles: ["publisher"],
  scopes: ["write:tasks", "read:tasks", "subscribe:task.*"],
};

/** agent:a has a few scopes, agent:free all of its tenant. */
function proved(): World {
  const grants = (_tenant: string, source: string): Grants =>
    source === "agent:a" ? SCOPED : { roles: [] };
  return world({ authenticated: true }, { grants });
}

test("9.7 a subscription within its scopes is created, one beyond them gets subscription.rejected", () => {
  const scenario = proved();
  const wants = (types: string[]) => event("subscription.requested", { payload: { types } });
  scenario.given(wants(["task.*"]));
  assert.equal(derived(scenario)[0]?.type, "subscription.created");
  const { decision } = scenario.judge(wants(["*"]));
  assert.ok("reject" in decision);
  assert.equal(decision.as, "subscription.rejected");
  assert.equal(decision.reject.code, "unauthorized");
});

test("9.7 a command's claimed scopes are those of its connection, else command.rejected", () => {
  const scenario = proved();
  const command = (authorization_scope: string[]) =>
    event("command.requested", {
      target: "agent:b",
      correlation_id: "c",
      payload: { command: "x", authorization_scope },
    });
  const { decision } = scenario.judge(command(["write:beliefs"]));
  assert.ok("reject" in decision);
  assert.equal(decision.as, "command.rejected");
  scenario.when(command(["write:tasks"])).accepted();
});

test("9.8 a command across tenants needs the role of the connection, whatever the body claims", () => {
  const across = (source: string, roles?: string[]) =>
    event("command.requested", {
      source,
      target: "agent:b",
      correlation_id: source,
      target_tenant_id: "beta",
      ...(roles === undefined ? {} : { roles }),
    });
  const grants = (_tenant: string, source: string): Grants => ({
    roles: source === "agent:cross" ? ["cross-tenant-operator"] : [],
  });
  const scenario = world({ authenticated: true }, { grants });
  scenario.when(across("agent:cross")).accepted();
  scenario
    .when(across("agent:a", ["cross-tenant-operator"]))
    .rejected("unauthorized", { check: "roles" });
  scenario.when(across("agent:b")).rejected("unauthorized", { reason: "tenant_access_denied" });
});

test("4.3 the answer to an opening tells the scopes of the session, and every fold tells the same", () => {
  const scenario = proved();
  const scopesAfter = (id: string, source: string) => {
    scenario.given(opened(id, { profiles: ["harmovela.security.v1"] }, { source }));
    const [ready] = derived(scenario);
    assert.equal(ready?.type, "session.ready");
    return payloadOf(ready).capabilities as { auth: unknown; profiles: string[] };
  };
  const scoped = scopesAfter("s1", "agent:a");
  assert.deepEqual(scoped.auth, { required: true, scopes: SCOPED.scopes });
  assert.ok(scoped.profiles.includes("harmovela.security.v1"));
  const { auth } = scopesAfter("s2", "agent:free");
  assert.deepEqual(auth, { required: true, scopes: ["read:*", "write:*", "subscribe:*"] });
  assert.deepEqual(scenario.refold(), scenario.state);
});

test("4.2 without proved senders there is no security.v1, and no scopes are told", () => {
  const scenario = world();
  scenario.given(opened("s", { profiles: ["harmovela.security.v1"] }));
  const [ready] = derived(scenario);
  const capabilities = payloadOf(ready).capabilities as { auth: unknown; profiles: string[] };
  assert.deepEqual(capabilities.auth, { required: false });
  assert.deepEqual(capabilities.profiles, []);
});

test("a refusal for want of rights changes nothing of a task", () => {
  const scenario = proved();
  scenario.given(ev("submitted", "t"), ev("accepted", "t"));
  scenario
    .when(ev("started", "t", { more: { actor_id: "agent:free" } }))
    .rejected("unauthorized", { check: "actor" });
  scenario.when(ev("started", "t")).accepted();
});
