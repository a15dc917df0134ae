/** How an agent gets at logs and checkpoints: as streams, or by asking the services (architecture, section 3). */
import { type Bus, CHECKPOINT_BUCKET, type Clock } from "@harmovela/bus";
import type { Domain } from "@harmovela/envelope";
import type { JsonObject } from "@harmovela/failure";
import { type AskManager, BucketShelf, type CheckpointShelf } from "./checkpoint-shelf.ts";
import { formatCursor } from "./cursor.ts";
import { type Logs, StreamLogs } from "./logs.ts";
import type { Reading, ReadOptions } from "./reads.ts";
import { ReplayLogs } from "./replays.ts";
import { ServiceShelf } from "./service-shelf.ts";

export type Access = "streams" | "services";

export interface AccessContext {
  bus: Bus;
  clock: Clock;
  tenant: string;
  agent: string;
  /** The newest position of a domain that the agent's own verdicts have named. */
  known(domain: Domain): number | undefined;
  /** Asks the interruption manager. */
  read(verb: string, params: JsonObject, bounds: ReadOptions): Promise<Reading>;
}

export function openAccess(
  access: Access,
  context: AccessContext,
): { logs: Logs; shelf: CheckpointShelf } {
  const { bus, clock, tenant, agent } = context;
  const ask: AskManager = async (verb, params, timeoutMs) => {
    // The service must know that the task is this agent's.
    const seq = context.known("tasks");
    const seen: JsonObject =
      seq === undefined ? {} : { seen: formatCursor({ domain: "tasks", seq }) };
    return (await context.read(verb, { ...seen, ...params }, { timeoutMs })).result;
  };
  if (access === "streams") {
    // Made by the service with as many copies as it is told to make.
    const bucket = { bucket: CHECKPOINT_BUCKET, replicas: 1, mayCreate: false };
    return {
      logs: new StreamLogs(bus, tenant),
      shelf: new BucketShelf(bus.openBlobs(bucket), tenant, ask),
    };
  }
  return {
    logs: new ReplayLogs({ bus, clock, tenant, agent }),
    shelf: new ServiceShelf({ clock, ask }),
  };
}
