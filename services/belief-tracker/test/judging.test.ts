/** What is judged before the claims: sessions, rights, required fields (spec 1.4, 4.2, 5.1, 9.8); probe f01. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Envelope, EventEntry } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import {
  against,
  derived,
  event,
  fact,
  NOW,
  payloadOf,
  resting,
  revise,
  type World,
  world,
} from "./support.ts";

let seq = 0;

/** An entry of another domain's log. */
function observe(
  scenario: World,
  domain: "tasks" | "provenance",
  envelope: Envelope,
  cause: EventEntry["cause"] = { in: 1 },
): World {
  seq += 1;
  const frame = {
    seq,
    tenant: scenario.tenant,
    cause,
    at: scenario.now,
    epoch: 1,
    prev: 0,
    seen: {},
  };
  scenario.decider.observe?.(scenario.state, domain, { ...frame, kind: "event", envelope });
  return scenario;
}

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

describe("evidence that was lost (spec section 8)", () => {
  const truncated = (missing: JsonObject): Envelope =>
    event(
      "provenance.chain.truncated",
      { earliest_available: "x", reason: "retention", ...missing },
      { source: "service:provenance-attester", id: "cut" },
    );

  test("marks what rests on it, with what rests on that, and whatever comes later", () => {
    const scenario = world().given(
      fact("a", 1, { id: "a", ...resting("gone") }),
      fact("b", 1, { id: "b", ...resting("a") }),
      fact("c", 1, { id: "c" }),
    );
    observe(scenario, "provenance", truncated({ missing_from: "gone" }));
    const said = derived(scenario);
    assert.deepEqual(
      said.map((mark) => [mark.type, mark.causation_id, payloadOf(mark).event_id]),
      [
        ["state.invalidated", "cut", "b"],
        ["state.invalidated", "cut", "a"],
      ],
    );
    assert.deepEqual(against(scenario, { key: "memory:c" }), []);
    scenario.given(fact("d", 1, resting("gone")));
    assert.equal(derived(scenario).length, 1);
  });

  test("that was a claim puts the claim in doubt", () => {
    const scenario = world().given(fact("a", 1, { id: "a" }));
    observe(scenario, "provenance", truncated({ missing_from: "a" }));
    derived(scenario, NOW + 1);
    assert.deepEqual(against(scenario, { key: "memory:a" }), ["awaiting_re_evaluation"]);
  });
});
