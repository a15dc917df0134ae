/** What the seeds of keys are made of: keys of ours and of strangers, what they have signed, and files that hold them. */
import { createECDH, createPrivateKey, hash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newUserKey } from "@harmovela/bus";
import { enrol } from "@harmovela/cli";
import { signEnvelope } from "@harmovela/client";
import { canonicalJson, type Envelope } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import { type AgentKeys, openAgentKeys, openTokenKeys, type TokenKeys } from "@harmovela/host";
import type { JWK } from "jose";

export const TENANT = "acme";
const AGENT = "agent:a";
export const KINDS = [
  "token",
  "signature",
  "tokenKeys",
  "agentKeys",
  "credentials",
  "identities",
] as const;
export type Kind = (typeof KINDS)[number];

export interface Material {
  ours: TokenKeys;
  agents: AgentKeys;
  /** What our keys have signed, as it means something. */
  claims: ReadonlySet<string>;
  envelopes: ReadonlySet<string>;
  texts: Readonly<Record<Kind, readonly string[]>>;
}

/** An envelope without what is not signed: the stamps of the log and the signature. */
export function meaningOf(envelope: Envelope, tenant: string): string {
  const { delivery: _stamped, authorization, ...rest } = envelope;
  const { token: _token, ...beside } = authorization ?? {};
  return canonicalJson({ ...rest, beside, tenant_id: tenant });
}

export async function makeMaterial(): Promise<Material> {
  const tokenKeys = (name: string) => ({
    keys: [{ ...keyPair("Ed25519", name).secret, kid: name }],
  });
  const [mine, stranger] = [tokenKeys("mine"), tokenKeys("stranger")];
  const [ours, theirs] = [await openTokenKeys(mine), await openTokenKeys(stranger)];
  const claims: JsonObject[] = [
    { jti: "j1", iss: AGENT, sub: "agent:b", task_id: "t1", iat: 1, exp: 2_000_000_000 },
    { jti: "j2" },
    {},
  ];
  const tokens: string[] = [];
  for (const each of claims) tokens.push(await ours.sign(each), await theirs.sign(each));
  const [header = "", payload = "", mac = ""] = (tokens[0] ?? "").split(".");
  const none = Buffer.from('{"alg":"none"}').toString("base64url");
  tokens.push(`${none}.${payload}.`, `${header}.${payload}.`, `${header}..${mac}`, "ht_opaque", "");

  const [ed, ec] = [keyPair("Ed25519", "agent"), keyPair("P-256", "agent")];
  const foreign = keyPair("Ed25519", "other agent");
  const records = [
    { tenant: TENANT, agent: AGENT, kid: "ed", jwk: ed.open, from: "2026-01-01T00:00:00Z" },
    { tenant: TENANT, agent: AGENT, kid: "ec", jwk: ec.open, from: "2026-01-01T00:00:00Z" },
    { tenant: TENANT, agent: "agent:b", kid: "f", jwk: foreign.open, from: "2026-01-01T00:00:00Z" },
  ];
  const registry = { keys: records.slice(0, 2) };
  const plain = plainEnvelopes();
  const envelopes: Envelope[] = [];
  const unknown: Envelope[] = [];
  for (const envelope of plain) {
    envelopes.push(await signEnvelope(envelope, TENANT, { kid: "ed", jwk: ed.secret }));
    envelopes.push(await signEnvelope(envelope, TENANT, { kid: "ec", jwk: ec.secret }));
    unknown.push(await signEnvelope(envelope, TENANT, { kid: "ed", jwk: foreign.secret }));
    unknown.push(await signEnvelope(envelope, "beta", { kid: "ed", jwk: ed.secret }));
  }
  const { seed, publicKey } = newUserKey();
  return {
    ours,
    agents: await openAgentKeys(registry),
    claims: new Set(claims.map(canonicalJson)),
    envelopes: new Set(envelopes.map((envelope) => meaningOf(envelope, TENANT))),
    texts: {
      token: tokens,
      signature: [...envelopes, ...unknown].map((envelope) => JSON.stringify(envelope)),
      tokenKeys: [
        JSON.stringify(mine),
        JSON.stringify({ keys: [...mine.keys, ...stranger.keys] }),
        "{}",
      ],
      agentKeys: [JSON.stringify(registry), JSON.stringify({ keys: records }), '{"keys":[]}'],
      credentials: [
        `${seed}\n`,
        `# agent\n${seed}\n`,
        `-----BEGIN NATS USER JWT-----\nx.y.z\n------END NATS USER JWT------\n${seed}\n`,
        publicKey,
      ],
      identities: [identityFile()],
    },
  };
}

function plainEnvelopes(): Envelope[] {
  const about = {
    spec_version: "0.2",
    type: "provenance.attestation.added",
    source: AGENT,
    created_at: "2026-11-30T10:00:00Z",
    causation_id: "e1",
  };
  return [
    { ...about, id: "s1", payload: { attestor: AGENT, method: "m" } },
    { ...about, id: "s2", payload: { attestor: AGENT, method: "m", evidence: { a: 1 } } },
    { ...about, id: "s3", tenant_id: TENANT, payload: { attestor: AGENT, method: "m" } },
  ];
}

/** PKCS #8 of an Ed25519 key, before its 32 bytes. */
const ED25519_HEAD = "302e020100300506032b657004220420";

/** The same key for a name each time, so that what was found once can be looked at again. */
function keyPair(curve: "Ed25519" | "P-256", name: string): { open: JWK; secret: JWK } {
  const bytes = hash("sha256", `fuzz ${name}`, "buffer");
  const secret = curve === "P-256" ? p256(bytes) : ed25519(bytes);
  const { d: _secret, ...open } = secret;
  return { open, secret };
}

function ed25519(bytes: Buffer): JWK {
  const key = Buffer.concat([Buffer.from(ED25519_HEAD, "hex"), bytes]);
  return createPrivateKey({ key, format: "der", type: "pkcs8" }).export({ format: "jwk" }) as JWK;
}

function p256(bytes: Buffer): JWK {
  const pair = createECDH("prime256v1");
  pair.setPrivateKey(bytes);
  // 0x04, then both coordinates.
  const point = pair.getPublicKey();
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((part) =>
    part.toString("base64url"),
  );
  return { kty: "EC", crv: "P-256", x: x ?? "", y: y ?? "", d: bytes.toString("base64url") };
}

/** As the commands write it. */
function identityFile(): string {
  const folder = mkdtempSync(join(tmpdir(), "harmovela-fuzz-"));
  try {
    const path = join(folder, "agents.conf");
    enrol(path, [
      { identity: { kind: "agent", tenant: TENANT, name: AGENT }, file: ["a"] },
      { identity: { kind: "observer", tenant: "beta", name: "agent:eye" }, file: ["o"] },
      { identity: { kind: "operator", name: "operator" }, file: ["p"] },
    ]);
    return readFileSync(path, "utf8");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
