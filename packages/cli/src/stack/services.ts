/** The four services in this process. */
import { createTracker } from "@harmovela/belief-tracker";
import { DOMAINS, systemClock } from "@harmovela/bus";
import { createCoordinator } from "@harmovela/delegation-coordinator";
import type { Domain } from "@harmovela/envelope";
import {
  openGrantsFile,
  openService,
  type RunningService,
  type ServiceConfig,
} from "@harmovela/host";
import { createManager } from "@harmovela/interruption-manager";
import { createAttester } from "@harmovela/provenance-attester";
import type { StackKeys } from "./stack-keys.ts";

/** The service of each domain, as it names itself (architecture, section 3). */
export const SERVICE_BY_DOMAIN: Readonly<Record<Domain, string>> = {
  tasks: "service:delegation-coordinator",
  beliefs: "service:belief-tracker",
  interruptions: "service:interruption-manager",
  provenance: "service:provenance-attester",
};

export interface Services {
  /** Services that another process leads; this one stands by. */
  readonly standingBy: readonly string[];
  /** Rejects when one of them stops by itself; never resolves. */
  readonly failed: Promise<never>;
  /** Drains all. */
  close(): Promise<void>;
}

/** How the services of a stack judge where that is not the same for all stacks. */
export interface Judging {
  /** Tasks that nobody submitted here may be interrupted and undone (spec 11, C40). */
  externalTasks: boolean;
  /** Senders are proved, and so are the services. */
  keys?: StackKeys;
  /** Nobody but the process that runs the stack speaks there, and it is known by that (spec 9.6). */
  processIdentity: boolean;
}

function openDomain(
  domain: Domain,
  config: ServiceConfig,
  { externalTasks, processIdentity, keys }: Judging,
): Promise<RunningService> {
  const settings = { authenticated: keys !== undefined };
  const complete = keys === undefined ? config : { ...config, ...provedBy(keys, domain) };
  switch (domain) {
    case "tasks":
      return openService(createCoordinator({ ...settings, processIdentity }), complete);
    case "beliefs":
      return openService(createTracker(settings), complete);
    case "interruptions":
      return openService(createManager({ ...settings, externalTasks }), complete);
    case "provenance":
      return openService(createAttester(settings), complete);
  }
}

function provedBy(keys: StackKeys, domain: Domain): Partial<ServiceConfig> {
  return {
    writerAuth: keys.authOf(domain, "writer"),
    answererAuth: keys.authOf(domain, "answerer"),
    grants: openGrantsFile(keys.grants, systemClock),
  };
}

/**
 * Starts all four; resolves when each leads its domain, or after `standbyAfterMs`. Closes what it opened
 * when one fails.
 */
export async function openServices(
  config: ServiceConfig,
  { standbyAfterMs, ...judging }: Judging & { standbyAfterMs: number },
): Promise<Services> {
  const started = await Promise.allSettled(
    DOMAINS.map((domain) => openDomain(domain, config, judging)),
  );
  const running = started.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const close = async (): Promise<void> => {
    await Promise.all(running.map((service) => service.close()));
  };
  try {
    for (const one of started) if (one.status === "rejected") throw one.reason;
    await atMost(
      standbyAfterMs,
      Promise.all(running.map((service) => service.host.untilLeading())),
    );
  } catch (error) {
    await close();
    throw error;
  }
  const failed = new Promise<never>((_resolve, reject) => {
    for (const service of running) service.host.done.catch(reject);
  });
  failed.catch(() => {
    // Whoever runs the services awaits it; until then it must not end the process.
  });
  const standingBy = running
    .map((service) => service.host.status())
    .filter(({ role }) => role !== "leader")
    .map(({ service }) => service);
  return { standingBy, failed, close };
}

/** Resolves with the work or after so long, whichever comes first. */
async function atMost(ms: number, work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  try {
    await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
    work.catch(() => {
      // Who stands by when it is closed has never led.
    });
  }
}
