/** Proves that an envelope is its source's (spec section 8, `source_trust: "signed"`; section 11, C15). */
import {
  type Envelope,
  isId,
  SIGNATURE_SCHEME,
  SIGNATURE_TYPE,
  signatureIn,
  signedForm,
} from "@harmovela/envelope";
import { HarmovelaError } from "@harmovela/failure";
import { CompactSign, importJWK, type JWK } from "jose";

/** A private key of an agent: Ed25519 or P-256, with the `kid` under which its registry knows it. */
export interface SigningKey {
  kid: string;
  jwk: JWK;
}

/**
 * The envelope with `source_trust: "signed"` and its signature in `authorization`. It holds for this one
 * envelope in this one tenant: whatever is changed afterwards, but for `delivery`, makes it worthless.
 * Throws `invalid_argument` when the key cannot sign, or
 * when the payload's evidence holds a signature already.
 */
export async function signEnvelope(
  envelope: Envelope,
  tenant: string,
  { kid, jwk }: SigningKey,
): Promise<Envelope> {
  if (!isId(kid)) throw new HarmovelaError("invalid_argument", "the kid of a key is an id");
  const { authorization: _other, ...rest } = envelope;
  const signed: Envelope = { ...rest, source_trust: "signed" } as Envelope;
  if (signatureIn(signed) !== undefined)
    throw new HarmovelaError("invalid_argument", "the payload holds a signature already");
  const alg = jwk.crv === "P-256" ? "ES256" : "EdDSA";
  let token: string;
  try {
    const key = await importJWK(jwk, alg);
    token = await new CompactSign(Buffer.from(signedForm(signed, tenant)))
      .setProtectedHeader({ alg, kid, typ: SIGNATURE_TYPE })
      .sign(key);
  } catch (cause) {
    // The cause may quote the key.
    const name = cause instanceof Error ? cause.name : "error";
    throw new HarmovelaError("invalid_argument", `the key cannot sign (${name})`);
  }
  const [header = "", , signature = ""] = token.split(".");
  return {
    ...signed,
    authorization: { scheme: SIGNATURE_SCHEME, token: `${header}..${signature}` },
  };
}
