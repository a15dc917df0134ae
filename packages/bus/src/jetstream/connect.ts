/** Opens a connection to NATS as a `Bus`. */

import { HarmovelaError } from "@harmovela/failure";
import {
  type Authenticator,
  type ConnectionOptions,
  connect,
  credsAuthenticator,
  nkeyAuthenticator,
  type TlsOptions,
  tokenAuthenticator,
  usernamePasswordAuthenticator,
} from "@nats-io/transport-node";
import type { ConnectionChange } from "./connection-state.ts";
import { toBusError } from "./errors.ts";
import { JetStreamBus } from "./jetstream-bus.ts";

/** Secrets are functions: a reconnect asks again, and so picks up what was renewed. */
export type BusAuth =
  | { user: string; password: () => string }
  | { token: () => string }
  | { nkeySeed: () => Uint8Array }
  | { creds: () => Uint8Array };

export interface ConnectBusOptions {
  /** One URL or several of one cluster. */
  servers: string | string[];
  /** Shown by the server beside the connection. */
  name: string;
  auth?: BusAuth;
  tls?: TlsOptions;
  /** Reply subjects of this connection lie under it; default `_INBOX`. */
  inboxPrefix?: string;
  /** Keep trying until a server is there instead of failing at once. Default false. */
  waitOnFirstConnect?: boolean;
  /** How long one attempt to connect may take. Default 5,000. */
  connectTimeoutMs?: number;
  /** How soon a dead link is noticed (after two missed answers). Default 10,000. */
  pingIntervalMs?: number;
  onChange?: (change: ConnectionChange) => void;
}

const PING_INTERVAL_MS = 10_000;
const CONNECT_TIMEOUT_MS = 5_000;
const RECONNECT_WAIT_MS = 250;
const RECONNECT_JITTER_MS = 250;

/** Connects, and from then on reconnects for ever. Throws `connection_error` or `unauthorized`. */
export async function connectBus(options: ConnectBusOptions): Promise<JetStreamBus> {
  const inboxPrefix = (options.inboxPrefix ?? "_INBOX").replace(/\.$/, "");
  const connection: ConnectionOptions = {
    servers: options.servers,
    name: options.name,
    inboxPrefix,
    timeout: options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS,
    pingInterval: options.pingIntervalMs ?? PING_INTERVAL_MS,
    maxReconnectAttempts: -1,
    reconnectTimeWait: RECONNECT_WAIT_MS,
    reconnectJitter: RECONNECT_JITTER_MS,
    ignoreAuthErrorAbort: true,
    waitOnFirstConnect: options.waitOnFirstConnect ?? false,
    // Each request would otherwise capture a stack.
    noAsyncTraces: true,
  };
  if (options.auth) connection.authenticator = toAuthenticator(options.auth);
  if (options.tls) connection.tls = options.tls;
  try {
    return new JetStreamBus(await connect(connection), inboxPrefix, options.onChange);
  } catch (caught) {
    throw namingServers(toBusError(caught), options.servers);
  }
}

/** Whoever is told that nobody is there wants to know where; secrets in a URL stay out. */
function namingServers(error: HarmovelaError, servers: string | string[]): HarmovelaError {
  if (error.code !== "connection_error") return error;
  const places = [servers].flat().map((url) => url.replace(/^(.*:\/\/)?.*@/, "$1"));
  return new HarmovelaError(error.code, `no connection to ${places.join(", ")}`, { cause: error });
}

function toAuthenticator(auth: BusAuth): Authenticator {
  if ("user" in auth) return usernamePasswordAuthenticator(auth.user, auth.password);
  if ("token" in auth) return tokenAuthenticator(auth.token);
  if ("nkeySeed" in auth) return nkeyAuthenticator(auth.nkeySeed);
  return credsAuthenticator(auth.creds);
}
