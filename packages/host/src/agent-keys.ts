/**
 * The registry of agents' public keys (spec section 8, `source_trust: "signed"`), and the look at a
 * detached signature.
 *
 * A1 A key belongs to one agent of one tenant; its `kid` is looked for among that agent's keys only.
 * A2 Here only who signed is found out. Whether the key was good at the time is decided with the state.
 * A3 Keys are added, limited (`until`) and revoked (`revoked_at`), never changed: what was signed in
 *    time stays verifiable.
 */
import {
  type Envelope,
  type Instant,
  isId,
  isInstant,
  parseInstant,
  SIGNATURE_MAX,
  SIGNATURE_TYPE,
  type SignatureFacts,
  signatureIn,
  signedForm,
} from "@harmovela/envelope";
import { HarmovelaError } from "@harmovela/failure";
import { type CryptoKey, compactVerify, decodeProtectedHeader, importJWK, type JWK } from "jose";

/** One key as the registry holds it; times are RFC 3339. */
export interface AgentKeyRecord {
  tenant: string;
  agent: string;
  kid: string;
  /** Public, Ed25519 or P-256. */
  jwk: JWK;
  from: string;
  /** It signs nothing at or after this. */
  until?: string;
  /** From this on nobody knows who signs with it. */
  revoked_at?: string;
}

export interface AgentKeySet {
  keys: AgentKeyRecord[];
}

export interface AgentKeys {
  /** What there is to know of the signature that an envelope carries; undefined when it carries none. Never throws. */
  look(envelope: Envelope, tenant: string): Promise<SignatureFacts | undefined>;
}

/** All keys of a registry are held in memory. */
const KEYS_MAX = 100_000;
/** Of JWK kinds the algorithm that they sign with; everything else is refused. */
const ALGORITHMS: Readonly<Record<string, string>> = { Ed25519: "EdDSA", "P-256": "ES256" };

interface AgentKey {
  kid: string;
  key: CryptoKey;
  algorithm: string;
  from: Instant;
  until: Instant | undefined;
  revokedAt: Instant | undefined;
}

/** Throws `invalid_argument` that says which record cannot be used; private keys are refused. */
export async function openAgentKeys(set: AgentKeySet): Promise<AgentKeys> {
  if (set.keys.length > KEYS_MAX) {
    throw new HarmovelaError("invalid_argument", `a registry holds at most ${KEYS_MAX} keys`);
  }
  const keys = new Map<string, AgentKey>();
  for (const [index, record] of set.keys.entries()) {
    const ids: unknown[] = [record.tenant, record.agent, record.kid];
    if (!ids.every(isId)) throw unusable(index, "tenant, agent and kid are ids");
    const name = nameOf(record.tenant, record.agent, record.kid);
    if (keys.has(name)) throw unusable(index, "its kid is taken");
    keys.set(name, await readKey(record, index));
  }
  return { look: (envelope, tenant) => look(keys, envelope, tenant) };
}

/** Ids hold no control characters, so the three are told apart. */
function nameOf(tenant: string, agent: string, kid: string): string {
  return `${tenant}\u0000${agent}\u0000${kid}`;
}

function unusable(index: number, why: string): HarmovelaError {
  return new HarmovelaError("invalid_argument", `key ${index} of the registry: ${why}`);
}

async function readKey(record: AgentKeyRecord, index: number): Promise<AgentKey> {
  const { kid, jwk } = record;
  if (typeof jwk !== "object" || jwk === null) throw unusable(index, "it has no jwk");
  if ("d" in jwk) throw unusable(index, "a private key has no place in it");
  const { crv = "" } = jwk;
  const algorithm =
    typeof crv === "string" && Object.hasOwn(ALGORITHMS, crv) ? ALGORITHMS[crv] : undefined;
  if (algorithm === undefined) throw unusable(index, "it is neither Ed25519 nor P-256");
  const from = instantIn(record.from, index);
  if (from === undefined) throw unusable(index, "it does not say from when on it is good");
  try {
    const key = await importJWK(jwk, algorithm);
    if (key instanceof Uint8Array) throw new TypeError("a secret");
    const until = instantIn(record.until, index);
    return { kid, key, algorithm, from, until, revokedAt: instantIn(record.revoked_at, index) };
  } catch (error) {
    if (error instanceof HarmovelaError) throw error;
    throw unusable(index, "its jwk cannot be read");
  }
}

function instantIn(text: string | undefined, index: number): Instant | undefined {
  if (text === undefined) return undefined;
  if (typeof text !== "string" || !isInstant(text)) throw unusable(index, "a time is not RFC 3339");
  return parseInstant(text);
}

async function look(
  keys: ReadonlyMap<string, AgentKey>,
  envelope: Envelope,
  tenant: string,
): Promise<SignatureFacts | undefined> {
  const signature = signatureIn(envelope);
  if (signature === undefined) return undefined;
  const [header = "", payload, mac = "", ...more] =
    signature.length <= SIGNATURE_MAX ? signature.split(".") : [];
  const kid = payload === "" && mac !== "" && more.length === 0 ? kidIn(`${header}..${mac}`) : "";
  if (kid === "") return { kind: "malformed" };
  const found = keys.get(nameOf(tenant, envelope.source, kid));
  if (found === undefined) return { kind: "unknown_key", kid };
  const form = Buffer.from(signedForm(envelope, tenant)).toString("base64url");
  try {
    await compactVerify(`${header}.${form}.${mac}`, found.key, { algorithms: [found.algorithm] });
  } catch {
    // Whatever is wrong with it: that key did not sign this envelope.
    return { kind: "forged", kid };
  }
  const { from, until, revokedAt } = found;
  return {
    kind: "verified",
    kid,
    from,
    ...(until === undefined ? {} : { until }),
    ...(revokedAt === undefined ? {} : { revokedAt }),
  };
}

/** The key that the header names; "" when it is no header of a signed envelope. */
function kidIn(signature: string): string {
  try {
    const { kid, typ } = decodeProtectedHeader(signature);
    return typ === SIGNATURE_TYPE && isId(kid) ? kid : "";
  } catch {
    return "";
  }
}
