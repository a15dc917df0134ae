/**
 * Keys for handoff tokens whose answers come at once: real signing is done off-thread, and the same
 * seed would not give the same log.
 */
import { createHmac } from "node:crypto";
import type { TokenFacts, TokenIssue } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import type { TokenKeys } from "@harmovela/host";

const OURS = "sim";
const SECRET = "of the simulation";

export const SIM_TOKEN_KEYS: TokenKeys = {
  publicKeys: { keys: [] },
  sign: async (claims: JsonObject | TokenIssue): Promise<string> => {
    const body = Buffer.from(JSON.stringify(claims)).toString("base64url");
    return `${OURS}.${body}.${sealOf(body)}`;
  },
  verify: async (token: string): Promise<TokenFacts> => {
    const [maker, body = "", seal] = token.split(".");
    if (maker !== OURS) return { kind: "opaque" };
    if (seal !== sealOf(body)) return { kind: "forged" };
    const claims = JSON.parse(Buffer.from(body, "base64url").toString()) as JsonObject;
    return { kind: "verified", claims };
  },
};

function sealOf(body: string): string {
  return createHmac("sha256", SECRET).update(body).digest("base64url");
}
