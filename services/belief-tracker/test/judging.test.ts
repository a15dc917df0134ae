/** What is judged before the claims: sessions, rights, required fields (spec 1.4, 4.2, 5.1, 9.8); probe f01. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Envelope } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import { derived, event, fact, observe, revise, type World, world } from "./support.ts";

function ofSession(name: string, more: JsonObject = {}): Envelope {
  return event(
    `session.${name}`,
    { session_id: "s", version: "0.2", ...more },
    { session_id: "s" },
  );
}

describe("a session that is in the log of tasks", () => {
  function ready(): World {
    const scenario = observe(world(), "tasks", ofSession("opened"));
    const profiles = ["harmovela.core.v1", "harmovela.runtime-semantics.v1"];
    return observe(scenario, "tasks", ofSession("ready", { capabilities: { profiles } }), {
      owed: "x",
    });
  }

  test("f01 requires what its profiles require", () => {
    const scenario = ready();
    const bare = { session_id: "s", belief_status: undefined, belief_scope: undefined };
    scenario.when(revise("a", "b", bare)).rejected("invalid_envelope", {
      missing: ["belief_status", "belief_scope"],
    });
    scenario.when(revise("a", "b", { session_id: "s" })).accepted();
    scenario.when(revise("a", "b", { ...bare, session_id: undefined })).accepted();
  });

  test("lets nothing through once it is closed", () => {
    const scenario = observe(ready(), "tasks", ofSession("closed"));
    scenario.when(fact("t", 1, { session_id: "s" })).rejected("session_closed");
  });
});

test("the governance decision holds here too", () => {
  const asking = { actor_id: "user:1", requested_action: "event.publish", tenant_id: "acme" };
  const scenario = world();
  scenario
    .when(fact("t", 1, { ...asking, target_tenant_id: "acme", roles: ["viewer"] }))
    .rejected("unauthorized", { reason: "missing_role" })
    .when(fact("t", 1, { ...asking, target_tenant_id: "acme", roles: ["publisher"] }))
    .accepted();
});

test("tenants know nothing of each other", () => {
  const scenario = world().given(fact("t", 1));
  scenario.judge(fact("t", 2, { source: "agent:b" }), "other");
  assert.deepEqual(derived(scenario), []);
  assert.equal(scenario.state.tenants.size, 2);
});
