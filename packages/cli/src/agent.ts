/** A command's connection as an agent. */
import type { ConnectionChange } from "@harmovela/bus";
import { type Agent, connect } from "@harmovela/client";
import { toServers } from "./options.ts";
import { ownKey } from "./own-key.ts";

export interface AgentCommandOptions {
  server: string;
  tenant: string;
  as: string;
  /** Reads logs as streams also with a key, which must allow it. */
  streams?: boolean;
  /** Called when the connection is lost and when it is back. */
  onChange?: (change: ConnectionChange) => void;
}

/** Runs the work as that agent and closes its connection, whatever comes of it. */
export async function withAgent<T>(
  { server, tenant, as, streams = false, onChange }: AgentCommandOptions,
  work: (agent: Agent) => Promise<T>,
): Promise<T> {
  const agent = await connect({
    servers: toServers(server),
    tenant,
    agent: as,
    name: "harmovela",
    ...ownKey(),
    ...(streams ? { access: "streams" } : {}),
    ...(onChange === undefined ? {} : { onChange }),
  });
  try {
    return await work(agent);
  } finally {
    await agent.close();
  }
}
