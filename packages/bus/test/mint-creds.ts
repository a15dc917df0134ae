/** Credentials as an operator of NATS gives them out: JWTs signed with nkeys, and the server's side of them. */
import { randomUUID } from "node:crypto";
import { nkeys } from "@nats-io/transport-node";

const encoder = new TextEncoder();
const { createAccount, createOperator, createUser } = nkeys;
type KeyPair = ReturnType<typeof createUser>;

const UNLIMITED = { subs: -1, data: -1, payload: -1 };
const ACCOUNT_LIMITS = {
  ...UNLIMITED,
  imports: -1,
  exports: -1,
  wildcards: true,
  conn: -1,
  leaf: -1,
};

export interface Operator {
  /** For the server's configuration file. */
  config: string;
  /** The text of a creds file for a user of the one account. */
  credsOf(name: string, permissions?: { pub?: object; sub?: object }): Uint8Array;
}

/** An operator with a system account and one account for users. */
export function mintOperator(): Operator {
  const [operator, system, account] = [createOperator(), createAccount(), createAccount()];
  const accountJwt = (of: KeyPair, name: string): string =>
    mint(operator, of, name, { type: "account", version: 2, limits: ACCOUNT_LIMITS });
  const config = [
    `operator: ${mint(operator, operator, "operator", { type: "operator", version: 2 })}`,
    `system_account: ${system.getPublicKey()}`,
    "resolver: MEMORY",
    "resolver_preload: {",
    `  ${system.getPublicKey()}: ${accountJwt(system, "system")}`,
    `  ${account.getPublicKey()}: ${accountJwt(account, "users")}`,
    "}",
  ].join("\n");
  return {
    config,
    credsOf: (name, { pub = {}, sub = {} } = {}) => {
      const user = createUser();
      const jwt = mint(account, user, name, { type: "user", version: 2, ...UNLIMITED, pub, sub });
      const seed = new TextDecoder().decode(user.getSeed());
      return encoder.encode(
        `-----BEGIN NATS USER JWT-----\n${jwt}\n------END NATS USER JWT------\n\n` +
          `-----BEGIN USER NKEY SEED-----\n${seed}\n------END USER NKEY SEED------\n`,
      );
    },
  };
}

function mint(issuer: KeyPair, subject: KeyPair, name: string, nats: object): string {
  const head = encode({ typ: "JWT", alg: "ed25519-nkey" });
  const body = encode({
    jti: randomUUID(),
    iat: Math.floor(Date.now() / 1_000),
    iss: issuer.getPublicKey(),
    sub: subject.getPublicKey(),
    name,
    nats,
  });
  const signature = issuer.sign(encoder.encode(`${head}.${body}`));
  return `${head}.${body}.${Buffer.from(signature).toString("base64url")}`;
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}
