/** From a decider's definition to a running service: its connections and a host (architecture, section 3). */

import { randomUUID } from "node:crypto";
import {
  AUDIT_MAX_AGE_MS,
  AUDIT_MAX_BYTES,
  BORDER_REPLY_PREFIX,
  type Bus,
  type BusAuth,
  type Clock,
  connectBus,
  encodeToken,
  systemClock,
} from "@harmovela/bus";
import type { Decider, Domain, Instant } from "@harmovela/envelope";
import { HarmovelaError, type JsonObject } from "@harmovela/failure";
import type { Logger } from "pino";
import type { AgentKeys } from "./agent-keys.ts";
import { type GrantsRegistry, NO_REGISTRY } from "./grants.ts";
import { type Host, openHost } from "./host.ts";
import { openHostPatiently } from "./open-patiently.ts";
import type { Act, AuditLimits, ReadHandler, TokenIssuer } from "./options.ts";
import { SOURCE_LIMITS, type SourceLimits } from "./source-rate.ts";
import type { TokenKeys } from "./tokens.ts";

/** What a service is, wherever it runs. */
export interface ServiceDefinition<State> {
  domain: Domain;
  /** `service:<name>`. */
  service: string;
  decider: Decider<State>;
  /** Every setting that `evolve` or `owed` reads. */
  settings: JsonObject;
  observes: readonly Domain[];
  reads: Readonly<Record<string, ReadHandler<State>>>;
  issueToken?: TokenIssuer<State>;
  /** What it does beside judging, in every process that runs it. It must not fail: the service goes on without. */
  companion?: (context: CompanionContext<State>) => Companion;
  /** Questions that change something beside the state, by verb; the leader answers them. */
  openActs?: (context: CompanionContext<State>) => Acts;
}

export interface Acts {
  readonly verbs: Readonly<Record<string, Act>>;
  close(): void;
}

export interface CompanionContext<State> {
  /** A connection that writes and answers nobody (architecture, section 3). */
  bus: Bus;
  clock: Clock;
  logger: Logger;
  replicas: number;
  /** The state as folded by the leader, and its leadership; undefined while another process leads. */
  leading(): { state: State; now: Instant; epoch: number } | undefined;
}

export interface Companion {
  close(): Promise<void>;
}

/** Where it runs. */
export interface ServiceConfig {
  servers: string | string[];
  version: string;
  logger: Logger;
  /** Credentials of the connection that appends; none: authentication is off. */
  writerAuth?: BusAuth;
  /** Credentials of the connection that answers; default the writer's. */
  answererAuth?: BusAuth;
  /** Default 1. */
  replicas?: number;
  /** Default 3,000: a standby writes within five seconds of a kill. */
  leaseTtlMs?: number;
  /** Default 30 days: how long logs keep their entries at least, milliseconds. */
  retentionMs?: number;
  /** Default 50,000: entries after which another snapshot is taken. */
  snapshotEntries?: number;
  /** Keep trying until a server is there and its streams can be looked at. Default false. */
  waitOnFirstConnect?: boolean;
  /** Keys for handoff tokens; without them every token is opaque and none is issued. */
  tokens?: TokenKeys;
  /** Keys of agents; without them no signature can be verified. */
  agentKeys?: AgentKeys;
  /** What agents may do; only where credentials prove who they are. Default: everything of their tenant. */
  grants?: GrantsRegistry;
  /** The record of decisions (architecture, section 3). Default: with credentials, 90 days in 1 GiB; false: none. */
  audit?: Partial<AuditLimits> | boolean;
  /** What each source may send to this service; counts only with credentials. Default `SOURCE_LIMITS`. */
  sourceLimits?: SourceLimits;
  /** Default 60,000: how often a decider that asks for it is told of its observed logs, milliseconds. */
  observedEveryMs?: number;
}

const LEASE_TTL_MS = 3_000;
export const LOG_RETENTION_MS: number = 30 * 86_400_000;

export interface RunningService {
  host: Host;
  /** Drains the host and closes its connections. */
  close(): Promise<void>;
}

/** Connects and starts; throws a typed error when the server or its streams are not as needed. */
export async function openService<State>(
  definition: ServiceDefinition<State>,
  config: ServiceConfig,
): Promise<RunningService> {
  const name = definition.service.replace("service:", "");
  const instance = randomUUID();
  const { servers, waitOnFirstConnect = false, writerAuth, answererAuth = writerAuth } = config;
  if (writerAuth !== undefined && definition.settings.authenticated === false) {
    throw new HarmovelaError(
      "invalid_argument",
      "with credentials the setting `authenticated` must be true",
    );
  }
  if (writerAuth === undefined && config.grants !== undefined) {
    throw new HarmovelaError("invalid_argument", "grants need senders that are proved");
  }
  const connections: Bus[] = [];
  const connectAs = async (role: string, auth: BusAuth | undefined): Promise<Bus> => {
    const bus = await connectBus({
      servers,
      waitOnFirstConnect,
      name: `${name} ${role}`,
      ...(auth === undefined ? {} : { auth }),
    });
    connections.push(bus);
    return bus;
  };
  const disconnect = () => Promise.all(connections.map((bus) => bus.close()));
  try {
    const writer = await connectAs("writer", writerAuth);
    const answerer = await connectAs("answerer", answererAuth);
    const carrier = await connectAs("carrier", writerAuth);
    const isAuthenticated = writerAuth !== undefined;
    const open = waitOnFirstConnect ? openHostPatiently : openHost;
    let host: Host<State> | undefined;
    const context: CompanionContext<State> = {
      bus: writer,
      clock: systemClock,
      logger: config.logger.child({ domain: definition.domain, instance }),
      replicas: config.replicas ?? 1,
      leading: () => host?.leading(),
    };
    const { openActs, companion: openCompanion, ...parts } = definition;
    const acts = openActs?.({ ...context, bus: carrier });
    const opened = await open({
      ...parts,
      ...(acts === undefined ? {} : { acts: acts.verbs }),
      version: config.version,
      instance,
      writer,
      answerer,
      carrier,
      clock: systemClock,
      logger: context.logger,
      ...(config.tokens === undefined ? {} : { tokens: config.tokens }),
      ...(config.agentKeys === undefined ? {} : { agentKeys: config.agentKeys }),
      ...(config.observedEveryMs === undefined ? {} : { observedEveryMs: config.observedEveryMs }),
      replicas: config.replicas ?? 1,
      ...(config.snapshotEntries === undefined ? {} : { snapshotEntries: config.snapshotEntries }),
      retentionMs: config.retentionMs ?? LOG_RETENTION_MS,
      leaseTtlMs: config.leaseTtlMs ?? LEASE_TTL_MS,
      ...auditOf(config, isAuthenticated),
      replyPrefix: isAuthenticated
        ? (tenant, source) => `_INBOX.${encodeToken(tenant)}.${encodeToken(source)}.`
        : () => "_INBOX.",
      ...(isAuthenticated
        ? { borderReplyPrefix: BORDER_REPLY_PREFIX, grants: config.grants ?? NO_REGISTRY }
        : {}),
      // Without credentials a flood comes under any name, and a limit would shut its victims out.
      ...(isAuthenticated ? { sourceLimits: config.sourceLimits ?? SOURCE_LIMITS } : {}),
    });
    host = opened;
    const companion = openCompanion?.(context);
    return {
      host: opened,
      close: async () => {
        await companion?.close();
        await opened.close();
        acts?.close();
        await disconnect();
      },
    };
  } catch (error) {
    await disconnect();
    throw error;
  }
}

function auditOf(
  { audit }: ServiceConfig,
  isAuthenticated: boolean,
): { audit: AuditLimits } | object {
  if (audit === false || (audit === undefined && !isAuthenticated)) return {};
  const limits = { maxAgeMs: AUDIT_MAX_AGE_MS, maxBytes: AUDIT_MAX_BYTES };
  return { audit: { ...limits, ...(typeof audit === "object" ? audit : {}) } };
}
