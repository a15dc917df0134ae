/** Attestations of what was not seen yet: they wait a bounded time (spec section 8). */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Envelope } from "@harmovela/envelope";
import {
  attest,
  errorOf,
  event,
  fact,
  iso,
  NOW,
  payloadOf,
  revoke,
  SERVICE,
  type World,
  world,
} from "./support.ts";

const WAIT = 30_000;

function waiting(settings = {}): World {
  const scenario = world(settings);
  scenario.own.when(attest("f", { id: "a" })).begun("provenance.attestation.added");
  return scenario;
}

test("what was not seen yet is waited for, and the verdict says until when", async () => {
  const scenario = world();
  const { decision } = scenario.own.when(attest("f", { id: "a" })).outcome;
  assert.ok("begin" in decision);
  assert.deepEqual(decision.verdict, {
    waits_for: "f",
    until: new Date(NOW + WAIT).toISOString(),
  });
  assert.deepEqual(scenario.own.owed(), { wakeAt: NOW + WAIT });
  assert.deepEqual((await scenario.read("attestations", { event_id: "f" })).waiting, [
    { event_id: "a", source: "agent:v", until: new Date(NOW + WAIT).toISOString() },
  ]);
});

for (const domain of ["tasks", "beliefs", "interruptions"] as const) {
  test(`it is taken as soon as the log of ${domain} shows its event`, async () => {
    const scenario = waiting();
    assert.deepEqual(scenario.derived(NOW + WAIT - 1), []);
    scenario.seen(domain, fact("f", { id: "f" }));
    assert.deepEqual(
      scenario.derived().map(({ id, source }) => [id, source]),
      [["a", "agent:v"]],
    );
    assert.equal(await scenario.count("f"), 1);
    assert.equal(scenario.own.owed(), undefined);
  });
}

test("it is taken when its event comes in the log of the service itself", async () => {
  const scenario = world();
  scenario.own.given(attest("b", { id: "a" }), attest("f", { id: "b" }));
  scenario.seen("beliefs", fact("f", { id: "f" }));
  assert.deepEqual(
    scenario.derived().map(({ id }) => id),
    ["b", "a"],
  );
  assert.equal(await scenario.count("b"), 0, "b and a are of the same source");
});

describe("at the end of the wait", () => {
  test("it is refused, not a millisecond before", () => {
    const scenario = waiting();
    assert.deepEqual(scenario.derived(NOW + WAIT - 1), []);
    const [refusal, ...more] = scenario.derived(NOW + WAIT);
    assert.deepEqual(more, []);
    assert.equal(refusal?.type, "event.rejected");
    assert.equal(refusal?.source, SERVICE);
    assert.equal(refusal?.target, "agent:v");
    assert.equal(refusal?.causation_id, "a");
    assert.equal(payloadOf(refusal).acknowledged_event_id, "a");
    const { code, retryable, details } = errorOf(refusal);
    assert.equal(code, "protocol_error");
    assert.equal(retryable, false);
    assert.deepEqual(
      {
        reason: (details as { reason?: unknown }).reason,
        of: (details as { event_id?: unknown }).event_id,
      },
      { reason: "unknown_event", of: "f" },
    );
    assert.equal(scenario.own.owed(), undefined);
  });

  test("the refusal settles the envelope that waited", () => {
    const scenario = waiting();
    scenario.own.at(NOW + WAIT);
    const owed = scenario.own.owed();
    assert.ok(owed !== undefined && "event" in owed);
    assert.equal(owed.refuses?.id, "a");
    assert.equal(owed.due, NOW + WAIT);
  });

  test("nothing of it is left, and an event that comes later is attested by nobody", async () => {
    const scenario = waiting();
    scenario.derived(NOW + WAIT);
    assert.equal(scenario.state.tenants.size, 0);
    scenario.seen("beliefs", fact("f", { id: "f" }));
    assert.deepEqual(scenario.derived(), []);
    assert.equal(await scenario.count("f"), 0);
  });

  test("an event that has come wins, however late that is worked off", () => {
    const scenario = waiting().seen("beliefs", fact("f", { id: "f" }));
    assert.deepEqual(
      scenario.derived(NOW + 10 * WAIT).map(({ id }) => id),
      ["a"],
    );
  });
});

describe("what its event shows to be wrong with it is held against it then", () => {
  const chained = (...links: { id: string; source: string }[]) => ({ evidence_chain: links });
  const f = { id: "f", source: "agent:a" };

  /** The same attestation before its event and after it: the same refusal. */
  function refusedBothWays(attestation: Envelope, shown: Envelope[], reason: string): void {
    const before = world();
    before.own.when(attestation).begun("provenance.attestation.added");
    before.own.at(NOW + 5);
    before.seen("beliefs", ...shown);
    const [refusal, ...more] = before.derived();
    assert.deepEqual(more, []);
    assert.equal(refusal?.type, "event.rejected");
    assert.equal(refusal?.created_at, iso(NOW + 5));
    assert.equal(errorOf(refusal).code, "invalid_envelope");
    assert.equal((errorOf(refusal).details as { reason?: unknown }).reason, reason);
    assert.equal(before.own.owed(), undefined);
    const after = world().seen("beliefs", ...shown);
    after.own.when(attestation).rejected("invalid_envelope", { reason });
  }

  test("another source", () => {
    const said = attest("f", { id: "a", ...chained({ id: "f", source: "agent:other" }) });
    refusedBothWays(said, [fact("f", { id: "f" })], "source");
  });

  test("other content", () => {
    const link = { ...f, digest: "not of this" };
    refusedBothWays(attest("f", { id: "a", ...chained(link) }), [fact("f", { id: "f" })], "digest");
  });

  test("times that run backwards", () => {
    const late = fact("f", { id: "f", created_at: iso(NOW + 3_600_000) });
    const said = attest("f", { id: "a", created_at: iso(NOW), ...chained(f) });
    refusedBothWays(said, [late], "out_of_order");
  });

  test("a cycle", () => {
    const shown = fact("f", { id: "f", causation_id: "a" });
    refusedBothWays(attest("f", { id: "a" }), [shown], "cycle");
  });
});

describe("an attestation that waits", () => {
  test("can be revoked, and is born revoked", async () => {
    const scenario = waiting();
    scenario.own
      .when(revoke("a", { id: "r" }))
      .accepted()
      .when(revoke("a"))
      .rejected("protocol_error", { reason: "already_revoked" })
      .when(revoke("a", { source: "agent:x" }))
      .rejected("unauthorized");
    scenario.seen("beliefs", fact("f", { id: "f" }));
    assert.equal(scenario.derived().length, 1);
    assert.equal(await scenario.count("f"), 0);
    scenario.own.when(revoke("a")).rejected("protocol_error", { reason: "already_revoked" });
  });

  test("is not the only one: each waits for itself", async () => {
    const scenario = waiting({ attestationsMax: 2 });
    scenario.own.given(
      attest("f", { id: "b", source: "agent:w" }),
      attest("f", { id: "c", source: "agent:x" }),
      attest("g", { id: "d" }),
    );
    scenario.seen("beliefs", fact("f", { id: "f" }));
    const said = scenario.derived();
    assert.deepEqual(
      said.map(({ id, type }) => (type === "event.rejected" ? "refused" : id)),
      ["a", "b", "refused"],
    );
    assert.equal(await scenario.count("f"), 2);
    assert.equal(scenario.derived(NOW + WAIT).length, 1);
  });

  test("is one of a bounded number", () => {
    const scenario = waiting({ waitingMax: 1 });
    const { decision } = scenario.own.when(attest("g")).outcome;
    assert.ok("reject" in decision);
    assert.equal(decision.reject.retryable, true);
    scenario.own.judge(attest("g"), "other");
    assert.equal(scenario.state.tenants.get("other")?.waits.size, 1);
  });

  test("waits as long as it is told to", () => {
    const scenario = waiting({ evidenceWaitMs: 5 });
    assert.deepEqual(scenario.derived(NOW + 4), []);
    assert.equal(scenario.derived(NOW + 5).length, 1);
  });

  test("is given up when its end cannot be written", () => {
    const scenario = waiting();
    scenario.own.fail("a");
    assert.deepEqual(scenario.derived(NOW + WAIT), []);
    assert.equal(scenario.state.tenants.size, 0);
  });

  test("is not met by the refusal of what it speaks of", () => {
    const scenario = waiting();
    const refusal = event(
      "event.rejected",
      { acknowledged_event_id: "f", error: {} },
      { id: "f", source: "service:belief-tracker" },
    );
    scenario.seen("beliefs", refusal);
    assert.deepEqual(scenario.derived(NOW + WAIT - 1), []);
  });
});
