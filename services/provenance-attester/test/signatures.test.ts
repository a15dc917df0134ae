/** `source_trust: "signed"` and what its proof is worth, on arrival and later (spec 4.2, section 8); L7. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Envelope, SignatureFacts } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import { attest, fact, iso, NOW, SECURITY, type World, world } from "./support.ts";

const GOOD = { kind: "verified", kid: "k1", from: NOW - 1_000_000 } as const;

function signed(fields: Partial<Envelope> = {}): Envelope {
  return attest("f", { source_trust: "signed", ...fields });
}

function secure(settings = {}): World {
  return world({ defaultProfiles: SECURITY, ...settings }).seen("beliefs", fact("f", { id: "f" }));
}

/** What is wrong with it when it arrives; undefined: it is taken. */
function problem(facts: SignatureFacts | undefined, fields: Partial<Envelope> = {}): unknown {
  const scenario = secure();
  const sent = signed(fields);
  if (facts !== undefined) scenario.signatures.set(sent.id, facts);
  const { decision } = scenario.own.when(sent).outcome;
  if ("accept" in decision) return undefined;
  assert.ok("reject" in decision);
  assert.equal(decision.reject.code, "unauthorized");
  assert.equal(decision.reject.details?.check, "signature");
  return decision.reject.details?.reason;
}

describe("under security.v1 what says that it is signed", () => {
  test("is taken when a key of its source has signed it", () => {
    assert.equal(problem(GOOD), undefined);
  });

  test("is refused without a proof", () => {
    assert.equal(problem(undefined), "missing");
    assert.equal(problem({ kind: "malformed" }), "malformed");
    assert.equal(problem({ kind: "unknown_key", kid: "k" }), "unknown_key");
    assert.equal(problem({ kind: "forged", kid: "k" }), "forged");
  });

  test("is held to the time of its key, to the millisecond", () => {
    assert.equal(problem({ ...GOOD, from: NOW }), undefined);
    assert.equal(problem({ ...GOOD, from: NOW + 1 }), "not_yet_valid");
    assert.equal(problem({ ...GOOD, until: NOW + 1 }), undefined);
    assert.equal(problem({ ...GOOD, until: NOW }), "expired");
  });

  test("is signed by no key that is revoked now, whatever date it bears", () => {
    assert.equal(problem({ ...GOOD, revokedAt: NOW + 1 }), undefined);
    assert.equal(problem({ ...GOOD, revokedAt: NOW }), "revoked");
    const before = { created_at: iso(NOW - 5_000) };
    assert.equal(problem({ ...GOOD, revokedAt: NOW - 1_000 }, before), "revoked");
  });

  test("is fresh", () => {
    assert.equal(problem(GOOD, { created_at: iso(NOW - 600_000) }), undefined);
    assert.equal(problem(GOOD, { created_at: iso(NOW - 600_001) }), "too_old");
    assert.equal(problem(GOOD, { created_at: iso(NOW + 60_000) }), undefined);
    assert.equal(problem(GOOD, { created_at: iso(NOW + 60_001) }), "in_future");
  });
});

test("without the profile it is taken, and the verdict says what its proof is worth", async () => {
  const scenario = world().seen("beliefs", fact("f", { id: "f" }));
  const { decision } = scenario.own.when(signed()).outcome;
  assert.ok("accept" in decision);
  assert.deepEqual(decision.verdict?.flags, ["signature_missing"]);
});

test("the key that proved an attestation is remembered, also while it waits", async () => {
  const scenario = world({ defaultProfiles: SECURITY });
  const sent = signed({ id: "a" });
  scenario.signatures.set("a", GOOD);
  scenario.own.when(sent).begun("provenance.attestation.added");
  scenario.seen("beliefs", fact("f", { id: "f" })).derived();
  const { nodes } = await scenario.read("graph", { event_id: "a" });
  assert.equal((nodes as JsonObject[])[0]?.signed_by, "k1");
});

describe("L7: what is stored is judged at its own time", () => {
  const stored = async (facts: SignatureFacts | undefined): Promise<unknown> => {
    const scenario = world().seen("beliefs", fact("f", { id: "f", source_trust: "signed" }));
    if (facts !== undefined) scenario.signatures.set("f", facts);
    scenario.own.wait(1_000_000_000);
    const { may, reasons } = await scenario.read("may", { event_id: "f" });
    const [reason] = reasons as JsonObject[];
    assert.equal(may, reason === undefined);
    return reason?.problem;
  };

  test("a key that ended or was revoked later takes nothing back", async () => {
    assert.equal(await stored(GOOD), undefined);
    assert.equal(await stored({ ...GOOD, until: NOW + 1 }), undefined);
    assert.equal(await stored({ ...GOOD, revokedAt: NOW + 1 }), undefined);
  });

  test("one that was no good then proves nothing", async () => {
    assert.equal(await stored({ ...GOOD, until: NOW }), "expired");
    assert.equal(await stored({ ...GOOD, revokedAt: NOW }), "revoked");
    assert.equal(await stored({ ...GOOD, from: NOW + 1 }), "not_yet_valid");
    assert.equal(await stored({ kind: "forged", kid: "k" }), "forged");
    assert.equal(await stored(undefined), "missing");
  });

  test("a date after its own entry does not help", async () => {
    const scenario = world().seen(
      "beliefs",
      fact("f", { id: "f", source_trust: "signed", created_at: iso(NOW + 50_000) }),
    );
    scenario.signatures.set("f", { ...GOOD, from: NOW + 10_000 });
    const { reasons } = await scenario.read("may", { event_id: "f" });
    assert.equal((reasons as JsonObject[])[0]?.problem, "not_yet_valid");
  });

  test("a chain that is verified says so of a link", async () => {
    const scenario = world().seen(
      "beliefs",
      fact("f", { id: "f", source_trust: "signed" }),
      fact("g", { id: "g", causation_id: "f" }),
    );
    scenario.signatures.set("f", { kind: "forged", kid: "k" });
    const view = await scenario.read("chain", { event_id: "g", verify: true });
    assert.equal(view.result, "unverifiable");
    assert.deepEqual(view.first_bad, {
      index: 0,
      id: "f",
      result: "unverifiable",
      reason: "signature",
      problem: "forged",
    });
  });
});
