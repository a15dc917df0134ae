/** Signatures of agents: who made them, and that they hold for one envelope only; L11: the signed text is one text. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { type SigningKey, signEnvelope } from "@harmovela/client";
import { type Envelope, parseJson, signatureIn } from "@harmovela/envelope";
import { FakeClock, pass } from "@harmovela/testkit";
import { CompactSign, exportJWK, generateKeyPair, importJWK, type JWK } from "jose";
import {
  type AgentKeyRecord,
  type AgentKeySet,
  openAgentKeyFile,
  openAgentKeys,
} from "../src/index.ts";

const TENANT = "acme";
const FROM = "2026-01-01T00:00:00Z";

async function keyOf(
  agent: string,
  kid: string,
  more: Partial<AgentKeyRecord> = {},
  alg = "EdDSA",
): Promise<{ record: AgentKeyRecord; key: SigningKey; open: JWK }> {
  const { privateKey } = await generateKeyPair(alg, { extractable: true });
  const jwk = await exportJWK(privateKey);
  const { d: _secret, ...open } = jwk;
  return {
    record: { tenant: TENANT, agent, kid, jwk: open, from: FROM, ...more },
    key: { kid, jwk },
    open,
  };
}

const sent = (more: Partial<Envelope> = {}): Envelope => ({
  spec_version: "0.2",
  id: "evt_1",
  type: "provenance.attestation.added",
  source: "agent:a",
  created_at: "2026-11-30T10:00:00Z",
  causation_id: "evt_0",
  evidence_chain: [{ source: "agent:b", id: "evt_0" }],
  payload: { attestor: "agent:a", method: "m", n: [1e21, -0, 0.1, "\ufffd😀"] },
  ...more,
});

/** As it comes back out of bytes. */
function travelled(envelope: Envelope): Envelope {
  const json = parseJson(Buffer.from(JSON.stringify(envelope)));
  assert.ok(json.ok);
  return json.value as Envelope;
}

for (const alg of ["EdDSA", "ES256"]) {
  test(`${alg}: what its source has signed is verified, also after a journey and with stamps`, async () => {
    const { record, key } = await keyOf("agent:a", "k1", { until: "2027-01-01T00:00:00Z" }, alg);
    const keys = await openAgentKeys({ keys: [record] });
    const signed = await signEnvelope(sent(), TENANT, key);
    const facts = {
      kind: "verified",
      kid: "k1",
      from: Date.parse(FROM),
      until: Date.UTC(2027, 0),
    };
    assert.deepEqual(await keys.look(signed, TENANT), facts);
    const stamped = { ...signed, delivery: { cursor: "HV_LOG_PROVENANCE:7", sequence: 7 } };
    assert.deepEqual(await keys.look(travelled(stamped), TENANT), facts);
    const reordered = Object.fromEntries(Object.entries(signed).reverse()) as Envelope;
    assert.deepEqual(await keys.look(travelled(reordered), TENANT), facts);
    assert.deepEqual(await keys.look({ ...signed, tenant_id: TENANT }, TENANT), facts);
  });
}

test("a signature holds for one envelope of one tenant", async () => {
  const { record, key } = await keyOf("agent:a", "k1");
  const elsewhere = { ...record, tenant: "other" };
  const keys = await openAgentKeys({ keys: [record, elsewhere] });
  const signed = await signEnvelope(sent(), TENANT, key);
  const moved: Envelope[] = [
    { ...signed, id: "evt_2" },
    { ...signed, type: "provenance.attestation.revoked" },
    { ...signed, created_at: "2026-11-30T10:00:01Z" },
    { ...signed, causation_id: "evt_9" },
    { ...signed, evidence_chain: [{ source: "agent:c", id: "evt_0" }] },
    { ...signed, payload: { attestor: "agent:a", method: "n" } },
    { ...signed, target: "agent:z" },
    { ...signed, tenant_id: "other" },
    { ...signed, "": 1 },
  ];
  for (const envelope of moved) {
    const tenant = envelope.tenant_id ?? TENANT;
    assert.deepEqual(await keys.look(envelope, tenant), { kind: "forged", kid: "k1" });
  }
  assert.deepEqual(await keys.look(signed, "other"), { kind: "forged", kid: "k1" });
});

test("a key is its agent's only", async () => {
  const { record, key } = await keyOf("agent:a", "k1");
  const keys = await openAgentKeys({ keys: [record] });
  const stolen = await signEnvelope(sent({ source: "agent:m" }), TENANT, key);
  assert.deepEqual(await keys.look(stolen, TENANT), { kind: "unknown_key", kid: "k1" });
  const signed = await signEnvelope(sent(), TENANT, key);
  assert.deepEqual(await keys.look(signed, "nowhere"), { kind: "unknown_key", kid: "k1" });
});

test("the signature may stand in payload.evidence, and is the same there", async () => {
  const { record, key } = await keyOf("agent:a", "k1");
  const keys = await openAgentKeys({ keys: [record] });
  const { authorization, ...signed } = await signEnvelope(sent(), TENANT, key);
  const { payload } = signed as Envelope;
  const evidence = { signature: signatureIn({ ...signed, authorization } as Envelope) };
  const carried = { ...signed, payload: { ...(payload as object), evidence } } as Envelope;
  assert.equal((await keys.look(carried, TENANT))?.kind, "verified");
  const more = { ...carried, payload: { ...(payload as object), evidence: { ...evidence, x: 1 } } };
  assert.equal((await keys.look(more as Envelope, TENANT))?.kind, "forged");
});

test("a registry of anything but texts is refused by its number, not stumbled over", async () => {
  const { record } = await keyOf("agent:a", "k1");
  // JSON may hold an object that cannot be made a text.
  const odd = { toString: 1, valueOf: 1 };
  const bent: Record<string, unknown>[] = [
    { tenant: odd },
    { agent: odd },
    { kid: odd },
    { jwk: { ...record.jwk, crv: odd } },
    { jwk: { ...record.jwk, kty: odd } },
    { jwk: { ...record.jwk, x: odd } },
    { jwk: { ...record.jwk, crv: "__proto__" } },
    { from: odd },
    { until: odd },
    { revoked_at: odd },
  ];
  for (const fields of bent) {
    const set = { keys: [record, { ...record, kid: "k2", ...fields }] } as AgentKeySet;
    const opening = openAgentKeys(set);
    await assert.rejects(opening, { code: "invalid_argument" }, JSON.stringify(fields));
  }
});

test("nothing unsigned stands beside a signature", async () => {
  const { record, key } = await keyOf("agent:a", "k1");
  const keys = await openAgentKeys({ keys: [record] });
  const signed = await signEnvelope(sent(), TENANT, key);
  const { authorization = {}, payload } = signed;
  const additions: Partial<Envelope>[] = [
    { authorization: { ...authorization, roles: ["tenant-admin"] } },
    { payload: { ...(payload as object), evidence: { signature: "a..b" } } },
    { payload: { ...(payload as object), evidence: { signature: 7 } } },
  ];
  for (const added of additions) {
    const facts = await keys.look({ ...signed, ...added }, TENANT);
    assert.deepEqual(facts, { kind: "malformed" }, JSON.stringify(added));
  }
  const twice = sent({ payload: { evidence: { signature: "a..b" } } });
  await assert.rejects(signEnvelope(twice, TENANT, key), { code: "invalid_argument" });
});

test("what is no detached signature of an envelope is malformed", async () => {
  const { record, key } = await keyOf("agent:a", "k1");
  const keys = await openAgentKeys({ keys: [record] });
  const good = signatureIn(await signEnvelope(sent(), TENANT, key)) ?? "";
  const header = (fields: object): string =>
    Buffer.from(JSON.stringify(fields)).toString("base64url");
  const [, , mac] = good.split(".");
  const handoff = await new CompactSign(Buffer.from("{}"))
    .setProtectedHeader({ alg: "EdDSA", kid: "k1", typ: "handoff+jwt" })
    .sign(await importJWK(key.jwk, "EdDSA"));
  const bad = [
    "",
    "x",
    "..",
    `${good}.`,
    good.replace("..", ".e30."),
    handoff,
    `${header({ alg: "EdDSA", kid: "k1" })}..${mac}`,
    `${header({ alg: "EdDSA", typ: "harmovela-envelope+jws" })}..${mac}`,
    `${good}${"A".repeat(5_000)}`,
  ];
  for (const token of bad) {
    const envelope = sent({ authorization: { scheme: "jws-detached", token } });
    assert.deepEqual(await keys.look(envelope, TENANT), { kind: "malformed" }, token.slice(0, 80));
  }
  for (const alg of ["none", "HS256", "ES256"]) {
    const token = `${header({ alg, kid: "k1", typ: "harmovela-envelope+jws" })}..${mac}`;
    const envelope = sent({ authorization: { scheme: "jws-detached", token } });
    assert.deepEqual(await keys.look(envelope, TENANT), { kind: "forged", kid: "k1" }, alg);
  }
  assert.equal(await keys.look(sent(), TENANT), undefined);
  assert.equal(await keys.look(sent({ authorization: { scheme: "bearer" } }), TENANT), undefined);
});

describe("a registry", () => {
  test("takes public keys only, each once, with their times", async () => {
    const { record, key } = await keyOf("agent:a", "k1");
    const bad: [Partial<AgentKeyRecord>, RegExp][] = [
      [{ jwk: key.jwk }, /private/],
      [{ jwk: { kty: "oct", k: "AAAA" } }, /neither/],
      [{ from: "soon" }, /RFC 3339/],
      [{ until: "2026-02-30T00:00:00Z" }, /RFC 3339/],
      [{ kid: "" }, /ids/],
      [{ jwk: { kty: "OKP", crv: "Ed25519", x: "no" } }, /cannot be read/],
    ];
    for (const [more, message] of bad) {
      const keys = [{ ...record, ...more }];
      await assert.rejects(openAgentKeys({ keys }), { code: "invalid_argument", message });
    }
    await assert.rejects(openAgentKeys({ keys: [record, record] }), /key 1.*taken/);
  });

  test("keeps old keys beside new ones, and says when one was revoked", async () => {
    const first = await keyOf("agent:a", "k1", { revoked_at: "2026-06-01T00:00:00Z" });
    const second = await keyOf("agent:a", "k2");
    const keys = await openAgentKeys({ keys: [first.record, second.record] });
    const old = await keys.look(await signEnvelope(sent(), TENANT, first.key), TENANT);
    assert.deepEqual(old, {
      kind: "verified",
      kid: "k1",
      from: Date.parse(FROM),
      revokedAt: Date.UTC(2026, 5),
    });
    const young = await keys.look(await signEnvelope(sent(), TENANT, second.key), TENANT);
    assert.equal(young?.kind, "verified");
  });

  test("that is a file takes effect when it is changed, and stays when it is spoilt", async () => {
    const folder = mkdtempSync(join(tmpdir(), "agent-keys-"));
    const path = join(folder, "keys.json");
    const write = (set: AgentKeySet | string): void =>
      writeFileSync(path, typeof set === "string" ? set : JSON.stringify(set));
    try {
      const clock = new FakeClock();
      const trouble: unknown[] = [];
      const { record, key } = await keyOf("agent:a", "k1");
      await assert.rejects(
        openAgentKeyFile(path, clock, () => {}),
        { code: "invalid_argument" },
      );
      write({ keys: [] });
      const keys = await openAgentKeyFile(path, clock, (error) => trouble.push(error));
      const signed = await signEnvelope(sent(), TENANT, key);
      const kind = async (): Promise<string | undefined> => (await keys.look(signed, TENANT))?.kind;
      write({ keys: [record] });
      assert.equal(await kind(), "unknown_key", "it is looked at once a second");
      await pass(clock, 1_000);
      assert.equal(await kind(), "verified");
      write("{");
      await pass(clock, 1_000);
      assert.equal(await kind(), "verified");
      await pass(clock, 1_000);
      assert.equal(await kind(), "verified");
      assert.equal(trouble.length, 1);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

test("a key that cannot sign is said to be one, without a word of it", async () => {
  const jwk = { kty: "OKP", crv: "Ed25519", x: "AAAA", d: "secret-text" };
  await assert.rejects(signEnvelope(sent(), TENANT, { kid: "k", jwk }), (error: Error) => {
    assert.ok(!error.message.includes("secret-text"));
    return true;
  });
});
