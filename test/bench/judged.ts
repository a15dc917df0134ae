/** Judging measured on a real service in this process. */
import { createTracker } from "@harmovela/belief-tracker";
import { intakeStream } from "@harmovela/bus";
import { createCoordinator } from "@harmovela/delegation-coordinator";
import {
  openService,
  type RunningService,
  type ServiceConfig,
  type ServiceDefinition,
} from "@harmovela/host";
import pino from "pino";
import { pause } from "./load.ts";

export function openCoordinator(
  url: string,
  more: Pick<ServiceConfig, "snapshotEntries" | "audit"> = {},
): Promise<RunningService> {
  return open(createCoordinator(), url, more);
}

export function openTracker(url: string): Promise<RunningService> {
  return open(createTracker(), url);
}

async function open<State>(
  definition: ServiceDefinition<State>,
  url: string,
  more: Pick<ServiceConfig, "snapshotEntries" | "audit"> = {},
): Promise<RunningService> {
  const service = await openService(definition, {
    servers: url,
    version: "0.1.0",
    ...more,
    logger: pino({ level: "silent" }),
  });
  await service.host.untilLeading();
  return service;
}

/** Resolves when everything up to `intake` is judged and stored. */
export async function untilJudged(service: RunningService, intake: number): Promise<void> {
  for (;;) {
    const status = service.host.status();
    if (status.failure !== undefined) throw new Error(status.failure);
    if (status.intake >= intake && status.acked >= status.position) return;
    await pause(2);
  }
}

export const INTAKE = intakeStream("tasks");
