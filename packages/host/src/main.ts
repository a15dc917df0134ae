/** A service as a process of its own: configuration from the environment, health, signals, exit code. */
import { createServer, type Server } from "node:http";
import {
  AUDIT_MAX_AGE_MS,
  AUDIT_MAX_BYTES,
  authFromFile,
  type BusAuth,
  systemClock,
} from "@harmovela/bus";
import pino from "pino";
import { openAgentKeyFile } from "./agent-key-file.ts";
import { openGrantsFile } from "./grants.ts";
import type { AuditLimits } from "./options.ts";
import { openService, type RunningService, type ServiceDefinition } from "./service.ts";
import { SOURCE_LIMITS, type SourceLimits } from "./source-rate.ts";
import { openTokenKeyFile } from "./token-key-file.ts";

/** Every problem of the configuration at once. */
export class ConfigError extends Error {
  override name = "ConfigError";
}

export interface ProcessConfig {
  servers: string[];
  logLevel: string;
  replicas: number;
  retentionMs: number;
  /** Port of `/healthz` on 127.0.0.1 or `HARMOVELA_HEALTH_HOST`; undefined: none. */
  health: { host: string; port: number } | undefined;
  writerAuth: BusAuth | undefined;
  answererAuth: BusAuth | undefined;
  /** Credentials are given, so that the subject proves who speaks. */
  authenticated: boolean;
  /** Key set for handoff tokens; created when there is none. Undefined: every token is opaque. */
  tokenKeyFile: string | undefined;
  /** Registry of agents' public keys. Undefined: no signature can be verified. */
  agentKeyFile: string | undefined;
  /** Registry of what agents may do. Undefined: everything of their tenant. */
  grantsFile: string | undefined;
  /** The record of decisions; false: none. */
  audit: AuditLimits | false;
  /** What each source may send. */
  sourceLimits: SourceLimits;
}

const DAY_MS = 86_400_000;
/** Room for a few messages at least. */
const AUDIT_BYTES_MIN = 16 * 1024 * 1024;

type Environment = Record<string, string | undefined>;

/**
 * Whether the process proves itself to the server, and so must everybody: the `authenticated` of every
 * service's settings. A file that cannot be read does not turn it off; the process does not start then.
 */
function isAuthenticated(env: Environment): boolean {
  return (env.HARMOVELA_CREDS_WRITER ?? "") !== "";
}

/**
 * Reads `HARMOVELA_*` (docs/operating.md); throws a ConfigError that lists every problem, those that
 * the service's own settings have first.
 */
export function readConfig(env: Environment, problems: string[] = []): ProcessConfig {
  const whole = (name: string, fallback: number, max: number, min = 0): number => {
    const text = env[name];
    if (text === undefined || text === "") return fallback;
    const value = Number(text);
    if (!Number.isInteger(value) || value < min || value > max) {
      problems.push(`${name} must be a whole number from ${min} to ${max}`);
    }
    return value;
  };
  const creds = (name: string): BusAuth | undefined => {
    const path = env[name];
    if (path === undefined || path === "") return undefined;
    try {
      return authFromFile(path);
    } catch (error) {
      problems.push(`${name}: ${(error as Error).message}`);
      return undefined;
    }
  };
  const port = whole("HARMOVELA_HEALTH_PORT", 0, 65_535);
  const replicas = whole("HARMOVELA_REPLICAS", 1, 5);
  const writerAuth = creds("HARMOVELA_CREDS_WRITER");
  const { messagesPerSecond, bytesPerSecond } = SOURCE_LIMITS;
  const config: ProcessConfig = {
    servers: (env.HARMOVELA_SERVERS ?? "nats://127.0.0.1:4222").split(",").map((s) => s.trim()),
    logLevel: env.HARMOVELA_LOG_LEVEL ?? "info",
    replicas,
    // Repeated ids are answered from the log for up to 24 hours.
    retentionMs: DAY_MS * whole("HARMOVELA_RETENTION_DAYS", 30, 36_500, 2),
    health: port === 0 ? undefined : { host: env.HARMOVELA_HEALTH_HOST ?? "127.0.0.1", port },
    writerAuth,
    answererAuth: creds("HARMOVELA_CREDS_ANSWERER") ?? writerAuth,
    authenticated: isAuthenticated(env),
    tokenKeyFile: env.HARMOVELA_TOKEN_KEYS === "" ? undefined : env.HARMOVELA_TOKEN_KEYS,
    agentKeyFile: env.HARMOVELA_AGENT_KEYS === "" ? undefined : env.HARMOVELA_AGENT_KEYS,
    grantsFile: env.HARMOVELA_GRANTS === "" ? undefined : env.HARMOVELA_GRANTS,
    audit: readAudit(env, isAuthenticated(env), problems, {
      maxAgeMs: DAY_MS * whole("HARMOVELA_AUDIT_DAYS", AUDIT_MAX_AGE_MS / DAY_MS, 36_500, 1),
      maxBytes: whole("HARMOVELA_AUDIT_BYTES", AUDIT_MAX_BYTES, 2 ** 50, AUDIT_BYTES_MIN),
    }),
    sourceLimits: {
      messagesPerSecond: whole("HARMOVELA_SOURCE_MESSAGES_PER_S", messagesPerSecond, 1e9),
      bytesPerSecond: whole("HARMOVELA_SOURCE_BYTES_PER_S", bytesPerSecond, 1e12),
    },
  };
  if (config.grantsFile !== undefined && !config.authenticated) {
    problems.push("HARMOVELA_GRANTS needs HARMOVELA_CREDS_WRITER: nobody is proved without");
  }
  if (!Object.hasOwn(pino.levels.values, config.logLevel)) {
    problems.push(
      `HARMOVELA_LOG_LEVEL must be one of ${Object.keys(pino.levels.values).join(", ")}`,
    );
  }
  if (problems.length > 0) throw new ConfigError(problems.join("; "));
  return config;
}

function readAudit(
  env: Environment,
  isOnByDefault: boolean,
  problems: string[],
  limits: AuditLimits,
): AuditLimits | false {
  const word = env.HARMOVELA_AUDIT ?? "";
  if (word !== "" && word !== "on" && word !== "off") {
    problems.push("HARMOVELA_AUDIT must be on or off");
  }
  return word === "on" || (word === "" && isOnByDefault) ? limits : false;
}

/**
 * Runs the service until SIGINT or SIGTERM (then drains; exit code 0) or until it must stop by itself
 * (exit code 1). A second signal exits at once. `define` says what is wrong with its own settings; what it
 * is told beside the environment are the settings that follow from how the process connects.
 */
export async function runProcess<State>(
  define: (
    env: Environment,
    problems: string[],
    connection: { authenticated: boolean },
  ) => ServiceDefinition<State>,
  version: string,
): Promise<void> {
  const problems: string[] = [];
  const definition = define(process.env, problems, {
    authenticated: isAuthenticated(process.env),
  });
  let config: ProcessConfig;
  try {
    config = readConfig(process.env, problems);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 2;
    return;
  }
  const logger = pino({ level: config.logLevel, base: { service: definition.service } });
  const { tokenKeyFile, agentKeyFile, grantsFile } = config;
  const tokens = tokenKeyFile === undefined ? undefined : await openTokenKeyFile(tokenKeyFile);
  const agentKeys =
    agentKeyFile === undefined
      ? undefined
      : await openAgentKeyFile(agentKeyFile, systemClock, (error) =>
          logger.error({ err: error }, "the registry of agents' keys cannot be used as it is now"),
        );
  const service = await openService(definition, {
    servers: config.servers,
    version,
    logger,
    replicas: config.replicas,
    retentionMs: config.retentionMs,
    sourceLimits: config.sourceLimits,
    waitOnFirstConnect: true,
    audit: config.audit,
    ...(tokens === undefined ? {} : { tokens }),
    ...(agentKeys === undefined ? {} : { agentKeys }),
    ...(grantsFile === undefined ? {} : { grants: openGrantsFile(grantsFile, systemClock) }),
    ...(config.writerAuth === undefined ? {} : { writerAuth: config.writerAuth }),
    ...(config.answererAuth === undefined ? {} : { answererAuth: config.answererAuth }),
  });
  const health = config.health === undefined ? undefined : serveHealth(service, config.health);
  let isStopping = false;
  const onSignal = (signal: string): void => {
    if (isStopping) process.exit(130);
    isStopping = true;
    logger.info({ signal }, "stopping");
    service.close().then(
      () => health?.close(),
      (error: unknown) => {
        logger.error({ err: error }, "stopping failed");
        process.exitCode = 1;
      },
    );
  };
  process.on("SIGINT", onSignal);
  process.on("SIGTERM", onSignal);
  try {
    await service.host.done;
  } catch {
    process.exitCode = 1;
    await service.close();
  }
  health?.close();
}

/** `/healthz`: 200 when the service is ready, 503 with the same body when it is not. */
function serveHealth(service: RunningService, address: { host: string; port: number }): Server {
  const server = createServer((_request, response) => {
    const status = service.host.status();
    response.writeHead(status.isReady ? 200 : 503, { "content-type": "application/json" });
    response.end(JSON.stringify(status));
  });
  server.listen(address.port, address.host);
  return server;
}
