/**
 * The accounts of a nats-server. Services and streams have one, each tenant has its own, and between them
 * pass an intake, reads, entries, heartbeats and what is sent to inboxes, nothing else.
 *
 * One account with permissions would not do: an agent chooses the reply subject of what it publishes, no
 * permission looks at that, and the server itself answers there once an intake has stored the message. In
 * one account that answer lands in a log or a lease, and on 2.9.10 it even deletes and purges, as a request
 * to `$JS.API`. At the border of an account the server puts a reply subject of its own in its place.
 */
import {
  agentPermissions,
  encodeToken,
  observerPermissions,
  type Permissions,
  servicePermissions,
} from "@harmovela/bus";
import type { Identity } from "./identity.ts";

/** Where services, operators and JetStream are. */
export const SERVICES_ACCOUNT = "HARMOVELA";

interface Account {
  jetstream?: "enabled";
  users: object[];
  exports: object[];
  imports: object[];
}

/** The value of `accounts` in the server's configuration; JSON is a part of that language. */
export function accountsOf(identities: readonly Identity[]): Record<string, Account> {
  const services: Account = {
    jetstream: "enabled",
    users: [],
    exports: [
      { service: "hv.*.in.>" },
      { service: "hv.*.rpc.>" },
      { stream: "hv.*.ev.>" },
      { stream: "_INBOX.>" },
    ],
    imports: [],
  };
  const accounts: Record<string, Account> = { [SERVICES_ACCOUNT]: services };
  for (const identity of identities) {
    if (!("tenant" in identity)) {
      services.users.push(userOf(identity));
      continue;
    }
    const token = encodeToken(identity.tenant);
    const name = accountName(token);
    const known = accounts[name];
    const account = known ?? tenantAccount(token);
    accounts[name] = account;
    if (!known) services.imports.push({ stream: { account: name, subject: `hv.${token}.live.>` } });
    account.users.push(userOf(identity));
  }
  return accounts;
}

function accountName(tenantToken: string): string {
  return `TENANT_${tenantToken}`;
}

function tenantAccount(token: string): Account {
  const from = (subject: string) => ({ account: SERVICES_ACCOUNT, subject });
  return {
    users: [],
    exports: [{ stream: `hv.${token}.live.>` }],
    imports: [
      { service: from(`hv.${token}.in.>`) },
      { service: from(`hv.${token}.rpc.>`) },
      { stream: from(`hv.${token}.ev.>`) },
      { stream: from(`_INBOX.${token}.>`) },
    ],
  };
}

function userOf(identity: Identity): object {
  const { publish, subscribe } = permissionsOf(identity);
  return {
    nkey: identity.key,
    permissions: { publish: listed(publish), subscribe: listed(subscribe) },
  };
}

/** To a server an empty list is no list, and everything is allowed. */
function listed(allow: readonly string[]): object {
  return allow.length === 0 ? { deny: [">"] } : { allow };
}

function permissionsOf(identity: Identity): Permissions {
  switch (identity.kind) {
    case "service":
      return servicePermissions(identity);
    case "operator":
      return { publish: [">"], subscribe: [">"] };
    default: {
      const { kind, tenant, name: agent, scopes } = identity;
      const who = { tenant, agent, ...(scopes === undefined ? {} : { scopes }) };
      return kind === "observer" ? observerPermissions(who) : agentPermissions(who);
    }
  }
}
