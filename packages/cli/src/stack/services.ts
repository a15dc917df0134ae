/** The four services in this process. A domain whose service does not exist yet is run by a stand-in. */
import { createTracker } from "@harmovela/belief-tracker";
import { DOMAINS } from "@harmovela/bus";
import { createCoordinator } from "@harmovela/delegation-coordinator";
import type { Domain } from "@harmovela/envelope";
import {
  createVacantDecider,
  openService,
  type RunningService,
  type ServiceConfig,
} from "@harmovela/host";
import { createAttester } from "@harmovela/provenance-attester";

/** The service of each domain, as it names itself (architecture, section 3). */
export const SERVICE_BY_DOMAIN: Readonly<Record<Domain, string>> = {
  tasks: "service:delegation-coordinator",
  beliefs: "service:belief-tracker",
  interruptions: "service:interruption-manager",
  provenance: "service:provenance-attester",
};

/** Domains whose rules exist; the others refuse what they validate, and say why. */
export const JUDGED_DOMAINS: ReadonlySet<Domain> = new Set(["tasks", "beliefs", "provenance"]);

export interface Services {
  /** Services that another process leads; this one stands by. */
  readonly standingBy: readonly string[];
  /** Rejects when one of them stops by itself; never resolves. */
  readonly failed: Promise<never>;
  /** Drains all. */
  close(): Promise<void>;
}

function openDomain(domain: Domain, config: ServiceConfig): Promise<RunningService> {
  if (domain === "tasks") return openService(createCoordinator(), config);
  if (domain === "beliefs") return openService(createTracker(), config);
  if (domain === "provenance") return openService(createAttester(), config);
  const service = SERVICE_BY_DOMAIN[domain];
  return openService(
    {
      domain,
      service,
      decider: createVacantDecider(domain, service),
      settings: {},
      observes: [],
      reads: {},
    },
    config,
  );
}

/**
 * Starts all four; resolves when each leads its domain, or after `standbyAfterMs`. Closes what it opened
 * when one fails.
 */
export async function openServices(
  config: ServiceConfig,
  standbyAfterMs: number,
): Promise<Services> {
  const started = await Promise.allSettled(DOMAINS.map((domain) => openDomain(domain, config)));
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
