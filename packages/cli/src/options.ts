/** Options that several commands share, spelled once. */
import { InvalidArgumentError, Option } from "commander";

export const LOOPBACK = "127.0.0.1";
export const DEFAULT_SERVER = "nats://127.0.0.1:4222";
export const DEFAULT_TENANT = "default";
export const DEFAULT_AGENT = "agent:cli";

/** The server to work on; always one. */
export function serverOption(): Option {
  return new Option("--server <url>", "NATS server, or several separated by commas")
    .env("HARMOVELA_SERVERS")
    .default(DEFAULT_SERVER);
}

/** A server instead of an own, temporary one. */
export function otherServerOption(): Option {
  return new Option("--server <url>", "use this NATS server instead of starting one");
}

export function tenantOption(): Option {
  return new Option("--tenant <name>", "tenant").env("HARMOVELA_TENANT").default(DEFAULT_TENANT);
}

export function agentOption(): Option {
  return new Option("--as <agent>", "who asks and publishes")
    .env("HARMOVELA_AGENT")
    .default(DEFAULT_AGENT);
}

/** The file with everybody who may connect. */
export function configOption(): Option {
  return new Option("--config <file>", "the file that the server includes").default("agents.conf");
}

/** Where to connect: one URL or several of one cluster. */
export function toServers(server: string): string[] {
  return server
    .split(",")
    .map((url) => url.trim())
    .filter((url) => url !== "");
}

/** A span of time: a whole number, 0 included. */
export function parseMilliseconds(text: string): number {
  const ms = Number(text);
  if (text === "" || !Number.isSafeInteger(ms) || ms < 0) {
    throw new InvalidArgumentError("a whole number of milliseconds");
  }
  return ms;
}
