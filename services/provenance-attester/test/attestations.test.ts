/** Who vouches for what, and who may take that back (spec section 8); probe f10. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { JsonObject } from "@harmovela/failure";
import { attest, event, fact, NOW, revoke, SECURITY, type World, world } from "./support.ts";

const known = (settings = {}): World =>
  world(settings).seen("beliefs", fact("f", { id: "f", source: "memory:main" }));

test("f10: what is added counts, what is revoked does not, and nothing is revoked twice", async () => {
  const scenario = known();
  scenario.own.when(attest("f", { id: "a" })).accepted({ attestation_count: 1 });
  assert.equal(await scenario.count("f"), 1);
  scenario.own.when(revoke("a", { id: "r" })).accepted();
  assert.equal(await scenario.count("f"), 0);
  scenario.own
    .when(revoke("a"))
    .rejected("protocol_error", { reason: "already_revoked", revoked_by: "r" })
    .when(revoke("none"))
    .rejected("protocol_error", { reason: "unknown_attestation" });
  assert.equal(await scenario.count("f"), 0);
});

test("a revocation that names nothing, or an event that is no attestation, is refused", () => {
  const scenario = known();
  scenario.own
    .when(event("provenance.attestation.revoked", { reason: "r" }))
    .rejected("protocol_error", { reason: "unknown_attestation" })
    .when(revoke("f"))
    .rejected("protocol_error", { reason: "unknown_attestation" });
});

describe("an attestation counts", () => {
  test("once for each source, however often it is said", async () => {
    const scenario = known();
    scenario.own.given(attest("f", { id: "a1" }), attest("f", { id: "a2" }));
    assert.equal(await scenario.count("f"), 1);
    scenario.own.given(revoke("a1"));
    assert.equal(await scenario.count("f"), 1, "the other one stands");
    scenario.own.given(revoke("a2"));
    assert.equal(await scenario.count("f"), 0);
  });

  test("not when it is the asserting source's own", async () => {
    const scenario = known();
    scenario.own
      .when(attest("f", { source: "memory:main" }))
      .accepted({ attestation_count: 0, flags: ["not_independent"] });
    assert.equal(await scenario.count("f"), 0);
  });

  test("from the log, whatever its sender counts", async () => {
    const scenario = known();
    scenario.own.given(attest("f", { attestation_count: 99 }));
    assert.equal(await scenario.count("f"), 1);
  });

  test("once when it comes again", async () => {
    const scenario = known();
    const sent = attest("f", { id: "a" });
    scenario.own.given(sent).when(sent).duplicate();
    assert.equal(await scenario.count("f"), 1);
  });

  test("for the last link where it names no cause", async () => {
    const scenario = known();
    const { causation_id: _cause, ...bare } = attest("f");
    scenario.own.given({ ...bare, evidence_chain: [{ source: "memory:main", id: "f" }] });
    assert.equal(await scenario.count("f"), 1);
  });

  test("for nothing where it names nothing and no profile asks for more", async () => {
    const scenario = known();
    const { causation_id: _cause, ...bare } = attest("f");
    scenario.own.when(bare).accepted({ flags: ["names_no_event"] });
    assert.equal(await scenario.count("f"), 0);
  });

  test("in its own tenant", async () => {
    const scenario = known();
    scenario.own.judge(attest("f"), "other");
    assert.equal(await scenario.count("f"), 0);
    assert.equal(scenario.state.tenants.get("other")?.waits.size, 1);
  });
});

describe("whom an attestation names", () => {
  const naming = (): ReturnType<typeof attest> =>
    attest("f", { id: "a", payload: { attestor: "agent:famous", method: "m" } });

  test("is a claim, and it counts for who sent it", async () => {
    const scenario = known();
    scenario.own.given(naming(), attest("f", { id: "b", source: "agent:v" }));
    assert.equal(await scenario.count("f"), 1);
    const { attestations } = await scenario.read("attestations", { event_id: "f" });
    const [first] = attestations as JsonObject[];
    assert.equal(first?.source, "agent:v");
    assert.equal(first?.claimed_attestor, "agent:famous");
  });

  test("is its source under security.v1", () => {
    const scenario = known({ defaultProfiles: SECURITY });
    scenario.own
      .when(naming())
      .rejected("unauthorized", { check: "attestor", attestor: "agent:famous" })
      .when(attest("f", { id: "own" }))
      .accepted()
      .when(revoke("own", { payload: { attestor: "agent:famous", reason: "r" } }))
      .rejected("unauthorized", { check: "attestor" })
      .when(revoke("own"))
      .accepted();
  });
});

describe("who revokes", () => {
  test("is who attested, or an authority", async () => {
    const scenario = known({ authorities: ["agent:auditor"] });
    scenario.own
      .given(attest("f", { id: "a" }), attest("f", { id: "b", source: "agent:w" }))
      .when(revoke("a", { source: "agent:w" }))
      .rejected("unauthorized", { attestor: "agent:v" })
      .when(revoke("a", { source: "memory:main" }))
      .rejected("unauthorized")
      .when(revoke("b", { source: "agent:auditor" }))
      .accepted();
    assert.equal(await scenario.count("f"), 1);
  });

  test("may attest anew", async () => {
    const scenario = known();
    scenario.own.given(attest("f", { id: "a" }), revoke("a"), attest("f", { id: "b" }));
    assert.equal(await scenario.count("f"), 1);
  });
});

test("an answer says who, how, when, and what was taken back by whom and why", async () => {
  const scenario = known();
  scenario.own
    .given(attest("f", { id: "a", payload: { attestor: "agent:v", method: "m", result: "yes" } }))
    .given(revoke("a", { id: "r" }));
  assert.deepEqual(await scenario.read("attestations", { event_id: "f" }), {
    event_id: "f",
    is_known: true,
    source: "memory:main",
    attestation_count: 0,
    total: 1,
    attestations: [
      {
        event_id: "a",
        source: "agent:v",
        method: "m",
        result: "yes",
        at: new Date(NOW).toISOString(),
        counts: false,
        revoked: {
          event_id: "r",
          by: "agent:v",
          reason: "was wrong",
          at: new Date(NOW).toISOString(),
        },
      },
    ],
  });
});

test("one event has a bounded number of attestations", () => {
  const scenario = known({ attestationsMax: 2 });
  scenario.own
    .given(attest("f"), attest("f"))
    .when(attest("f"))
    .rejected("protocol_error", { attestations_max: 2 });
});

test("an attestation may itself be attested", async () => {
  const scenario = known();
  scenario.own.given(attest("f", { id: "a" }), attest("a", { id: "b", source: "agent:w" }));
  assert.equal(await scenario.count("a"), 1);
  assert.equal(await scenario.count("f"), 1);
});
