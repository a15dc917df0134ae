/** A service as a process of its own, to be killed. Argument: its configuration as JSON. */
import { createTracker } from "@harmovela/belief-tracker";
import { connectBus, type LeaseOptions, systemClock } from "@harmovela/bus";
import { createCoordinator } from "@harmovela/delegation-coordinator";
import type { JsonObject } from "@harmovela/failure";
import {
  type Host,
  openHostPatiently,
  openTokenKeyFile,
  type ServiceDefinition,
} from "@harmovela/host";
import { createManager } from "@harmovela/interruption-manager";
import pino from "pino";
import { openBlindLease } from "./blind-lease.ts";
import { Doom, type KillOrder } from "./kill-order.ts";
import { withOverrides } from "./overrides.ts";
import type { ChaosDomain } from "./stored-log.ts";

export interface ServiceProcessConfig {
  /** Which service. */
  domain: ChaosDomain;
  /** Its settings where they differ from the defaults. */
  settings: JsonObject;
  url: string | string[];
  instance: string;
  leaseTtlMs: number;
  /** Copies of each stream. */
  replicas: number;
  /** Keys for handoff tokens, the same for all. */
  tokenKeyFile: string;
  kill?: KillOrder;
  /** How late it learns that its lease is lost. */
  blindMs?: number;
}

const READY_LOOK_MS = 20;
const config = JSON.parse(process.argv[2] ?? "") as ServiceProcessConfig;
const {
  domain,
  settings,
  url,
  instance,
  leaseTtlMs,
  replicas,
  tokenKeyFile,
  kill,
  blindMs = 0,
} = config;
const doom = kill === undefined ? undefined : new Doom(kill);
const connect = (name: string) => connectBus({ servers: url, name, waitOnFirstConnect: true });
const connected = await connect(`${instance} writer`);
const writer = withOverrides(connected, {
  openLease: (options: LeaseOptions) =>
    blindMs > 0 ? openBlindLease(connected, options, blindMs) : connected.openLease(options),
});
const answerer = await connect(`${instance} answerer`);
const common = {
  version: "0.1.0",
  instance,
  writer: doom?.writer(writer) ?? writer,
  answerer: doom?.answerer(answerer) ?? answerer,
  clock: systemClock,
  logger: pino(
    { level: process.env.HARMOVELA_TEST_LOG ?? "silent", base: { instance } },
    pino.destination(2),
  ),
  tokens: await openTokenKeyFile(tokenKeyFile),
  replicas,
  retentionMs: 30 * 86_400_000,
  snapshotEntries: 100,
  leaseTtlMs,
  replyPrefix: () => "_INBOX.",
};

function open<State>(definition: ServiceDefinition<State>) {
  const decider = doom?.decider(definition.decider) ?? definition.decider;
  return openHostPatiently({ ...definition, ...common, decider });
}

async function openDomain(): Promise<Host> {
  switch (domain) {
    case "tasks":
      return open(createCoordinator(settings));
    case "interruptions":
      return open(createManager(settings));
    case "beliefs":
      return open(createTracker(settings));
  }
}

const host = await openDomain();
process.stdout.write("started\n");
/** Warm: it has read the whole log. One that was displaced reads it again. */
let wasReady = false;
setInterval(() => {
  const { isReady } = host.status();
  if (isReady !== wasReady) process.stdout.write(isReady ? "ready\n" : "cold\n");
  wasReady = isReady;
}, READY_LOOK_MS).unref();
host.untilLeading().then(
  () => process.stdout.write("leading\n"),
  () => undefined,
);
host.done.catch(async (error: unknown) => {
  process.stdout.write(`failed ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
  await Promise.all([connected.close(), answerer.close()]);
});
