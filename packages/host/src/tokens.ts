/**
 * Handoff tokens as they travel (spec 7): compact JWS, EdDSA over Ed25519, claims as they are given.
 *
 * S1 The first key of a set signs; all of them verify, so that keys overlap while they are replaced.
 * S2 Here only the signature is looked at. What a token is worth is decided with the state.
 * S3 Equal claims under one key are one and the same token.
 */
import { hash } from "node:crypto";
import type { TokenFacts, TokenIssue } from "@harmovela/envelope";
import { HarmovelaError, type JsonObject } from "@harmovela/failure";
import {
  CompactSign,
  type CryptoKey,
  calculateJwkThumbprint,
  compactVerify,
  decodeProtectedHeader,
  exportJWK,
  generateKeyPair,
  importJWK,
  type JWK,
} from "jose";

const ALGORITHM = "EdDSA";
const CURVE = "Ed25519";
const TYPE = "handoff+jwt";
/** Tokens whose signature was looked at and need not be again; the longest unused one goes first. */
const REMEMBERED_MAX = 4096;

/** Private keys, newest first. The file of a service, never stored in JetStream. */
export interface TokenKeySet {
  keys: JWK[];
}

/** Signs and verifies. Both are asynchronous; neither looks at the clock. */
export interface TokenKeys {
  /** A token with exactly these claims. */
  sign(claims: JsonObject | TokenIssue): Promise<string>;
  /** Who made a token. Never throws. */
  verify(token: string): Promise<TokenFacts>;
  /** The public keys, for whoever wants to verify by himself. */
  readonly publicKeys: TokenKeySet;
}

/** A set of one new key. */
export async function generateTokenKeys(): Promise<TokenKeySet> {
  return { keys: [await generateKey()] };
}

/** The set with a new key in front; of the old ones the newest `kept` go on verifying (S1). */
export async function rotateTokenKeys(set: TokenKeySet, kept = 1): Promise<TokenKeySet> {
  return { keys: [await generateKey(), ...set.keys.slice(0, kept)] };
}

async function generateKey(): Promise<JWK> {
  const { privateKey } = await generateKeyPair(ALGORITHM, { crv: CURVE, extractable: true });
  const jwk = await exportJWK(privateKey);
  return { ...jwk, kid: await calculateJwkThumbprint(jwk), alg: ALGORITHM, use: "sig" };
}

/** Throws `invalid_argument` when the set holds no private Ed25519 key to sign with. */
export async function openTokenKeys(set: TokenKeySet): Promise<TokenKeys> {
  const [newest] = set.keys;
  if (newest === undefined) throw new HarmovelaError("invalid_argument", "the key set is empty");
  const keys = new Map<string, CryptoKey>();
  const publicKeys: JWK[] = [];
  try {
    for (const key of set.keys) {
      const { d: _secret, ...open } = key;
      const kid = key.kid ?? (await calculateJwkThumbprint(open));
      const published: JWK = { ...open, kid, alg: ALGORITHM, use: "sig" };
      keys.set(kid, await toKey(published));
      publicKeys.push(published);
    }
    if (typeof newest.d !== "string") throw new Error("no private key");
    const signer = await toKey(newest);
    return new Ed25519Keys(signer, publicKeys[0]?.kid ?? "", keys, { keys: publicKeys });
  } catch (cause) {
    // The cause may quote the key.
    const name = cause instanceof Error ? cause.name : "error";
    throw new HarmovelaError("invalid_argument", `the key set cannot be used (${name})`);
  }
}

async function toKey(jwk: JWK): Promise<CryptoKey> {
  if (jwk.kty !== "OKP" || jwk.crv !== CURVE) throw new TypeError("not an Ed25519 key");
  const key = await importJWK(jwk, ALGORITHM);
  if (key instanceof Uint8Array) throw new TypeError("not an Ed25519 key");
  return key;
}

class Ed25519Keys implements TokenKeys {
  readonly publicKeys: TokenKeySet;
  readonly #signer: CryptoKey;
  readonly #signerId: string;
  readonly #keys: ReadonlyMap<string, CryptoKey>;
  readonly #remembered = new Map<string, TokenFacts>();

  constructor(
    signer: CryptoKey,
    signerId: string,
    keys: ReadonlyMap<string, CryptoKey>,
    publicKeys: TokenKeySet,
  ) {
    this.#signer = signer;
    this.#signerId = signerId;
    this.#keys = keys;
    this.publicKeys = publicKeys;
  }

  async sign(claims: JsonObject | TokenIssue): Promise<string> {
    const text = JSON.stringify(claims);
    const token = await new CompactSign(Buffer.from(text))
      .setProtectedHeader({ alg: ALGORITHM, kid: this.#signerId, typ: TYPE })
      .sign(this.#signer);
    // Mostly it comes back within moments, and to verify costs more than to sign.
    this.#remember(nameOf(token), factsIn(text));
    return token;
  }

  async verify(token: string): Promise<TokenFacts> {
    const name = nameOf(token);
    const facts = this.#remembered.get(name) ?? (await this.#look(token));
    this.#remember(name, facts);
    return facts;
  }

  #remember(name: string, facts: TokenFacts): void {
    this.#remembered.delete(name);
    this.#remembered.set(name, facts);
    if (this.#remembered.size <= REMEMBERED_MAX) return;
    for (const oldest of this.#remembered.keys()) {
      this.#remembered.delete(oldest);
      break;
    }
  }

  /** A token that names none of our keys is another's, and nothing can be seen in it. */
  async #look(token: string): Promise<TokenFacts> {
    const key = this.#keys.get(keyIdIn(token) ?? "");
    if (key === undefined) return { kind: "opaque" };
    try {
      const { payload } = await compactVerify(token, key, { algorithms: [ALGORITHM] });
      return factsIn(new TextDecoder().decode(payload));
    } catch {
      // Whatever is wrong with it: it names a key of ours, which did not sign this.
      return { kind: "forged" };
    }
  }
}

/** Of a token with this payload that one of our keys has signed. */
function factsIn(payload: string): TokenFacts {
  const claims: unknown = JSON.parse(payload);
  const isObject = claims !== null && typeof claims === "object" && !Array.isArray(claims);
  return isObject ? { kind: "verified", claims: claims as JsonObject } : { kind: "forged" };
}

/** Tokens are remembered by their digest: whoever reads the memory cannot present them. */
function nameOf(token: string): string {
  return hash("sha256", token, "base64");
}

function keyIdIn(token: string): string | undefined {
  try {
    return decodeProtectedHeader(token).kid;
  } catch {
    // No JWS at all.
    return undefined;
  }
}
