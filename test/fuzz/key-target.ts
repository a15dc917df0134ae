/**
 * Tokens, signatures, and the files that keys and rights are read from.
 *
 * K1 Looking at a token or a signature never throws, and nothing counts as signed but what a key of the set
 *    has signed, byte for byte as it means something.
 * K2 A file is used or refused with a typed error, which never quotes a secret.
 */
import { createECDH, createPrivateKey, hash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { authFromFile, newUserKey, systemClock } from "@harmovela/bus";
import { enrol } from "@harmovela/cli";
import { signEnvelope } from "@harmovela/client";
import { canonicalJson, checkEnvelope, type Envelope, parseJson } from "@harmovela/envelope";
import { HarmovelaError, type JsonObject } from "@harmovela/failure";
import {
  type AgentKeys,
  openAgentKeyFile,
  openAgentKeys,
  openTokenKeyFile,
  openTokenKeys,
  type TokenKeys,
} from "@harmovela/host";
import type { SimRandom } from "@harmovela/testkit";
import type { JWK } from "jose";
import { CommandFailure } from "../../packages/cli/src/command-failure.ts";
import { readIdentities } from "../../packages/cli/src/identity/identity-file.ts";
import { type Input, ofBytes, toBytes, toText } from "./input.ts";
import { mutateBytes } from "./mutate-bytes.ts";
import { mutateJson } from "./mutate-json.ts";
import { Broken, type Session, type Target } from "./target.ts";

const TEXT_MAX = 20_000;
const TENANT = "acme";
const AGENT = "agent:a";
const KINDS = [
  "token",
  "signature",
  "tokenKeys",
  "agentKeys",
  "credentials",
  "identities",
] as const;
type Kind = (typeof KINDS)[number];

/** What the seeds are made of: keys of ours and of a stranger, and what they have signed. */
interface Material {
  ours: TokenKeys;
  agents: AgentKeys;
  /** What our keys have signed, as it means something. */
  claims: ReadonlySet<string>;
  envelopes: ReadonlySet<string>;
  texts: Readonly<Record<Kind, readonly string[]>>;
}

let material: Promise<Material> | undefined;
/** The same for all sessions of a process. */
const materials = (): Promise<Material> => {
  material ??= makeMaterial();
  return material;
};
const made: { now: Material | undefined } = { now: undefined };

export const keyTarget: Target = {
  name: "keys",
  batch: 32,
  sessionInputs: 65_536,
  seed: (random) => seedOf(random.pick(KINDS), random),
  mutate: (input, other, random) => mutated(input, other, random),
  open: async () => {
    made.now = await materials();
    return new KeySession(made.now);
  },
};

function seedOf(kind: Kind, random: SimRandom): Input {
  return { kind, text: ofBytes(random.pick(made.now?.texts[kind] ?? []) ?? ""), tenant: TENANT };
}

/** JSON inside of tokens, and JSON as it is, besides the bytes. */
function mutated(input: Input, other: Input, random: SimRandom): Input {
  const text = toText(input.text);
  const from = toText(other.text);
  if (random.chance(0.05)) return { ...input, tenant: random.pick(["beta", "", "acme", "é"]) };
  if (random.chance(0.4))
    return { ...input, text: mutateBytes(input.text ?? "", other.text ?? "", random, TEXT_MAX) };
  if (input.kind === "token") return { ...input, text: ofBytes(inToken(text, from, random)) };
  if (input.kind === "signature" && random.chance(0.4)) {
    const token = /"token":"([^"]*)"/.exec(text)?.[1] ?? "";
    return { ...input, text: ofBytes(text.replace(token, () => inToken(token, from, random))) };
  }
  return { ...input, text: ofBytes(mutateJson(text, from, random).slice(0, TEXT_MAX)) };
}

/** One part changed as JSON, or the parts of two mixed. */
function inToken(token: string, other: string, random: SimRandom): string {
  const parts = token.split(".");
  const at = random.whole(0, Math.min(1, parts.length - 1));
  const json = Buffer.from(parts[at] ?? "", "base64url").toString("utf8");
  const foreign = other.split(".")[random.whole(0, 2)] ?? "";
  parts[at] = random.chance(0.3)
    ? foreign
    : Buffer.from(mutateJson(json, '{"alg":"none","kid":""}', random)).toString("base64url");
  return parts.join(".").slice(0, TEXT_MAX);
}

class KeySession implements Session {
  readonly #material: Material;
  readonly #folder = mkdtempSync(join(tmpdir(), "harmovela-fuzz-"));

  constructor(all: Material) {
    this.#material = all;
  }

  async run(inputs: readonly Input[]): Promise<string[]> {
    const outcomes: string[] = [];
    for (const [index, input] of inputs.entries()) {
      try {
        outcomes.push(`${input.kind} ${await this.#outcomeOf(input)}`);
      } catch (error) {
        if (error instanceof Broken) throw new Broken(`${input.kind}: ${error.message}`, index);
        throw new Broken(`${input.kind}: threw ${String(error).split("\n")[0]}`, index, error);
      }
    }
    return outcomes;
  }

  async check(): Promise<void> {}

  async close(): Promise<void> {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #outcomeOf({ kind, text = "", tenant = "" }: Input): Promise<string> {
    switch (kind as Kind) {
      case "token":
        return this.#token(toText(text));
      case "signature":
        return this.#signature(toBytes(text), toText(tenant));
      case "tokenKeys":
        return this.#tokenKeys(text);
      case "agentKeys":
        return this.#agentKeys(text);
      case "credentials":
        return this.#credentials(text);
      case "identities":
        return this.#identities(text);
      default:
        return "no kind";
    }
  }

  /** K1. */
  async #token(token: string): Promise<string> {
    const facts = await this.#material.ours.verify(token);
    if (facts.kind !== "verified") return facts.kind;
    if (!this.#material.claims.has(canonicalJson(facts.claims)))
      throw new Broken("claims that nobody has signed are verified");
    return "verified";
  }

  /** K1. Only what could be judged is looked at, as the host does. */
  async #signature(bytes: Uint8Array, tenant: string): Promise<string> {
    const json = parseJson(bytes);
    const checked = json.ok ? checkEnvelope(json.value) : json;
    if (!checked.ok) return "no envelope";
    const facts = await this.#material.agents.look(checked.value, tenant);
    if (facts?.kind !== "verified") return String(facts?.kind);
    if (!this.#material.envelopes.has(meaningOf(checked.value, tenant)))
      throw new Broken("an envelope that nobody has signed is verified");
    return "verified";
  }

  #file(text: string): string {
    const path = join(this.#folder, "file");
    writeFileSync(path, toBytes(text));
    return path;
  }

  /** K2. */
  async #tokenKeys(text: string): Promise<string> {
    const path = this.#file(text);
    const keys = await attempt(text, () => openTokenKeyFile(path));
    if (typeof keys === "string") return keys;
    const facts = await keys.verify(await keys.sign({ a: 1 }));
    if (facts.kind !== "verified") throw new Broken("keys that do not know their own signature");
    for (const key of keys.publicKeys.keys)
      if ("d" in key) throw new Broken("a secret is published");
    return "used";
  }

  /** K2. Whatever a registry says, it makes nothing of ours good that its keys did not sign. */
  async #agentKeys(text: string): Promise<string> {
    const path = this.#file(text);
    const keys = await attempt(text, () => openAgentKeyFile(path, systemClock, () => {}));
    if (typeof keys === "string") return keys;
    const kinds = new Set<string>();
    for (const signed of this.#material.texts.signature.slice(0, 2)) {
      kinds.add(String((await keys.look(JSON.parse(signed) as Envelope, TENANT))?.kind));
    }
    return `used ${[...kinds].sort().join(" ")}`;
  }

  /** K2. */
  async #credentials(text: string): Promise<string> {
    const path = this.#file(text);
    const auth = await attempt(text, async () => authFromFile(path));
    if (typeof auth === "string") return auth;
    return "creds" in auth ? "credentials" : "seed";
  }

  /** K2. What is read is written again in the same words. */
  async #identities(text: string): Promise<string> {
    const path = this.#file(text);
    const known = await attempt(text, async () => readIdentities(path));
    if (typeof known === "string") return known;
    return `${Math.min(3, known.length)} ${[...new Set(known.map(({ kind }) => kind))].join(" ")}`;
  }
}

const SECRETS = /"d"\s*:\s*"([^"]{16,})"|(SU[A-Z2-7]{56})/g;

/** What the work gives, or the code of a typed refusal that tells no secret. */
async function attempt<T>(text: string, work: () => Promise<T>): Promise<T | string> {
  try {
    return await work();
  } catch (error) {
    const isTyped = error instanceof HarmovelaError && error.code === "invalid_argument";
    if (!isTyped && !(error instanceof CommandFailure)) throw error;
    for (const [, d, seed] of text.matchAll(SECRETS)) {
      if (error.message.includes(d ?? seed ?? "")) throw new Broken("a refusal tells a secret");
    }
    // The words behind the name of the file are the service's own.
    return error.message.replace(/^.*?[:,] |^\S+ /, "").replace(/\d+/g, "#");
  }
}

/** An envelope without what is not signed: the stamps of the log and the signature. */
function meaningOf(envelope: Envelope, tenant: string): string {
  const { delivery: _stamped, authorization, ...rest } = envelope;
  const { token: _token, ...beside } = authorization ?? {};
  return canonicalJson({ ...rest, beside, tenant_id: tenant });
}

async function makeMaterial(): Promise<Material> {
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
